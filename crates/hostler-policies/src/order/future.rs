//! What is believed to be free from now on, beside reservations: the look ahead of conservative
//! backfilling. Knows instants, not why jobs end; no policy of its own.
//!
//! Free capacity is known at instants. It is worked out only up to the last instant at which a
//! place was looked for: further on, reservations end and none begins, so whatever is free there
//! stays free and need not be looked at.

use std::ops::Range;

use hostler_core::capacity::Capacity;
use hostler_core::job::Job;
use hostler_core::placement::Placement;
use hostler_core::stage::Place;
use hostler_core::units::Time;
use hostler_core::view::View;

use super::hopeless::Hopeless;
use super::outlook::{Ending, believed_end};
use crate::limits::{ENDS_MAX, STEPS_MAX};

/// What is believed to be free.
pub(super) struct Future<'a> {
    view: &'a View<'a>,
    place: &'a dyn Place,
    /// Stays by their end.
    ends: Vec<Ending<'a>>,
    /// By time. Each lasts until the next one.
    instants: Vec<Instant>,
    /// The first instants in full; at least the very first.
    steps: Vec<Step>,
    /// Reservations that end, with their ends.
    reserved: Vec<(Time, Placement)>,
}

/// A time at which something becomes free.
struct Instant {
    at: Time,
    /// The stays whose end is rounded up to it.
    ends: Range<usize>,
}

/// What is free from an instant to the next. It only shrinks.
#[derive(Default)]
struct Step {
    free: Capacity,
    hopeless: Hopeless,
}

impl<'a> Future<'a> {
    /// The future of what is free now, without reservations. Ends are rounded up onto at most
    /// [`ENDS_MAX`] instants.
    pub(super) fn new(
        view: &'a View<'a>,
        place: &'a dyn Place,
        ends: Vec<Ending<'a>>,
        free: &Capacity,
        spare: &mut Spare,
    ) -> Future<'a> {
        let mut instants = vec![Instant { at: view.now(), ends: 0..0 }];
        let known = ends.partition_point(|end| end.at < Time::NEVER);
        let times = ends[..known].chunk_by(|one, next| one.at == next.at);
        let lengths: Vec<usize> = times.map(<[Ending<'_>]>::len).collect();
        let mut first = 0;
        for group in lengths.chunks(lengths.len().div_ceil(ENDS_MAX).max(1)) {
            let after = first + group.iter().sum::<usize>();
            instants.push(Instant { at: ends[after - 1].at, ends: first..after });
            first = after;
        }
        if known < ends.len() {
            instants.push(Instant { at: Time::NEVER, ends: known..ends.len() });
        }
        let steps = vec![spare.step(free)];
        Future { view, place, ends, instants, steps, reserved: Vec::new() }
    }

    /// Books the earliest place for a job, for as long as it is believed to run. `now` is where it
    /// fits what is free now, which is the first step; a job that comes without does not.
    pub(super) fn reserve(
        &mut self,
        job: &Job,
        mut now: Option<Placement>,
        spare: &mut Spare,
    ) -> Option<(Time, Placement)> {
        for first in usize::from(now.is_none())..self.instants.len() {
            if first == self.steps.len() {
                self.look_further(spare);
            }
            let at = self.instants[first].at;
            let Some(wanted) = now.take().or_else(|| self.propose(first, job)) else {
                continue;
            };
            let end = believed_end(self.view, job, &wanted, at);
            let Err(taken) = self.book(first, end, &wanted, spare) else {
                return Some((at, wanted));
            };
            let Some(other) = self.propose(taken, job) else {
                continue;
            };
            let end = believed_end(self.view, job, &other, at);
            if self.book(first, end, &other, spare).is_ok() {
                return Some((at, other));
            }
        }
        None
    }

    /// Where the rule would put a job at an instant.
    fn propose(&mut self, at: usize, job: &Job) -> Option<Placement> {
        let Step { free, hopeless } = &mut self.steps[at];
        hopeless.place(self.place, free, &job.spec)
    }

    /// Works out what is free at one more instant.
    fn look_further(&mut self, spare: &mut Spare) {
        let next = self.steps.len();
        let Instant { at, ends } = &self.instants[next];
        let before = self.instants[next - 1].at;
        let mut step = spare.step(&self.steps[next - 1].free);
        for ending in &self.ends[ends.clone()] {
            step.free.release(ending.placement);
        }
        for (end, placement) in &self.reserved {
            if before < *end && end <= at {
                step.free.release(placement);
            }
        }
        self.steps.push(step);
    }

    /// Books a place from one instant until an end, or says at which instant it is taken.
    fn book(
        &mut self,
        first: usize,
        end: Time,
        placement: &Placement,
        spare: &mut Spare,
    ) -> Result<(), usize> {
        // A job that never ends takes the last instant too, whatever its time.
        let lasts = |instant: &Instant| instant.at < end || end == Time::NEVER;
        let after = self.instants.partition_point(lasts);
        for at in first..after.min(self.steps.len()) {
            if self.steps[at].free.book(placement).is_err() {
                for booked in &mut self.steps[first..at] {
                    booked.free.release(placement);
                }
                return Err(at);
            }
        }
        if end == Time::NEVER {
            return Ok(());
        }
        self.reserved.push((end, placement.clone()));
        let known = self.instants.get(after).is_some_and(|instant| instant.at == end);
        if !known && self.instants.len() < STEPS_MAX {
            self.instants.insert(after, Instant { at: end, ends: 0..0 });
            if after < self.steps.len() {
                let mut step = spare.step(&self.steps[after - 1].free);
                step.free.release(placement);
                self.steps.insert(after, step);
            }
        }
        Ok(())
    }
}

/// Memory for looks ahead, used again at each question; what is in it means nothing.
#[derive(Default)]
pub(super) struct Spare {
    unused: Vec<Step>,
}

impl Spare {
    /// A step at which this is free.
    fn step(&mut self, free: &Capacity) -> Step {
        let mut step = self.unused.pop().unwrap_or_default();
        step.free.clone_from(free);
        step.hopeless.clear();
        step
    }

    /// Takes back the memory of a future that is not needed any more.
    pub(super) fn take_back(&mut self, future: Future<'_>) {
        self.unused.extend(future.steps);
    }
}
