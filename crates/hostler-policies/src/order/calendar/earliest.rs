//! When a role finds room the earliest: on one node, or on several together.

use std::collections::BTreeMap;

use hostler_core::id::{ModelId, NodeId};
use hostler_core::job::{Gang, Locality};
use hostler_core::units::{Span, Time};

use super::Calendar;
use super::node::{Need, NodeCalendar, Step};
use super::search::{Choice, Scratch};
use super::window::Window;
use crate::limits::FIRST_LOOK_PART;

impl Calendar {
    /// The earliest time from `from` on, and no later than `last`, at which a role finds room.
    pub(super) fn earliest(
        &mut self,
        gang: &Gang,
        choice: Choice,
        from: Time,
        last: Time,
    ) -> Option<Time> {
        let need = Need::new(gang, choice.run);
        if need.count == 0 {
            return Some(from);
        }
        let known = self.bounds.earliest(&need, choice.only).max(self.now);
        let first = known.max(from);
        if first > last {
            return None;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let found = match self.has_room(&need, choice.only, first, &mut scratch.window) {
            true => Some(first),
            false if first == last => None,
            false => self.earliest_after(&need, choice.only, first, last, &mut scratch),
        };
        self.scratch = scratch;
        let found = found.filter(|at| *at <= last);
        // Who begins to look later than that does not know what was before.
        if from <= known {
            let at = found.unwrap_or(last + Span(1));
            self.bounds.note(&need, choice.only, at, self.now);
        }
        found
    }

    /// Whether a role finds room at a time.
    fn has_room(
        &self,
        need: &Need<'_>,
        only: Option<ModelId>,
        at: Time,
        window: &mut Window,
    ) -> bool {
        let demand = need.demand;
        let least = if is_alone(need) { need.count } else { 1 };
        let (mut enough, mut sum, mut racks) = (false, 0, BTreeMap::new());
        let when = (at, self.peaks.starts(need, at));
        self.accepted(demand, only, |nodes| {
            let may_hold = |id: &&NodeId| self.may_hold(**id, need, when, least);
            enough = nodes.iter().filter(may_hold).any(|id| {
                let slots = self.slots_at(*id, need, at, window);
                match demand.locality {
                    _ if slots == 0 || slots >= need.count => {}
                    Locality::Any | Locality::Apart => sum += slots,
                    Locality::Rack => {
                        *racks.entry(self.nodes[id.index()].rack).or_insert(0) += slots;
                        sum = racks[&self.nodes[id.index()].rack];
                    }
                    Locality::Node | Locality::Island => {}
                }
                slots >= need.count || sum >= need.count
            });
            enough
        });
        enough
    }

    /// The earliest time after another at which a role finds room.
    fn earliest_after(
        &self,
        need: &Need<'_>,
        only: Option<ModelId>,
        after: Time,
        last: Time,
        scratch: &mut Scratch,
    ) -> Option<Time> {
        self.able(need.demand, only, &mut scratch.able);
        match is_alone(need) {
            true => self.earliest_on_one(need, after, last, scratch),
            false => self.earliest_on_many(need, after + Span(1), last, scratch),
        }
    }

    /// Goes from one part of the time to come to the next: in most of them few nodes have room.
    fn earliest_on_one(
        &self,
        need: &Need<'_>,
        from: Time,
        last: Time,
        scratch: &mut Scratch,
    ) -> Option<Time> {
        let mut first = from;
        let end = Some(last + Span(1)).filter(|end| *end > last);
        loop {
            let ends = self.peaks.ends(self.peaks.part_of(first));
            let mut before = [ends, end].into_iter().flatten().min();
            let mut best = None;
            let starts = self.peaks.starts(need, first);
            let may_hold = |id: &&NodeId| self.peaks.may_hold(starts, **id, need, need.count);
            for id in scratch.able.iter().filter(may_hold) {
                let node = &self.nodes[id.index()];
                if let Some(at) = node.earliest(need, first, before, &mut scratch.window) {
                    (best, before) = (Some(at), Some(at));
                }
            }
            if best.is_some() {
                return best;
            }
            first = ends.filter(|ends| *ends <= last)?;
        }
    }

    /// Looks at longer and longer times, one after the other: most gangs find room soon.
    fn earliest_on_many(
        &self,
        need: &Need<'_>,
        from: Time,
        last: Time,
        scratch: &mut Scratch,
    ) -> Option<Time> {
        let Scratch { window, able, starts, changes } = scratch;
        let mut first = from;
        let mut length = Span(self.horizon.since(first).0 / FIRST_LOOK_PART + 1);
        loop {
            let after = Some(first + length).filter(|after| *after <= self.horizon);
            changes.clear();
            self.peaks.starts_between(need, first, after, starts);
            let may_hold = |id: &&NodeId| {
                starts.iter().any(|starts| self.peaks.may_hold(*starts, **id, need, 1))
            };
            for id in able.iter().filter(may_hold) {
                self.nodes[id.index()].slots_over_time(need, first, after, window, changes);
            }
            if let Some(at) = first_sum(need, changes) {
                return Some(at);
            }
            first = after.filter(|after| *after <= last)?;
            length = Span(length.0 * 4);
        }
    }
}

/// Whether all tasks of a role must be on one node.
fn is_alone(need: &Need<'_>) -> bool {
    need.count == 1 || matches!(need.demand.locality, Locality::Node | Locality::Island)
}

/// The first time at which as many tasks fit as a role has; in one rack, if it must be.
fn first_sum(need: &Need<'_>, changes: &mut [(Time, u32, i64)]) -> Option<Time> {
    let together = need.demand.locality == Locality::Rack;
    changes.sort_unstable();
    let mut sum = 0;
    let mut racks: BTreeMap<u32, i64> = BTreeMap::new();
    for now in changes.chunk_by(|one, other| one.0 == other.0) {
        let mut most = 0;
        for (_, rack, by) in now {
            sum += by;
            if together {
                *racks.entry(*rack).or_default() += by;
            }
        }
        if together {
            most = now.iter().map(|(_, rack, _)| racks[rack]).fold(most, i64::max);
        } else {
            most = sum;
        }
        if most >= i64::from(need.count) {
            return Some(now[0].0);
        }
    }
    None
}

impl NodeCalendar {
    /// The earliest time from `from` on, and before another, at which all tasks of a role fit.
    pub(super) fn earliest(
        &self,
        need: &Need<'_>,
        from: Time,
        before: Option<Time>,
        window: &mut Window,
    ) -> Option<Time> {
        let steps = self.steps();
        let mut first = self.at(from);
        'starts: while first < steps.len() {
            let at = steps[first].at.max(from);
            if before.is_some_and(|before| at >= before) {
                return None;
            }
            let until = need.end(at);
            for (ahead, step) in steps[first..].iter().enumerate() {
                if ahead > 0 && until.is_some_and(|until| step.at >= until) {
                    break;
                }
                if !step.free.may_hold(need.demand, need.count) {
                    first += ahead + 1;
                    continue 'starts;
                }
            }
            self.least(first, until, window);
            if self.slots(window, need) >= need.count {
                return Some(at);
            }
            first += 1;
        }
        None
    }

