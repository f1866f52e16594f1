//! Jobs that people name: from words such as `12_3-7` to jobs, and back.

use std::collections::BTreeMap;

use anyhow::Result;
use hostler_live::api::JobPage;
use hostler_live::client::{Client, query};
use hostler_live::job::{Indices, JobView};
use hostler_live::selection::Selection;

/// Jobs that one request asks for.
pub const PAGE: u32 = 500;

/// All jobs that the words mean, over or not, by number; none of them twice.
pub fn jobs(client: &mut Client, words: &[Selection]) -> Result<Vec<JobView>> {
    let mut jobs = BTreeMap::new();
    for word in words {
        // In this order: one that ends in between is seen twice, and not missed.
        for path in ["/jobs", "/history"] {
            let found = all(client, path, *word)?;
            jobs.extend(found.into_iter().map(|job| (job.id, job)));
        }
    }
    Ok(jobs.into_values().collect())
}

fn all(client: &mut Client, path: &str, word: Selection) -> Result<Vec<JobView>> {
    let mut jobs = Vec::new();
    let mut cursor: Option<u32> = None;
    loop {
        let page: JobPage = client.get(&query(
            path,
            &[
                ("jobs", Some(word.to_string())),
                ("cursor", cursor.map(|cursor| cursor.to_string())),
                ("limit", Some(PAGE.to_string())),
            ],
        ))?;
        jobs.extend(page.jobs);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(jobs);
        }
    }
}

/// The word for one job: `17`, or `12_3` in an array.
pub fn word(job: &JobView) -> String {
    match (job.array_of, job.array_index) {
        (Some(array), Some(index)) => format!("{array}_{index}"),
        _ => job.id.to_string(),
    }
}

/// The word for jobs of one array, by number: all of it, or neighbours. None where one word does
/// not say it.
pub fn word_for(jobs: &[&JobView]) -> Option<String> {
    let (first, last) = (jobs.first()?, jobs.last()?);
    if jobs.len() == 1 {
        return Some(word(first));
    }
    let adjacent = jobs.windows(2).all(|pair| pair[0].id + 1 == pair[1].id);
    let array = first.array_of.filter(|_| adjacent)?;
    if jobs.len() as u64 == u64::from(Indices::of(&first.request).count) {
        return Some(array.to_string());
    }
    Some(format!("{array}_{}-{}", first.array_index?, last.array_index?))
}

/// Jobs of one array for which the same holds, together; every other job alone. In the order of
/// the first of each.
pub fn folded<Key: PartialEq>(
    jobs: &[JobView],
    key: impl Fn(&JobView) -> Key,
) -> Vec<Vec<&JobView>> {
    let mut groups: Vec<Vec<&JobView>> = Vec::new();
    // Where the groups of an array are.
    let mut of_array: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for job in jobs {
        let Some(array) = job.array_of else {
            groups.push(vec![job]);
            continue;
        };
        let places = of_array.entry(array).or_default();
        match places.iter().find(|place| key(groups[**place][0]) == key(job)) {
            Some(place) => groups[*place].push(job),
            None => {
                places.push(groups.len());
                groups.push(vec![job]);
            }
        }
    }
    for group in &mut groups {
        group.sort_by_key(|job| job.id);
    }
    groups
}
