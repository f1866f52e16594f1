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
use hostler_core::stage::{Place, place_job};
use hostler_core::units::Time;
use hostler_core::view::View;

use super::outlook::{Ending, believed_end, may_fit};
use crate::limits::{ENDS_MAX, STEPS_MAX};

/// What is believed to be free.
pub(super) struct Future<'a> {
    /// Stays by their end.
    ends: Vec<Ending<'a>>,
    /// By time. Each lasts until the next one.
    instants: Vec<Instant>,
    /// What is free at the first instants; at least at the very first.
    free: Vec<Capacity>,
    /// Reservations that end, with their ends.
    reserved: Vec<(Time, Placement)>,
}

/// A time at which something becomes free.
struct Instant {
    at: Time,
    /// The stays whose end is rounded up to it.
    ends: Range<usize>,
}

impl<'a> Future<'a> {
    /// The future without reservations. Ends are rounded up onto at most [`ENDS_MAX`] instants.
    pub(super) fn new(now: Time, free: Capacity, ends: Vec<Ending<'a>>) -> Future<'a> {
        let mut instants = vec![Instant { at: now, ends: 0..0 }];
        let known = ends.partition_point(|end| end.at < Time::NEVER);
        let times = ends[..known].chunk_by(|one, next| one.at == next.at);
        let count = times.clone().count();
        let lengths: Vec<usize> = times.map(<[Ending<'_>]>::len).collect();
        let mut first = 0;
        for group in lengths.chunks(count.div_ceil(ENDS_MAX).max(1)) {
            let after = first + group.iter().sum::<usize>();
            instants.push(Instant { at: ends[after - 1].at, ends: first..after });
            first = after;
        }
        if known < ends.len() {
            instants.push(Instant { at: Time::NEVER, ends: known..ends.len() });
        }
        Future { ends, instants, free: vec![free], reserved: Vec::new() }
    }

    /// Books the earliest place for a job, for as long as it is believed to run.
    pub(super) fn reserve(
        &mut self,
        place: &dyn Place,
        view: &View<'_>,
        job: &Job,
        spare: &mut Spare,
    ) -> Option<(Time, Placement)> {
        for first in 0..self.instants.len() {
            if first == self.free.len() {
                self.look_further(spare);
            }
            let at = self.instants[first].at;
            let free = &mut self.free[first];
            if !may_fit(free, &job.spec) {
                continue;
            }
            let Ok(wanted) = place_job(place, free, &job.spec) else {
                continue;
            };
            let end = believed_end(view, job, &wanted, at);
            let Err(taken) = self.book(first, end, &wanted, spare) else {
                return Some((at, wanted));
            };
            let Ok(other) = place_job(place, &mut self.free[taken], &job.spec) else {
                continue;
            };
            let end = believed_end(view, job, &other, at);
            if self.book(first, end, &other, spare).is_ok() {
                return Some((at, other));
            }
        }
        None
    }

    /// Works out what is free at one more instant.
    fn look_further(&mut self, spare: &mut Spare) {
        let next = self.free.len();
        let Instant { at, ends } = &self.instants[next];
        let before = self.instants[next - 1].at;
        let mut free = spare.copy(&self.free[next - 1]);
        for ending in &self.ends[ends.clone()] {
            free.release(ending.placement);
        }
        for (end, placement) in &self.reserved {
            if before < *end && end <= at {
                free.release(placement);
            }
        }
        self.free.push(free);
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
        for at in first..after.min(self.free.len()) {
            if self.free[at].book(placement).is_err() {
                for booked in &mut self.free[first..at] {
                    booked.release(placement);
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
            if after < self.free.len() {
                let mut free = spare.copy(&self.free[after - 1]);
                free.release(placement);
                self.free.insert(after, free);
            }
        }
        Ok(())
    }
}

/// Memory for looks ahead, used again at each question; what is in it means nothing.
#[derive(Default)]
pub(super) struct Spare {
    unused: Vec<Capacity>,
}

impl Spare {
    /// A copy of what is free.
    pub(super) fn copy(&mut self, free: &Capacity) -> Capacity {
        let mut copy = self.unused.pop().unwrap_or_default();
        copy.clone_from(free);
        copy
    }

    /// Takes back the memory of a future that is not needed any more.
    pub(super) fn take_back(&mut self, future: Future<'_>) {
        self.unused.extend(future.free);
    }
}
