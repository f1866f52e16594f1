//! How fast a stay goes where it is, and who slows it down.

use hostler_core::event::Event;
use hostler_core::id::{LeaseId, ModelId, NodeId};
use hostler_core::placement::{Part, Placement};
use hostler_core::profile::Reach;
use hostler_core::units::{Mib, Rate, Span};

use super::queue::Coming;
use super::stay::Doing;
use super::{Arrivals, World};
use crate::physics::Neighbours;

/// After so long beside others a stay is looked at: many steps of work, and soon enough for a pair
/// that does badly to be parted.
const LOOK_AFTER: Span = Span::from_secs(30);

impl<Source: Arrivals> World<Source> {
    pub(super) fn adjust_neighbours(&mut self, lease: LeaseId) {
        let (Some(neighbours), Some(stay)) = (&self.neighbours, self.stays.get(lease.0)) else {
            return;
        };
        for other in neighbours.of(lease, &stay.placement) {
            self.adjust(other);
        }
    }

    /// A stay begins to work on its devices: it and its neighbours there share them from now on.
    pub(super) fn join_shared(&mut self, lease: LeaseId) {
        let (Some(shared), Some(stay)) = (&mut self.shared, self.stays.get(lease.0)) else {
            return;
        };
        let site = &self.site;
        let size_of = |part: &Part| {
            let model = site.nodes[part.node.index()].gpu_model;
            model.map_or(Mib(0), |model| site.models[model.index()].mem)
        };
        let used = self.truth.used(stay.job);
        let changed = shared.join(self.now, lease, used, &stay.placement, size_of);
        self.adjust_others(lease, changed);
    }

    /// A stay leaves its devices to its neighbours.
    pub(super) fn leave_shared(&mut self, lease: LeaseId) {
        if let Some(shared) = &mut self.shared {
            let changed = shared.leave(self.now, lease);
            self.adjust_others(lease, changed);
        }
    }

    fn adjust_others(&mut self, lease: LeaseId, changed: Vec<LeaseId>) {
        for other in changed.into_iter().filter(|other| *other != lease) {
            self.adjust(other);
        }
    }

    /// Gives a stay its present speed and finish.
    pub(super) fn adjust(&mut self, lease: LeaseId) {
        if self.stays.get(lease.0).is_none() {
            return;
        }
        // Who does not fit did not start; what cannot be is a crawl, not a division by zero.
        let rate = self.rate_of(lease).unwrap_or(Rate(1));
        let stay = self.stays.get_mut(lease.0).expect("looked at above");
        if stay.doing != Doing::Working || stay.rate == rate {
            return;
        }
        stay.change_rate(self.now, rate);
        self.await_finish(lease);
    }

    /// A stay goes on like this until its work is done; where speeds are learnt and others are
    /// beside it, it is looked at on the way.
    pub(super) fn await_finish(&mut self, lease: LeaseId) {
        let stay = self.stays.get(lease.0).expect("the stay is here");
        let (finish, version) = (stay.finish_at(self.truth.run(stay.job)), stay.version);
        self.queue.push(finish, Coming::Finish(lease, version));
        let neighbours = self.neighbours.as_ref().filter(|_| self.site.told_speeds.is_some());
        let shares = neighbours.is_some_and(|all| !all.of(lease, &stay.placement).is_empty());
        let at = stay.works_from().max(self.now) + LOOK_AFTER;
        if shares && at < finish {
            self.queue.push(at, Coming::Look(lease, version));
        }
    }

    /// An agent tells how far a stay has come.
    pub(super) fn look_at_speed(&mut self, lease: LeaseId, version: u32, events: &mut Vec<Event>) {
        let stay = self.stays.get(lease.0).filter(|stay| stay.version == version);
        if let Some(stay) = stay {
            let done = stay.worked_by(self.now);
            events.push(Event::Progress { lease, done, idle: Span::ZERO });
            // The longer it goes on like this, the less there is to learn.
            let again = self.now + self.now.since(stay.works_from());
            self.queue.push(again, Coming::Look(lease, version));
        }
    }

    /// Present speed of a stay; none where its job does not fit, alone or beside others.
    pub(super) fn rate_of(&self, lease: LeaseId) -> Option<Rate> {
        let stay = self.stays.get(lease.0).expect("the stay is here");
        let (placement, gpus) = (&stay.placement, stay.placement.gpus());
        let (physics, models) = (&self.site.physics, || self.models_of(placement));
        let alone = physics.rate(&stay.spec, gpus, models(), || self.reach(placement))?;
        let alone = match &self.shared {
            Some(shared) => alone.times(shared.rate(lease)),
            None => alone,
        };
        let Some(neighbours) = &self.neighbours else {
            return Some(alone);
        };
        let others = neighbours.of(lease, placement).into_iter();
        let mut others = others.filter_map(|other| self.stays.get(other.0));
        others.try_fold(alone, |rate, other| {
            let (own, beside) = (stay.spec.profile, other.spec.profile);
            Some(rate.times(physics.beside(own, beside, gpus, models())?))
        })
    }

    /// Whether a job fits where it is about to start, and those beside it still do.
    pub(super) fn fits(&self, lease: LeaseId) -> bool {
        let stay = self.stays.get(lease.0).expect("the stay is here");
        let beside = |neighbours: &Neighbours| {
            let others = neighbours.of(lease, &stay.placement).into_iter();
            let mut others = others.filter_map(|other| self.stays.get(other.0));
            others.all(|other| {
                let (own, gpus) = (other.spec.profile, other.placement.gpus());
                let models = self.models_of(&other.placement);
                self.site.physics.beside(own, stay.spec.profile, gpus, models).is_some()
            })
        };
        self.rate_of(lease).is_some() && self.neighbours.as_ref().is_none_or(beside)
    }

    fn models_of(&self, placement: &Placement) -> impl Iterator<Item = ModelId> {
        let on_gpus = placement.parts.iter().filter(|part| !part.slices.is_empty());
        on_gpus.filter_map(|part| self.site.nodes[part.node.index()].gpu_model)
    }

    pub(super) fn reach(&self, placement: &Placement) -> Reach {
        let racks = |node: NodeId| self.site.nodes[node.index()].rack;
        let Some(first) = placement.parts.first() else {
            return Reach::Island;
        };
        let same_node = placement.parts.iter().all(|part| part.node == first.node);
        let same_rack = placement.parts.iter().all(|part| racks(part.node) == racks(first.node));
        match (same_node, same_rack) {
            (true, _) => self.reach_inside(placement),
            (false, true) => Reach::Rack,
            (false, false) => Reach::Cluster,
        }
    }

    pub(super) fn reach_inside(&self, placement: &Placement) -> Reach {
        let node = placement.parts[0].node;
        let island_gpus = self.site.nodes[node.index()].island_gpus;
        let first = self.first_devices[node.index()];
        let slices = placement.parts.iter().flat_map(|part| &part.slices);
        let mut islands =
            slices.map(|slice| (slice.device.0 - first).checked_div(island_gpus).unwrap_or(0));
        let one = islands.next();
        if islands.all(|island| Some(island) == one) { Reach::Island } else { Reach::Node }
    }
}
