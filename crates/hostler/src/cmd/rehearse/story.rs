//! What a run is judged by, real or simulated: who started when, in which order, until when.

use std::collections::BTreeMap;

use hostler_core::id::JobId;
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::placement::Lease;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use serde::Serialize;

use super::plan::RehearsalPlan;

/// Times of all jobs, by their place in the order of submission.
#[derive(Default)]
pub struct Story {
    /// Number of the first job; jobs are numbered from there.
    first: Option<JobId>,
    pub submitted: BTreeMap<u32, Time>,
    /// Every start, in order.
    pub starts: Vec<(u32, Time)>,
    /// Time that each job held resources.
    held: BTreeMap<u32, f64>,
    /// Jobs that finished.
    pub ended: BTreeMap<u32, Time>,
}

/// A run in numbers, in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub avg_jct_s: f64,
    pub avg_wait_s: f64,
    pub makespan_s: f64,
    pub starts: usize,
}

impl Story {
    fn place(&self, job: JobId) -> u32 {
        job.0 - self.first.map_or(0, |first| first.0)
    }

    /// Jobs in the order in which they started, stays that came back included.
    pub fn order(&self) -> impl Iterator<Item = u32> + '_ {
        self.starts.iter().map(|(job, _)| *job)
    }

    /// Averages over all jobs that finished.
    pub fn figures(&self) -> Figures {
        let mut first_starts: BTreeMap<u32, Time> = BTreeMap::new();
        for (job, at) in &self.starts {
            first_starts.entry(*job).or_insert(*at);
        }
        let seconds = |from: Time, to: Time| to.since(from).0 as f64 / 1e6;
        let mean = |times: &BTreeMap<u32, Time>| {
            let spans = times.iter().filter_map(|(job, at)| {
                self.submitted.get(job).map(|submitted| seconds(*submitted, *at))
            });
            spans.sum::<f64>() / times.len().max(1) as f64
        };
        let begun = self.submitted.values().min().copied().unwrap_or(Time::ZERO);
        let over = self.ended.values().max().copied().unwrap_or(begun);
        Figures {
            avg_jct_s: mean(&self.ended),
            avg_wait_s: mean(&first_starts),
            makespan_s: seconds(begun, over),
            starts: self.starts.len(),
        }
    }

    /// Milliseconds that jobs held resources beyond their run time, ascending.
    pub fn overheads(&self, plan: &RehearsalPlan) -> Vec<f64> {
        let beyond = self.held.iter().map(|(job, held)| {
            held * 1e3 - plan.jobs.get(*job as usize).map_or(0.0, |job| job.run_ms as f64)
        });
        let mut beyond: Vec<f64> = beyond.collect();
        beyond.sort_by(f64::total_cmp);
        beyond
    }
}

impl Watch for Story {
    fn submitted(&mut self, at: Time, job: &Job) {
        self.first.get_or_insert(job.id);
        self.submitted.insert(self.place(job.id), at);
    }

    fn began(&mut self, at: Time, _: &ClusterState, job: &Job, _: &Lease) {
        self.starts.push((self.place(job.id), at));
    }

    fn ended(&mut self, at: Time, _: &ClusterState, job: &Job, lease: &Lease) {
        let held = at.since(lease.since).0 as f64 / 1e6;
        *self.held.entry(self.place(job.id)).or_default() += held;
    }

    fn retired(&mut self, at: Time, _: &ClusterState, job: &Job) {
        if job.phase == Phase::Done(Ending::Finished) {
            self.ended.insert(self.place(job.id), at);
        }
    }
}
