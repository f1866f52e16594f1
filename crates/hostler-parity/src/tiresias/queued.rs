//! Three queues by attained service, with the habits of the original.
//!
//! Whoever sinks or comes back goes to the tail of a queue; in each, those who run stand before
//! those who wait. A job sinks by one queue at a time. The time at which one sinks next is worked
//! out by subtracting seconds from GPU seconds: it may be too early, and then comes again. The
//! time that a job waited is not forgotten when it runs, only when it comes back to the first
//! queue.

use std::sync::atomic::Ordering;

use super::Promotions;
use super::gittins::GittinsTable;
use super::scan::{Discipline, Entry};

/// Service at which jobs sink into the next queue.
const LIMITS: [u64; 2] = [3250, 7200];

/// What service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attained {
    /// Seconds.
    Time,
    /// GPU seconds.
    GpuTime,
}

/// A job in a queue; times in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    queue: usize,
    /// Time that it ran since it last came to the first queue.
    ran: u64,
    /// Time that it waited since then, once it had run.
    waited: u64,
}

/// Three queues.
pub(super) struct Queued {
    attained: Attained,
    /// A job that waited so many times as long as it ran comes back; zero when it never does.
    knob: f64,
    index: Option<GittinsTable>,
    queues: [Vec<usize>; 3],
    /// By number of the job.
    places: Vec<Place>,
    promotions: Promotions,
}

impl Queued {
    pub(super) fn new(attained: Attained, knob: f64, promotions: Promotions) -> Queued {
        let queues = Default::default();
        Queued { attained, knob, index: None, queues, places: Vec::new(), promotions }
    }

    /// The same, with queues that go by Gittins index.
    pub(super) fn by_index(self, index: GittinsTable) -> Queued {
        Queued { index: Some(index), ..self }
    }

    fn move_to(&mut self, job: usize, queue: usize) {
        self.left(job);
        self.queues[queue].push(job);
        self.places[job].queue = queue;
    }

    fn sink(&mut self, job: usize, gpus: u32) {
        let Place { queue, ran, .. } = self.places[job];
        let attained = match self.attained {
            Attained::Time => ran,
            Attained::GpuTime => ran * u64::from(gpus),
        };
        if LIMITS.get(queue).is_some_and(|limit| attained >= *limit) {
            self.move_to(job, queue + 1);
        }
    }

    fn come_back(&mut self, job: usize) {
        let Place { queue, ran, waited } = self.places[job];
        let long_enough = waited >= (ran as f64 * self.knob) as u64;
        if self.knob > 0.0 && queue > 0 && ran > 0 && long_enough {
            self.move_to(job, 0);
            self.places[job] = Place::default();
            self.promotions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sorts queues by index, highest first, then by submission.
    fn sort(&mut self, jobs: &[Entry]) {
        let Some(table) = &self.index else { return };
        let places = &self.places;
        for queue in &mut self.queues {
            queue.sort_by_cached_key(|job| {
                let attained = places[*job].ran * u64::from(jobs[*job].gpus);
                // Indices are not negative: their bits are in their order.
                (std::cmp::Reverse(table.index(attained).to_bits()), jobs[*job].submit)
            });
        }
    }

    /// Seconds until a job that runs is thought to sink, or one that waits to come back.
    fn change_in(&self, job: usize, entry: &Entry) -> Option<u64> {
        let Place { queue, ran, waited } = self.places[job];
        if entry.runs {
            let limit = LIMITS.get(queue)?;
            let per_second = match self.attained {
                Attained::Time => 1,
                Attained::GpuTime => u64::from(entry.gpus),
            };
            return Some(limit.saturating_sub(ran) / per_second);
        }
        let waits = self.knob > 0.0 && queue > 0 && entry.ran > 0 && ran > 0;
        let left = ran as f64 * self.knob - waited as f64;
        Some(left as u64).filter(|left| waits && *left > 0)
    }
}

impl Discipline for Queued {
    fn came(&mut self, job: usize) {
        self.places.resize(job + 1, Place::default());
        self.queues[0].push(job);
    }

    fn left(&mut self, job: usize) {
        let queue = &mut self.queues[self.places[job].queue];
        let at = queue.iter().position(|known| *known == job).expect("it is in its queue");
        queue.remove(at);
    }

    fn pass(&mut self, job: usize, entry: &Entry, passed: u64) {
        let place = &mut self.places[job];
        if entry.runs {
            place.ran += passed;
            self.sink(job, entry.gpus);
        } else {
            place.waited += if place.ran > 0 { passed } else { 0 };
            self.come_back(job);
        }
    }

    fn list(&mut self, jobs: &[Entry], list: &mut Vec<usize>) {
        self.sort(jobs);
        self.queues.iter().for_each(|queue| list.extend_from_slice(queue));
    }

    fn dealt(&mut self, jobs: &[Entry]) {
        // The sort is stable.
        self.queues.iter_mut().for_each(|queue| queue.sort_by_key(|job| !jobs[*job].runs));
    }

    fn next_change(&self, jobs: &[Entry], waiting_or_running: &[usize], now: u64) -> Option<u64> {
        let changes = waiting_or_running.iter().filter_map(|job| self.change_in(*job, &jobs[*job]));
        changes.min().map(|left| now + left)
    }
}
