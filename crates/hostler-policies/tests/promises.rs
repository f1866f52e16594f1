//! What `bounded-sjf` promises, on generated workloads with estimates that are wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fmt::Write as _;

use hostler_core::decision::Decision;
use hostler_core::record::Record;
use hostler_policies::builtin;
use hostler_sim::fixture;
use proptest::prelude::*;

const CASES: u32 = 400;

/// A job: when it comes, the GPUs it asks for, how long it runs and is believed to run.
#[derive(Clone, Copy, Debug)]
struct Job {
    at: u64,
    gpus: u64,
    run: u64,
    estimate: u64,
}

fn jobs(gpus: &'static [u64]) -> impl Strategy<Value = Vec<Job>> {
    let job = (0u64..120, prop::sample::select(gpus), 1u64..90, 1u64..90)
        .prop_map(|(at, gpus, run, estimate)| Job { at, gpus, run, estimate });
    prop::collection::vec(job, 1..40).prop_map(|mut jobs| {
        jobs.sort_by_key(|job| job.at);
        jobs
    })
}

/// When each job starts, in seconds, by the order of decisions.
fn starts(policy: &str, cluster: &str, jobs: &[Job]) -> Vec<(usize, u64)> {
    let mut scenario = format!("{cluster}\n");
    for (number, Job { at, gpus, run, estimate }) in jobs.iter().enumerate() {
        writeln!(scenario, "job j{number} at {at} gpus {gpus} for {run} estimate {estimate}")
            .unwrap();
    }
    let build = || builtin().from_toml(policy).unwrap();
    let checked = fixture::check(&build, &scenario);
    let mut starts = Vec::new();
    for record in &checked.records {
        let Record::Output { at, decisions, .. } = record else { continue };
        starts.extend(decisions.iter().filter_map(|decision| match decision {
            Decision::Start { job, .. } => Some((job.index(), at.0 / 1_000_000)),
            _ => None,
        }));
    }
    assert_eq!(starts.len(), jobs.len(), "every job starts once");
    starts
}

/// The same by job.
fn by_job(mut starts: Vec<(usize, u64)>) -> Vec<u64> {
    starts.sort_unstable();
    starts.into_iter().map(|(_, at)| at).collect()
}

fn bounded(stretch: f64) -> String {
    format!("kind = 'bounded-sjf'\nestimate = 'user'\nstretch = {stretch:?}")
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    })]

    #[test]
    fn those_that_overtake_a_job_hold_a_part_of_all_gpus(
        jobs in jobs(&[1, 1, 1, 2, 3, 4]), stretch in prop::sample::select(vec![1.0, 1.5, 2.0, 4.0]),
    ) {
        let starts = starts(&bounded(stretch), "node x gpus 4\nnode y gpus 2", &jobs);
        let when = by_job(starts.clone());
        for (place, (started, now)) in starts.iter().enumerate() {
            // Of jobs that start at the same instant the decisions tell the order.
            let waits = |job: usize| {
                jobs[job].at <= *now && starts[..=place].iter().all(|(known, _)| *known != job)
            };
            for earlier in (0..*started).filter(|job| waits(*job)) {
                let over = |job: usize| when[job] + jobs[job].run <= *now;
                let overtakers = starts[..=place].iter().map(|(job, _)| *job);
                let running = overtakers.filter(|job| *job > earlier && !over(*job));
                let held: u64 = running.map(|job| jobs[job].gpus).sum();
                let most = 6.0 * (1.0 - 1.0 / stretch);
                prop_assert!(held as f64 <= most + 1e-9, "{held} held ahead of j{earlier} at {now}");
            }
        }
    }

    #[test]
    fn nobody_waits_longer_than_a_factor_of_what_he_would_under_fifo(
        jobs in jobs(&[1]), gpus in 1u64..6, stretch in prop::sample::select(vec![1.0, 1.5, 2.0, 4.0]),
    ) {
        let cluster = format!("cluster {gpus}");
        let ours = by_job(starts(&bounded(stretch), &cluster, &jobs));
        let fifo = by_job(starts("kind = 'fifo'", &cluster, &jobs));
        let longest = jobs.iter().map(|job| job.run).max().unwrap_or(0);
        for (number, job) in jobs.iter().enumerate() {
            let most = stretch * (fifo[number] - job.at + 2 * longest) as f64;
            let waits = (ours[number] - job.at) as f64;
            prop_assert!(waits <= most, "j{number} waits {waits}, above {most}");
        }
    }

    #[test]
    fn without_a_stretch_it_is_strict_fifo(jobs in jobs(&[1, 1, 2, 4])) {
        let cluster = "cluster 4";
        let fifo = starts("kind = 'fifo'", cluster, &jobs);
        prop_assert_eq!(by_job(starts(&bounded(1.0), cluster, &jobs)), by_job(fifo));
    }
}
