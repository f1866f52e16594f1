//! What an operator could do something about: who waits, and which GPUs are scarce.

use super::data::{DOWN, Format, GroupFigures, Run};
use super::format;

/// Jobs that do this much more of the waiting than they are of the jobs are worth a sentence.
const UNEVEN: f64 = 0.2;
/// Fewer jobs than these are an accident.
const JOBS_MIN: u64 = 20;
/// GPUs that are held this much of the time are scarce.
const SCARCE: f64 = 0.85;
/// A difference between models that is worth a sentence.
const APART: f64 = 0.15;

/// The jobs that wait most for what they are.
pub fn who_waits(run: &Run) -> Option<String> {
    let kinds: [(&str, &[GroupFigures]); 3] =
        [("on GPU model ", &run.models), ("of queue ", &run.queues), ("of ", &run.tenants)];
    let mut most: Option<(f64, String)> = None;
    for (words, groups) in kinds {
        let waited: f64 = groups.iter().map(|group| group.waited_s).sum();
        let jobs: u64 = groups.iter().map(|group| group.jobs).sum();
        if waited <= 0.0 {
            continue;
        }
        for group in groups.iter().filter(|group| group.jobs >= JOBS_MIN) {
            let (of_waiting, of_jobs) =
                (group.waited_s / waited, group.jobs as f64 / jobs.max(1) as f64);
            let uneven = of_waiting - of_jobs;
            if uneven < UNEVEN || most.as_ref().is_some_and(|(known, _)| *known >= uneven) {
                continue;
            }
            let share = |share: f64| format::value(share, Format::Percent);
            let sentence = format!(
                "Under it jobs {words}{} do {} of the waiting and are {} of the jobs.",
                group.name,
                share(of_waiting),
                share(of_jobs)
            );
            most = Some((uneven, sentence));
        }
    }
    most.map(|(_, sentence)| sentence)
}

/// The GPU models that are held most and least while jobs arrive, where they differ much.
pub fn what_is_scarce(run: &Run) -> Option<String> {
    let heat = &run.heat;
    let columns = heat.times_s.len();
    // The picture shows the time of arrivals and as much again.
    let arriving = columns.div_ceil(2);
    let mut models: Vec<(&str, u64, u64)> = Vec::new();
    for (row, model) in heat.groups.iter().enumerate() {
        let cells = heat.cells.iter().skip(row * columns).take(arriving);
        let held = cells.filter(|cell| **cell != DOWN);
        let (sum, count) =
            held.fold((0, 0), |(sum, count), cell| (sum + u64::from(*cell), count + 1));
        match models.iter_mut().find(|(known, ..)| known == model) {
            Some(known) => *known = (known.0, known.1 + sum, known.2 + count),
            None => models.push((model, sum, count)),
        }
    }
    let share = |(_, sum, count): &(&str, u64, u64)| *sum as f64 / (100 * count.max(&1)) as f64;
    let by_share =
        |left: &&(&str, u64, u64), right: &&(&str, u64, u64)| share(left).total_cmp(&share(right));
    let (most, least) = (models.iter().max_by(by_share)?, models.iter().min_by(by_share)?);
    let (high, low) = (share(most), share(least));
    (high >= SCARCE && high - low >= APART).then(|| {
        let written = |share: f64| format::value(share, Format::Percent);
        format!(
            "While jobs arrive, {} of the {} GPUs are held and {} of the {} ones: more of the \
             first, or jobs that do not insist on them, would help.",
            written(high),
            most.0,
            written(low),
            least.0
        )
    })
}
