//! What a pass did to nodes so far, and who is there: for those that it looks at afterwards.

use std::collections::BTreeMap;

use super::reach::Now;
use super::runners::Runners;
use crate::capacity::Overlay;
use crate::id::{LeaseId, NodeId};
use crate::placement::Placement;

/// Nodes on which a pass started jobs, told some to stop or keeps room.
#[derive(Default)]
pub(super) struct Touched {
    pub(super) nodes: BTreeMap<NodeId, Place>,
    /// The best key of those that the pass told to stop. To who ranks before all of them they were
    /// as good as gone.
    pub(super) stopped_from: Option<i64>,
}

/// What is known of such a node.
#[derive(Default)]
pub(super) struct Place {
    /// Those who are there, once somebody asked.
    pub(super) held: Vec<Held>,
    is_known: bool,
    /// The best key of those that the pass told to stop.
    pub(super) stops_from: Option<i64>,
}

impl Place {
    /// Looks who is there, unless somebody did.
    pub(super) fn hold(&mut self, node: NodeId, (now, runners): (&Now<'_, '_>, &Runners)) {
        if !self.is_known {
            self.held = on_node(now, node, runners);
            self.is_known = true;
        }
    }
}

/// The better of two keys.
fn best(one: Option<i64>, other: i64) -> Option<i64> {
    Some(one.map_or(other, |one| one.min(other)))
}

impl Touched {
    pub(super) fn add(&mut self, placement: &Placement) {
        for part in &placement.parts {
            self.nodes.entry(part.node).or_default().is_known = false;
        }
    }

    /// Somebody with this key was told to stop.
    pub(super) fn add_stop(&mut self, key: i64, placement: &Placement) {
        self.stopped_from = best(self.stopped_from, key);
        for part in &placement.parts {
            let place = self.nodes.entry(part.node).or_default();
            (place.is_known, place.stops_from) = (false, best(place.stops_from, key));
        }
    }
}

/// A lease on a node; those that give way first sort last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    pub(super) stopping: bool,
    key: i64,
    pub(super) lease: LeaseId,
}

impl Held {
    /// Whether it leaves its place to one that waits with this key.
    pub(super) fn gives_way_to(&self, key: i64) -> bool {
        self.stopping || self.key > key
    }
}

pub(super) fn on_node(now: &Now<'_, '_>, node: NodeId, runners: &Runners) -> Vec<Held> {
    let leases = now.view.node(node).map_or(&[][..], |node| &node.leases);
    let held = leases.iter().filter_map(|id| {
        let seen = runners.seen(now.view, now.order, *id)?;
        debug_assert_eq!(Some(seen.told), now.view.lease(*id).map(|lease| lease.stop.is_some()));
        let stopping = seen.told || now.stopped.contains(id);
        Some(Held { stopping, key: seen.key, lease: *id })
    });
    held.collect()
}

/// Gives back what a lease holds on a node.
pub(super) fn give_back(without: &mut Overlay, now: &Now<'_, '_>, id: LeaseId, node: NodeId) {
    let lease = now.view.lease(id).expect("a node names live leases");
    let parts = lease.placement.parts.iter().filter(|part| part.node == node);
    parts.for_each(|part| without.release(now.free, part));
}
