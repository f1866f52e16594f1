//! What the original knows to the last bit and a state rounds: ages, weights and speeds.
//!
//! Assignments that cost the same up to rounding are many, and which of them the original takes
//! depends on these bits. The world keeps them up to date; the policy's solver asks for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hostler_policies::allocate::Instance;

/// One job, by line of the trace.
struct ExactJob {
    /// Seconds.
    arrival: f64,
    weight: f64,
    /// Steps per second on each GPU type.
    rates: Vec<f64>,
}

/// Shared by the world and the policy of one run, which take turns.
pub(super) struct Exact {
    jobs: Vec<ExactJob>,
    /// Seconds, as the bits of a double.
    clock: AtomicU64,
    stuck: AtomicBool,
    solves: AtomicU64,
}

impl Exact {
    /// Jobs with their arrivals, weights and speeds.
    pub(super) fn new(jobs: impl Iterator<Item = (f64, f64, Vec<f64>)>) -> Exact {
        let job = |(arrival, weight, rates)| ExactJob { arrival, weight, rates };
        Exact {
            jobs: jobs.map(job).collect(),
            clock: AtomicU64::new(0f64.to_bits()),
            stuck: AtomicBool::new(false),
            solves: AtomicU64::new(0),
        }
    }

    /// Notes the time, and whether only a new solution can make anybody run: the original then
    /// forgets when it last solved.
    pub(super) fn tell(&self, clock: f64, stuck: bool) {
        self.clock.store(clock.to_bits(), Ordering::Relaxed);
        self.stuck.store(stuck, Ordering::Relaxed);
    }

    /// Whether only a new solution can make anybody run.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Counts a solution for at least one job.
    pub(super) fn count_solution(&self) {
        self.solves.fetch_add(1, Ordering::Relaxed);
    }

    /// Solutions for at least one job.
    pub(super) fn solves(&self) -> u64 {
        self.solves.load(Ordering::Relaxed)
    }

    /// Steps per second of a job on each GPU type.
    pub(super) fn rates(&self, job: usize) -> &[f64] {
        &self.jobs[job].rates
    }

    /// When a job arrives, in seconds; none after the last one.
    pub(super) fn arrival(&self, job: usize) -> Option<f64> {
        self.jobs.get(job).map(|job| job.arrival)
    }

    /// The same question to the last bit.
    pub(super) fn correct(&self, instance: &Instance, weighted: bool) -> Instance {
        let clock = f64::from_bits(self.clock.load(Ordering::Relaxed));
        let mut instance = instance.clone();
        for row in &mut instance.jobs {
            let job = &self.jobs[row.number as usize];
            row.age_secs = clock - job.arrival;
            row.weight = if weighted { job.weight } else { 1.0 };
            // Also on types with too few GPUs for the job: the original shares them out.
            row.rates.clone_from(&job.rates);
        }
        instance
    }
}
