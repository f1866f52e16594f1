//! The most and the least that is free on each node in parts of the time to come: a search looks
//! closer only at nodes on which a task may find room in the part that it has come to, for as long
//! as it runs. It spares work; it decides nothing.

use hostler_core::id::NodeId;
use hostler_core::units::Time;

use super::node::{Need, NodeCalendar, Sizes};
use crate::limits::{CALENDAR_PARTS, PART_SAMPLES_MAX, PARTS_KEPT_MIN};

/// What is free at most and at least, by part of time and by node.
#[derive(Default)]
pub(super) struct Peaks {
    /// When each part begins; the first one began before now, the last one lasts for ever.
    begins: Vec<Time>,
    nodes: usize,
    /// Node by node of the first part, then of the second, and so on.
    most: Vec<Sizes>,
    /// The same. What is over by now may have been less.
    least: Vec<Sizes>,
    /// Changes that these parts are still good for.
    changes_left: usize,
}

/// Starts in one part, and the parts that are in the time of whoever starts then.
#[derive(Clone, Copy)]
pub(super) struct Starts {
    part: usize,
    /// Behind the last of the parts that are so from their begin to their end.
    within: usize,
}

impl Peaks {
    /// Divides the time from now on anew, if that is due: about as much changes in each part.
    pub(super) fn keep_up(&mut self, nodes: &[NodeCalendar], now: Time) {
        if self.nodes == nodes.len() && self.changes_left > 0 {
            return;
        }
        let steps: usize = nodes.iter().map(|node| node.steps().len()).sum();
        let every = steps / PART_SAMPLES_MAX + 1;
        let times = nodes.iter().flat_map(|node| node.steps()).map(|step| step.at);
        let mut times: Vec<Time> = times.step_by(every).filter(|at| *at > now).collect();
        times.sort_unstable();
        let nth = |part: usize| times.get(part * times.len() / CALENDAR_PARTS).copied();
        self.begins = vec![Time::ZERO];
        self.begins.extend((1..CALENDAR_PARTS).filter_map(nth));
        self.begins.dedup();
        self.nodes = nodes.len();
        self.changes_left = steps.max(PARTS_KEPT_MIN);
        for sizes in [&mut self.most, &mut self.least] {
            sizes.clear();
            sizes.resize(self.begins.len() * nodes.len(), Sizes::default());
        }
        nodes.iter().for_each(|node| self.look_at(node, Time::ZERO, None));
    }

    /// Something changed on a node from a time on until another, or for ever.
    pub(super) fn note(&mut self, node: &NodeCalendar, from: Time, until: Option<Time>) {
        if self.nodes > node.node.index() {
            self.changes_left = self.changes_left.saturating_sub(1);
            self.look_at(node, from, until);
        }
    }

    fn look_at(&mut self, node: &NodeCalendar, from: Time, until: Option<Time>) {
        let (steps, first) = (node.steps(), self.part_of(from));
        let mut at = node.at(self.begins[first]);
        for part in first..self.begins.len() {
            if until.is_some_and(|until| self.begins[part] >= until) {
                break;
            }
            let ends = self.ends(part);
            let goes_on = |at: usize| {
                let next = steps.get(at + 1).map(|next| next.at);
                next.is_some_and(|next| ends.is_none_or(|ends| next < ends))
            };
            let (mut most, mut least) = (steps[at].free, steps[at].free);
            while goes_on(at) {
                at += 1;
                (most, least) = (most.most(steps[at].free), least.least(steps[at].free));
            }
            // A step may begin just as the next part does.
            at += usize::from(steps.get(at + 1).is_some_and(|next| Some(next.at) == ends));
            let here = part * self.nodes + node.node.index();
            (self.most[here], self.least[here]) = (most, least);
        }
    }

    /// The part that a time is in.
    pub(super) fn part_of(&self, at: Time) -> usize {
        self.begins.partition_point(|begins| *begins <= at).saturating_sub(1)
    }

    /// When the next part begins.
    pub(super) fn ends(&self, part: usize) -> Option<Time> {
        self.begins.get(part + 1).copied()
    }

    /// Starts of a role from a time on, inside the part that this is in.
    pub(super) fn starts(&self, need: &Need<'_>, from: Time) -> Starts {
        let part = self.part_of(from);
        let within = match need.end(from) {
            Some(end) => self.part_of(end),
            None => self.begins.len(),
        };
        Starts { part, within }
    }

    /// Whether a node may hold so many tasks of a role that starts then, as far as can be told.
    pub(super) fn may_hold(&self, starts: Starts, id: NodeId, need: &Need<'_>, tasks: u32) -> bool {
        let Starts { part, within } = starts;
        let here = |part: usize| part * self.nodes + id.index();
        let holds = |sizes: Option<&Sizes>| sizes.is_none_or(|it| it.may_hold(need.demand, tasks));
        holds(self.most.get(here(part)))
            && (part + 1..within).all(|part| holds(self.least.get(here(part))))
    }

