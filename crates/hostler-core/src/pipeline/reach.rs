//! How far jobs reach that others give way to: at most how many tasks of a shape would fit if all
//! who rank after it were gone.
//!
//! Who looked for places to take in vain need not look again before more is free, or somebody who
//! runs ranks later than before. Only a bound: it spares searches that would fail, and decides
//! nothing.

use std::collections::BTreeMap;

use super::{BacklogChanges, Rank};
use crate::capacity::{Capacity, Overlay, Walk};
use crate::decision::Decision;
use crate::job::{Demand, Locality};
use crate::placement::{Lease, Part};
use crate::plan::Plan;
use crate::stage::Order;
use crate::view::View;

/// What is known of shapes, by their number.
#[derive(Default)]
pub(super) struct Reaches {
    known: BTreeMap<usize, Reach>,
    /// The catalogue and the abilities that this is about.
    catalogue: u64,
    /// Memory for looks at nodes without those who give way; what is in it means nothing.
    without: Overlay,
}

/// Of a shape: those who rank after this key were thought away, and at most so many tasks fit then.
struct Reach {
    key: i64,
    bound: u32,
}

impl Reaches {
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    pub(super) fn forget(&mut self, shape: usize) {
        self.known.remove(&shape);
    }

    /// Whether so many tasks are known not to fit, whoever gives way to a job of this rank.
    pub(super) fn rules_out(&self, shape: usize, rank: Rank, count: u32) -> bool {
        let known = self.known.get(&shape);
        known.is_some_and(|reach| rank.0 >= reach.key && reach.bound < count)
    }

    /// Notes how far a shape reaches for a job that found no place.
    pub(super) fn note(
        &mut self,
        view: &View<'_>,
        plan: &Plan<'_>,
        order: &dyn Order,
        (shape, least): (usize, &Demand),
        rank: Rank,
    ) {
        self.without.clear();
        let free = plan.free();
        let mut touched = Vec::new();
        let mut lift = |without: &mut Overlay, part: &Part| {
            if free.suits(part.node, least) {
                without.release(free, part);
                touched.push(part.node);
            }
        };
        for decision in plan.decisions() {
            if let Decision::Start { placement, .. } = decision {
                placement.parts.iter().for_each(|part| lift(&mut self.without, part));
            }
        }
        for lease in view.leases().filter(|lease| gives_way(view, order, lease, rank.0)) {
            lease.placement.parts.iter().for_each(|part| lift(&mut self.without, part));
        }
        touched.sort_unstable();
        touched.dedup();
        let mut reach = Reach { key: rank.0, bound: 0 };
        for node in &touched {
            reach.gain(least, self.without.slots(free, *node, least, u32::MAX));
        }
        free.visit(Walk::ById, least, |node| {
            if touched.binary_search(&node).is_err() {
                reach.gain(least, free.slots(node, least, u32::MAX));
            }
            false
        });
        self.known.insert(shape, reach);
    }

    /// Takes in that more is free on nodes than before, or that somebody there ranks later.
    pub(super) fn raise<'d>(
        &mut self,
        view: &View<'_>,
        free: &Capacity,
        order: &dyn Order,
        news: &BacklogChanges,
        least_of: impl Fn(usize) -> Option<&'d Demand>,
    ) {
        if std::mem::replace(&mut self.catalogue, view.catalogue_step()) != view.catalogue_step() {
            self.clear();
        }
        self.known.retain(|shape, _| least_of(*shape).is_some());
        for id in news.freed.iter().chain(&news.risen).copied() {
            let leases = view.node(id).into_iter().flat_map(|node| node.leases.iter());
            let leases: Vec<&Lease> = leases.filter_map(|lease| view.lease(*lease)).collect();
            for (shape, reach) in &mut self.known {
                let Some(least) = least_of(*shape).filter(|least| free.suits(id, least)) else {
                    continue;
                };
                self.without.clear();
                for lease in leases.iter().filter(|lease| gives_way(view, order, lease, reach.key))
                {
                    let here = lease.placement.parts.iter().filter(|part| part.node == id);
                    here.for_each(|part| self.without.release(free, part));
                }
                reach.gain(least, self.without.slots(free, id, least, u32::MAX));
            }
        }
    }
}

impl Reach {
    /// So many tasks may fit one more node.
    fn gain(&mut self, demand: &Demand, slots: u32) {
        self.bound = match demand.locality {
            Locality::Node | Locality::Island => self.bound.max(slots),
            Locality::Any | Locality::Apart | Locality::Rack => self.bound.saturating_add(slots),
        };
    }
}

/// Whether a stay is over soon, or could be ended for a job of this key: now, or after some time.
fn gives_way(view: &View<'_>, order: &dyn Order, lease: &Lease, key: i64) -> bool {
    let job = view.job(lease.job).expect("a lease belongs to a job");
    let by_time = view.abilities().lost_work_max.is_some();
    lease.stop.is_some()
        || (order.key(view, job) > key && (by_time || view.may_preempt(lease)))
}
