//! Room for the head at the time of its reservation: whether it still fits beside those that start
//! before it and last beyond that. No policy of its own.
//!
//! Nothing is kept for the head but room: it fits as long as enough tasks of it do, wherever. So a
//! job that lasts longer may start on any node as long as the slots that it takes are not missed.

use std::collections::BTreeMap;

use hostler_core::capacity::{Capacity, Overlay, Walk};
use hostler_core::id::NodeId;
use hostler_core::job::{Gang, JobSpec, Locality};
use hostler_core::placement::{Part, Placement};
use hostler_core::stage::{Place, place_job};

/// What of the cluster the head can use at the time of its reservation.
pub(super) enum HeadRoom<'a> {
    /// The head has one role: slots are counted, on nodes that differ from now.
    Slots(Slots<'a>),
    /// It has several: whether they fit together is told by a search on a copy of what is free.
    Search { head: &'a JobSpec, place: &'a dyn Place, later: &'a mut Capacity },
}

/// Slots for the head by group of nodes: all of it must find room in one group.
pub(super) struct Slots<'a> {
    gang: &'a Gang,
    later: &'a mut Overlay,
    /// By number of the group.
    groups: BTreeMap<u32, u32>,
    /// Nobody knows when: whatever the head could use may be what it gets.
    all_needed: bool,
}

impl<'a> HeadRoom<'a> {
    /// The room for a head as it is now: not enough.
    pub(super) fn new(
        head: &'a JobSpec,
        place: &'a dyn Place,
        free: &Capacity,
        overlay: &'a mut Overlay,
        copy: &'a mut Capacity,
    ) -> HeadRoom<'a> {
        let [gang] = &*head.gangs else {
            copy.clone_from(free);
            return HeadRoom::Search { head, place, later: copy };
        };
        overlay.clear();
        HeadRoom::Slots(Slots::new(gang, overlay, free))
    }

    /// Gives back what is over by then. Where the head cannot go, nothing has to be.
    pub(super) fn release(&mut self, free: &Capacity, placement: &Placement) {
        match self {
            HeadRoom::Slots(slots) => {
                let useful = |part: &&Part| free.suits(part.node, &slots.gang.demand);
                for part in placement.parts.iter().filter(useful) {
                    slots.change(free, part, Overlay::release);
                }
            }
            HeadRoom::Search { later, .. } => later.release(placement),
        }
    }

    /// Whether the head fits.
    pub(super) fn fits(&mut self) -> bool {
        match self {
            HeadRoom::Slots(slots) => slots.fits(),
            HeadRoom::Search { head, place, later } => place_job(*place, *later, head).is_ok(),
        }
    }

    /// Whether room is counted by slots: who takes more then never leaves more.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self, HeadRoom::Slots(_))
    }

    /// Keeps what is free now on the nodes of a placement that starts and is over by then.
    pub(super) fn ignore(&mut self, free: &Capacity, placement: &Placement) {
        if let HeadRoom::Slots(slots) = self {
            placement.parts.iter().for_each(|part| slots.later.touch(free, part.node));
        }
    }

    /// Says that nobody knows when the time of the reservation comes: no slot is spare then.
    pub(super) fn keep_all(&mut self) {
        if let HeadRoom::Slots(slots) = self {
            slots.all_needed = true;
        }
    }

    /// Books parts that are free and last beyond that time, if the head still fits.
    pub(super) fn take(&mut self, free: &Capacity, parts: &[Part]) -> bool {
        let before = self.held_in_all();
        parts.iter().for_each(|part| self.book(free, part));
        let fits = self.fits() && before.is_none_or(|before| self.held_in_all() == Some(before));
        if !fits {
            self.give_back(free, parts);
        }
        fits
    }

    /// Slots of all groups, where none of them is spare.
    fn held_in_all(&self) -> Option<u32> {
        let HeadRoom::Slots(slots) = self else { return None };
        slots.all_needed.then(|| slots.groups.values().sum())
    }

    /// Undoes what [`HeadRoom::take`] has booked.
    pub(super) fn give_back(&mut self, free: &Capacity, parts: &[Part]) {
        for part in parts {
            match self {
                HeadRoom::Slots(slots) => slots.change(free, part, Overlay::release),
                HeadRoom::Search { later, .. } => later.release_part(part),
            }
        }
    }

    fn book(&mut self, free: &Capacity, part: &Part) {
        match self {
            HeadRoom::Slots(slots) => slots.change(free, part, Overlay::book),
            HeadRoom::Search { later, .. } => {
                later.book_part(part).expect("what is free now is free later");
            }
        }
    }

    /// The groups that hold the head, and how many slots of each are not needed.
    pub(super) fn spare_slots(&self) -> Vec<(u32, u32)> {
        let HeadRoom::Slots(slots) = self else { return Vec::new() };
        let spare = |held: u32| {
            let spare = held.checked_sub(slots.count())?;
            Some(if slots.all_needed { 0 } else { spare })
        };
        let groups = slots.groups.iter();
        groups.filter_map(|(group, held)| Some((*group, spare(*held)?))).collect()
    }

    /// Whether the head could use what a node of the group holds; of any, where none is spare.
    pub(super) fn uses(&self, free: &Capacity, group: u32, node: NodeId) -> bool {
        let HeadRoom::Slots(slots) = self else { return true };
        let concerns = slots.all_needed || slots.group_of(free, node) == group;
        concerns && slots.held(free, node) > 0
    }

    /// How many slots of its node a part would take.
    pub(super) fn loss(&mut self, free: &Capacity, part: &Part) -> u32 {
        let HeadRoom::Slots(slots) = self else { return 0 };
        let before = slots.held(free, part.node);
        slots.later.book(free, part);
        let after = slots.held(free, part.node);
        slots.later.release(free, part);
        before - after
    }
}

impl<'a> Slots<'a> {
    fn new(gang: &'a Gang, later: &'a mut Overlay, free: &Capacity) -> Slots<'a> {
        let mut slots = Slots { gang, later, groups: BTreeMap::new(), all_needed: false };
        // In any order: nodes that it passes over hold nothing.
        free.visit(Walk::Tightest, &gang.demand, |node| {
            let held = slots.held(free, node);
            *slots.groups.entry(slots.group_of(free, node)).or_default() += held;
            false
        });
        slots
    }

    fn count(&self) -> u32 {
        self.gang.count
    }

    fn fits(&self) -> bool {
        self.groups.values().any(|held| *held >= self.count())
    }

    /// Tasks of the head that a node holds.
    fn held(&self, free: &Capacity, node: NodeId) -> u32 {
        self.later.slots(free, node, &self.gang.demand, self.count())
    }

    fn group_of(&self, free: &Capacity, node: NodeId) -> u32 {
        match self.gang.demand.locality {
            Locality::Any | Locality::Apart => 0,
            Locality::Rack => free.rack(node),
            Locality::Node | Locality::Island => node.0,
        }
    }

    fn change(
        &mut self,
        free: &Capacity,
        part: &Part,
        how: impl FnOnce(&mut Overlay, &Capacity, &Part),
    ) {
        let before = self.held(free, part.node);
        how(self.later, free, part);
        let after = self.held(free, part.node);
        if before != after {
            let held = self.groups.entry(self.group_of(free, part.node)).or_default();
            *held = *held - before + after;
        }
    }
}
