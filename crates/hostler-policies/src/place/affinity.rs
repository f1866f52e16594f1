//! Affinity: jobs that ask for as many GPUs are on the same nodes.
//!
//! A node belongs to the size of the oldest job on it, suspended ones included. A job goes to the
//! roomiest node of its size that holds it; else to one that nobody is on, else to any. What no
//! single node holds goes to few of them, as under `consolidate`. Where jobs take turns on the same
//! GPUs, those of one size leave and come as one, and no large job waits for a small one.

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::NodeId;
use hostler_core::job::{Demand, JobSpec, Locality};
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};
use hostler_core::state::Change;
use hostler_core::view::View;

use super::consolidate::Consolidate;
use super::{Seat, part};

/// The size of jobs on each node; a cache of the state.
#[derive(Default)]
pub struct Affinity {
    /// GPUs that the oldest job on each node asks for; none where nobody is.
    sizes: Vec<Option<u32>>,
    /// Step of the catalogue, and number of the journal, that this follows.
    seen: Option<(u64, u64)>,
}

impl Affinity {
    fn look_at(&mut self, view: &View<'_>, node: NodeId) {
        let Some(known) = view.node(node) else { return };
        let running = known.leases.iter().filter_map(|lease| view.lease(*lease)?.job.into());
        let oldest = running.chain(known.parked.iter().copied()).min();
        let size = oldest.and_then(|job| Some(view.job(job)?.asked().gpus()));
        self.sizes[node.index()] = size;
    }

    /// How well a node suits a job of a size: the less, the better.
    fn strangeness(&self, node: NodeId, gpus: u32) -> usize {
        match self.sizes.get(node.index()).copied().flatten() {
            Some(size) if size == gpus => 0,
            None => 1,
            Some(_) => 2,
        }
    }

    /// The node that a role of a job of a size goes to as a whole: the roomiest of its size, so
    /// that load is even; a part of a GPU goes where it leaves the least.
    fn one_node(&self, free: &Capacity, demand: &Demand, count: u32, gpus: u32) -> Option<Seat> {
        let walk = if demand.gpu.is_fraction() { Walk::Tightest } else { Walk::Roomiest };
        let mut best: [Option<NodeId>; 3] = [None; 3];
        free.visit(walk, demand, |node| {
            let known = &mut best[self.strangeness(node, gpus)];
            if known.is_none() && free.slots(node, demand, count) >= count {
                *known = Some(node);
            }
            best[0].is_some()
        });
        let node = best.into_iter().flatten().next()?;
        Some(Seat { node, tasks: count })
    }
}

impl Place for Affinity {
    fn learn(&mut self, view: &View<'_>) {
        let known = self.seen.filter(|(catalogue, _)| *catalogue == view.catalogue_step());
        let changes = known.and_then(|(_, journal)| view.journal().since(journal));
        self.seen = Some((view.catalogue_step(), view.journal().end()));
        let Some(changes) = changes else {
            self.sizes = vec![None; view.nodes().len()];
            return view.nodes().iter().for_each(|node| self.look_at(view, node.id));
        };
        for change in changes {
            match change {
                Change::Freed(node) | Change::Vacated(node, _) => self.look_at(view, *node),
                Change::Unqueued(job) | Change::Queued(job) => {
                    let Some(job) = view.job(*job) else { continue };
                    let lease = job.lease().and_then(|lease| view.lease(lease));
                    let parts = lease.iter().flat_map(|lease| &lease.placement.parts);
                    parts.for_each(|part| self.look_at(view, part.node));
                }
                Change::Ended(_)
                | Change::Slipped(_)
                | Change::Rescheduled(_)
                | Change::Closed(_) => {}
            }
        }
    }

    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        self.place(free, (gang, demand, count), count.saturating_mul(demand.gpu.0.div_ceil(1000)))
    }

    fn choose_for(
        &self,
        spec: &JobSpec,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        self.place(free, (gang, demand, count), spec.gpus())
    }
}

impl Affinity {
    fn place(
        &self,
        free: &Capacity,
        (gang, demand, count): (u32, &Demand, u32),
        gpus: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        let together = demand.locality != Locality::Apart && demand.gpu.0 > 0 && count > 0;
        let seat = if together { self.one_node(free, demand, count, gpus) } else { None };
        match seat {
            Some(seat) => Ok(vec![part(free, gang, demand, seat)]),
            None => Consolidate.choose(free, gang, demand, count),
        }
    }
}
