//! The search for the earliest time and place of a job.

use hostler_core::id::{ModelId, NodeId};
use hostler_core::job::{Gang, Locality};
use hostler_core::placement::{Part, Placement};
use hostler_core::units::{Span, Time};

use super::Calendar;
use super::node::{Need, NodeCalendar};
use super::peaks::Starts;
use super::window::Window;

/// How long a job runs on the GPUs of a model, or of any: the slowest that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order) struct Choice {
    /// None: any that it accepts.
    pub(in crate::order) only: Option<ModelId>,
    /// None: for ever.
    pub(in crate::order) run: Option<Span>,
}

/// A place and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::order) struct Found {
    pub(in crate::order) at: Time,
    /// None: never.
    pub(in crate::order) until: Option<Time>,
    pub(in crate::order) placement: Placement,
}

/// Memory for searches, used again; what is in it means nothing.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) window: Window,
    pub(super) able: Vec<NodeId>,
    pub(super) starts: Vec<Starts>,
    /// Changes of how many tasks fit: when, in which rack, and by how much.
    pub(super) changes: Vec<(Time, u32, i64)>,
}

impl Calendar {
    /// Books the earliest place from `from` on, and no later than `last`: of several choices that
    /// are as early the first.
    pub(in crate::order) fn reserve(
        &mut self,
        gangs: &[Gang],
        choices: &[Choice],
        from: Time,
        last: Time,
    ) -> Option<Found> {
        self.peaks.keep_up(&self.nodes, self.now);
        let mut best: Option<(Time, Choice)> = None;
        for choice in choices {
            let before = |at: &Time| best.is_none_or(|(known, _)| *at < known);
            let found = match gangs {
                [gang] => self.earliest(gang, *choice, from, last),
                gangs => self.together(gangs, *choice, from, last).map(|found| {
                    self.undo(&found.placement, found.at, found.until);
                    found.at
                }),
            };
            if let Some(at) = found.filter(before) {
                best = Some((at, *choice));
            }
        }
        let (at, choice) = best?;
        let found = self.book_at(gangs, choice, at);
        Some(found.expect("the search found a place at that time"))
    }

    /// The earliest place for several roles.
    fn together(
        &mut self,
        gangs: &[Gang],
        choice: Choice,
        mut from: Time,
        last: Time,
    ) -> Option<Found> {
        loop {
            // Each of them must fit by itself.
            let mut at = from;
            loop {
                let before = at;
                for gang in gangs {
                    at = self.earliest(gang, choice, at, last)?;
                }
                if at == before {
                    break;
                }
            }
            if let Some(found) = self.book_at(gangs, choice, at) {
                return Some(found);
            }
            from = self.next_gain(at)?;
        }
    }

    /// The next time at which more becomes free somewhere.
    fn next_gain(&self, after: Time) -> Option<Time> {
        let next = |node: &NodeCalendar| {
            let later = node.at(after) + 1..node.steps().len();
            later.into_iter().find(|at| node.gains(*at)).map(|at| node.steps()[at].at)
        };
        self.nodes.iter().filter_map(next).min()
    }

    /// Books the roles of a job one after the other at a time, each at the first place; all or
    /// none.
    fn book_at(&mut self, gangs: &[Gang], choice: Choice, at: Time) -> Option<Found> {
        let mut placement = Placement::default();
        let mut until = None;
        for (role, gang) in gangs.iter().enumerate() {
            let need = Need::new(gang, choice.run);
            until = need.end(at);
            let Some(parts) = self.first_place(role as u32, &need, choice.only, at) else {
                self.undo(&placement, at, until);
                return None;
            };
            parts.iter().for_each(|part| self.book_part(part, at, until));
            placement.parts.extend(parts);
        }
        placement.parts.sort_by_key(|part| (part.node, part.gang));
        Some(Found { at, until, placement })
    }

    /// The first place for a role at a time: the first node that holds all of it; else nodes in
    /// their order, each with as many tasks as it holds.
    fn first_place(
        &mut self,
        role: u32,
        need: &Need<'_>,
        only: Option<ModelId>,
        at: Time,
    ) -> Option<Vec<Part>> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let window = &mut scratch.window;
        let mut seats: Vec<(NodeId, u32)> = Vec::new();
        let when = (at, self.peaks.starts(need, at));
        self.accepted(need.demand, only, |nodes| {
            let mut nodes = nodes.iter().filter(|id| self.may_hold(**id, need, when, 1));
            nodes.any(|id| {
                let slots = self.slots_at(*id, need, at, window);
                let holds_all = slots == need.count;
                if holds_all {
                    seats.clear();
                }
                seats.extend((slots > 0).then_some((*id, slots)));
                holds_all
            })
        });
        let seats = self.divide(seats, need);
        let parts = seats.map(|seats| {
            let part = |(id, tasks): (NodeId, u32)| {
                let node = &self.nodes[id.index()];
                node.least(node.at(at), need.end(at), window);
                node.part(window, role, need, tasks)
            };
            seats.into_iter().map(part).collect()
        });
        self.scratch = scratch;
        parts
    }

    /// Divides the tasks of a role among nodes with room.
    pub(super) fn divide(
        &self,
        mut seats: Vec<(NodeId, u32)>,
        need: &Need<'_>,
    ) -> Option<Vec<(NodeId, u32)>> {
        let sum = |seats: &[(NodeId, u32)]| seats.iter().map(|seat| u64::from(seat.1)).sum::<u64>();
        let count = u64::from(need.count);
        if let [(_, all)] = &*seats
            && *all == need.count
        {
            return Some(seats);
        }
        match need.demand.locality {
            Locality::Node | Locality::Island => return None,
            Locality::Rack => {
                // The sort is stable: inside a rack the order stays.
                let rack = |seat: &(NodeId, u32)| self.nodes[seat.0.index()].rack;
                seats.sort_by_key(rack);
                let mut racks = seats.chunk_by(|one, other| rack(one) == rack(other));
                seats = racks.find(|seats| sum(seats) >= count)?.to_vec();
            }
            Locality::Any | Locality::Apart => {}
        }
        if sum(&seats) < count {
            return None;
        }
        let mut left = need.count;
        for seat in &mut seats {
            seat.1 = seat.1.min(left);
            left -= seat.1;
        }
        seats.retain(|seat| seat.1 > 0);
        Some(seats)
    }

    /// Tasks of a role that a node holds from a time on for as long as they run.
    pub(super) fn slots_at(
        &self,
        id: NodeId,
        need: &Need<'_>,
        at: Time,
        window: &mut Window,
    ) -> u32 {
        let node = &self.nodes[id.index()];
        let (from, until) = (node.at(at), need.end(at));
        for step in &node.steps()[from..] {
            if step.at > at && until.is_some_and(|until| step.at >= until) {
                break;
            }
            if !step.free.may_hold(need.demand, 1) {
                return 0;
            }
        }
        node.least(from, until, window);
        node.slots(window, need)
    }
}