    /// Starts of a role from a time on and before another, part by part.
    pub(super) fn starts_between(
        &self,
        need: &Need<'_>,
        from: Time,
        until: Option<Time>,
        starts: &mut Vec<Starts>,
    ) {
        starts.clear();
        starts.push(self.starts(need, from));
        let later = self.begins.iter().skip(self.part_of(from) + 1);
        let later = later.take_while(|begins| until.is_none_or(|until| **begins < until));
        starts.extend(later.map(|begins| self.starts(need, *begins)));
    }
}

#[cfg(test)]
mod tests {
    use hostler_core::cluster::{Health, Node, NodeSpec, Power};
    use hostler_core::id::{DeviceId, ModelId};
    use hostler_core::job::Demand;
    use hostler_core::placement::Part;
    use hostler_core::random::Random;
    use hostler_core::units::{Mib, Milli, Span};

    use super::super::node::Open;
    use super::super::window::Window;
    use super::*;

    const NODES: u32 = 4;

    fn node(id: u32) -> NodeCalendar {
        let spec = NodeSpec {
            cpu: Milli(8000),
            mem: Mib(100),
            gpu_model: Some(ModelId(0)),
            gpus: 2,
            ..NodeSpec::default()
        };
        let node = Node {
            id: NodeId(id),
            spec,
            health: Health::Up,
            power: Power::On,
            first_device: DeviceId(2 * id),
            leases: Vec::new(),
            parked: Vec::new(),
            retired: false,
            kept: None,
        };
        let mut calendar = NodeCalendar::new(&node, Mib(100), 0);
        calendar.set_open(Open::of(&node), 0);
        calendar
    }

    fn demand(random: &mut Random) -> Demand {
        let gpu = [0, 300, 500, 1000, 2000][(random.bits() % 5) as usize];
        let (cpu, mem) = (1 + random.bits() % 6, random.bits() % 60);
        let (cpu, mem) = (Milli(cpu as u32 * 1000), Mib(mem as u32));
        Demand { gpu: Milli(gpu), cpu, mem, ..Demand::default() }
    }

    /// Books a task at a time at which it fits; where, and until when.
    fn book(random: &mut Random, nodes: &mut [NodeCalendar], peaks: &mut Peaks) -> Option<Booked> {
        let (demand, run) = (demand(random), Some(Span(1 + random.bits() % 200)));
        let need = Need { demand: &demand, count: 1, run };
        let node = &mut nodes[(random.bits() % u64::from(NODES)) as usize];
        let mut window = Window::default();
        let from = node.earliest(&need, Time(random.bits() % 500), None, &mut window)?;
        node.least(node.at(from), need.end(from), &mut window);
        let part = node.part(&mut window, 0, &need, 1);
        node.book(&part, from, need.end(from));
        peaks.note(node, from, need.end(from));
        Some((part, from, need.end(from)))
    }

    type Booked = (Part, Time, Option<Time>);

    #[test]
    fn where_a_task_finds_room_nothing_is_said_against_it() {
        let mut random = Random::new(11);
        let mut nodes: Vec<NodeCalendar> = (0..NODES).map(node).collect();
        let (mut peaks, mut booked, mut window) = (Peaks::default(), Vec::new(), Window::default());
        let (mut found, mut spared) = (0, 0);
        for round in 0..4000 {
            if round % 97 == 0 {
                peaks.changes_left = 0;
            }
            peaks.keep_up(&nodes, Time::ZERO);
            booked.extend(book(&mut random, &mut nodes, &mut peaks));
            if random.bits().is_multiple_of(3) && !booked.is_empty() {
                let at = (random.bits() % booked.len() as u64) as usize;
                let (part, from, until): Booked = booked.swap_remove(at);
                let node = &mut nodes[part.node.index()];
                node.release(&part, from, until);
                peaks.note(node, from, until);
            }
            let run = Some(random.bits() % 300).filter(|run| *run > 0).map(Span);
            let (demand, from) = (demand(&mut random), Time(random.bits() % 600));
            let need = Need { demand: &demand, count: 1 + (random.bits() % 2) as u32, run };
            let (starts, ends) = (peaks.starts(&need, from), peaks.ends(peaks.part_of(from)));
            for node in &nodes {
                let fits = node.earliest(&need, from, ends, &mut window).is_some();
                let may_hold = peaks.may_hold(starts, node.node, &need, need.count);
                assert!(may_hold || !fits, "{:?} at {from:?} for {run:?}", node.node);
                found += usize::from(fits);
                spared += usize::from(!may_hold);
            }
        }
        assert!(found > 100 && spared > 1000, "{found} {spared}");
    }
}