    /// Notes how the number of tasks of a role that fit from a time on changes with that time, from
    /// `first` on and before `after`.
    fn slots_over_time(
        &self,
        need: &Need<'_>,
        first: Time,
        after: Option<Time>,
        window: &mut Window,
        changes: &mut Vec<(Time, u32, i64)>,
    ) {
        let steps = self.steps();
        let mut fit = 0;
        let mut note = |at: Time, slots: u32| {
            let slots = i64::from(slots);
            if slots != fit {
                changes.push((at, self.rack, slots - fit));
                fit = slots;
            }
        };
        for here in self.at(first)..steps.len() {
            let at = steps[here].at.max(first);
            if after.is_some_and(|after| at >= after) {
                return;
            }
            let next = steps.get(here + 1).map_or(Time::NEVER, |step| step.at);
            let next = after.map_or(next, |after| after.min(next));
            if !steps[here].free.may_hold(need.demand, 1) {
                note(at, 0);
                continue;
            }
            let until = need.end(at);
            window.start(&steps[here], self.devices(here), self.divided());
            let mut ahead = here + 1;
            let inside = |step: &Step| until.is_none_or(|until| step.at < until);
            while ahead < steps.len() && inside(&steps[ahead]) {
                window.narrow(&steps[ahead], self.devices(ahead));
                ahead += 1;
            }
            note(at, self.slots(window, need));
            // As the start moves on, what comes later begins to count.
            let Some(run) = need.run else { continue };
            while let Some(step) = steps.get(ahead) {
                let counts_from = Time(step.at.0.saturating_sub(run.0) + 1);
                if counts_from >= next {
                    break;
                }
                window.narrow(step, self.devices(ahead));
                note(counts_from, self.slots(window, need));
                ahead += 1;
            }
        }
    }
}
