//! What must hold when all jobs are over, whatever was killed.

use std::collections::BTreeSet;
use std::path::Path;

use hostler_live::client::Client;
use hostler_live::job::{JobState, JobView};

use crate::harness::{Cluster, is_over, processes, wait_for};
use crate::work::Job;

/// Checks everything and gives how often jobs were started in all.
pub fn all_is_well(cluster: &Cluster, jobs: &[(u32, Job)]) -> usize {
    let notes = cluster.notes();
    let faults = std::fs::read_to_string(notes.join("faults")).unwrap_or_default();
    assert_eq!(faults, "", "jobs met what must not be there");
    let numbers: BTreeSet<u32> = jobs.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers.len(), jobs.len(), "two submissions became one job");
    let mut client = cluster.client();
    let starts = jobs.iter().map(|(number, job)| check_job(&mut client, &notes, *number, job));
    let starts = starts.sum();
    let next = numbers.last().map_or(0, |last| last + 1);
    let beyond: Result<JobView, _> = client.get(&format!("/jobs/{next}"));
    assert!(beyond.is_err(), "one submission became two jobs: {beyond:?}");
    for node in cluster.nodes() {
        assert_eq!(node["gpus_used"], 0.0, "GPUs stay booked: {node}");
    }
    wait_for("the last processes to end", || {
        processes::left(cluster.folder()).is_empty().then_some(())
    });
    starts
}

/// A job began after another one, or all of its array, was over.
fn came_after(client: &mut Client, view: &JobView, first: u32) {
    let mut number = first;
    loop {
        let before: JobView = client.get(&format!("/jobs/{number}")).unwrap();
        if number > first && before.array_of != Some(first) {
            return;
        }
        assert!(before.ended <= view.started, "{view:?} did not wait for {before:?}");
        if before.array_of.is_none() {
            return;
        }
        number += 1;
    }
}

fn check_job(client: &mut Client, notes: &Path, number: u32, job: &Job) -> usize {
    let view: JobView = client.get(&format!("/jobs/{number}")).unwrap_or_else(|fault| {
        panic!("job {number} was acknowledged and is not there: {fault}");
    });
    assert_eq!(view.name, job.name, "job {number} is another one");
    assert!(is_over(&view), "job {number} is not over: {view:?}");
    let state = if job.code == 0 { JobState::Finished } else { JobState::Failed };
    assert_eq!((view.state, view.exit_code), (state, Some(job.code)), "{view:?}");
    assert_eq!(view.array_index, job.index, "{view:?}");
    if let Some(first) = job.after {
        came_after(client, &view, first);
    }
    let text = |rank: u32| {
        std::fs::read_to_string(notes.join(format!("{}.{rank}", job.notes()))).unwrap_or_default()
    };
    let lines: Vec<String> = (0..job.tasks).map(text).collect();
    let said = |word: &str| -> Vec<BTreeSet<u32>> {
        let numbers = |text: &String| {
            let numbers = text.lines().filter_map(|line| line.strip_prefix(word));
            numbers.map(|number| number.trim().parse().unwrap()).collect()
        };
        lines.iter().map(numbers).collect()
    };
    let (begun, ended) = (said("begin "), said("end "));
    let stays: BTreeSet<u32> = begun.iter().flatten().copied().collect();
    for (rank, lines) in lines.iter().enumerate() {
        let begins = lines.matches("begin").count();
        assert_eq!(begins, begun[rank].len(), "{} began a lease twice:\n{lines}", job.name);
    }
    // One task that fails may end the others of its gang before they come to their end.
    let last = stays.last().copied().unwrap_or_default();
    let came_to_end = |ends: &BTreeSet<u32>| ends.contains(&last);
    let complete = match job.code {
        0 => ended.iter().all(came_to_end),
        _ => ended.iter().any(came_to_end),
    };
    assert!(complete, "{} has a code but did not come to its end:\n{lines:?}", job.name);
    let allowed = view.restarts as usize + 1;
    assert!(stays.len() <= allowed, "{} began {stays:?}, {} restarts", job.name, view.restarts);
    stays.len()
}
