//! How fast a stay goes where it is, and who slows it down.

use hostler_core::id::{LeaseId, NodeId};
use hostler_core::placement::Placement;
use hostler_core::profile::Reach;
use hostler_core::units::Rate;

use super::queue::Coming;
use super::stay::Doing;
use super::{Arrivals, World};

impl<Source: Arrivals> World<Source> {
    pub(super) fn adjust_neighbours(&mut self, lease: LeaseId) {
        let (Some(neighbours), Some(stay)) = (&self.neighbours, self.stays.get(lease.0)) else {
            return;
        };
        for other in neighbours.of(lease, &stay.placement) {
            self.adjust(other);
        }
    }

    /// Gives a stay its present speed and finish.
    pub(super) fn adjust(&mut self, lease: LeaseId) {
        let rate = self.rate_of(lease);
        let Some(stay) = self.stays.get_mut(lease.0) else {
            return;
        };
        if stay.doing != Doing::Working || stay.rate == rate {
            return;
        }
        stay.change_rate(self.now, rate);
        let (finish, version) = (stay.finish_at(self.truth.run(stay.job)), stay.version);
        self.queue.push(finish, Coming::Finish(lease, version));
    }

    pub(super) fn rate_of(&self, lease: LeaseId) -> Rate {
        let stay = self.stays.get(lease.0).expect("the stay is here");
        let on_gpus = stay.placement.parts.iter().filter(|part| !part.slices.is_empty());
        let models = on_gpus.filter_map(|part| self.site.nodes[part.node.index()].gpu_model);
        let alone = self.site.physics.rate(&stay.spec, models, || self.reach(&stay.placement));
        let Some(neighbours) = &self.neighbours else {
            return alone;
        };
        let others = neighbours.of(lease, &stay.placement).into_iter();
        let others = others.filter_map(|other| self.stays.get(other.0));
        others.fold(alone, |rate, other| {
            rate.times(self.site.physics.beside(stay.spec.profile, other.spec.profile))
        })
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
