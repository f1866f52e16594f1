//! What is known not to fit: a cache that spares backfilling policies most of their searches.
//!
//! A search that fails tells how many tasks would have fitted. That stays a bound until a node
//! frees something, and then grows by at most what the node holds. Whoever asks for as much or
//! more cannot fit either. No policy of its own; it decides nothing that a search would not.

use hostler_core::capacity::Capacity;
use hostler_core::id::NodeId;
use hostler_core::job::{Demand, JobSpec, Locality};
use hostler_core::placement::Placement;
use hostler_core::stage::{Place, Room, may_fit, place_job};

use crate::limits::HOPELESS_MAX;

/// Demands that found too little room, and at most how many tasks of each fit.
#[derive(Default)]
pub(super) struct Hopeless {
    known: Vec<(Demand, u32)>,
}

impl Hopeless {
    /// Takes in what became free since the last question; forgets all when that is not known.
    pub(super) fn follow(&mut self, free: &Capacity, freed: Option<&[NodeId]>) {
        let Some(freed) = freed else { return self.clear() };
        for (demand, bound) in &mut self.known {
            let gained = freed.iter().map(|node| free.slots(*node, demand, u32::MAX));
            *bound = gained.fold(*bound, u32::saturating_add);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// Places a job, unless it is known not to fit.
    pub(super) fn place(
        &mut self,
        place: &dyn Place,
        room: &mut impl Room,
        spec: &JobSpec,
    ) -> Option<Placement> {
        if self.rules_out(spec) || !may_fit(room.free(), spec) {
            return None;
        }
        let placed = place_job(place, room, spec);
        placed.map_err(|short| self.note(spec, short.fit)).ok()
    }

    fn rules_out(&self, spec: &JobSpec) -> bool {
        spec.gangs.iter().any(|gang| {
            let mut known = self.known.iter();
            known.any(|(demand, bound)| *bound < gang.count && asks_more(&gang.demand, demand))
        })
    }

    /// Notes that a search found room for `fit` tasks of a job and not for all. Jobs with several
    /// roles teach nothing: it may be their sum that does not fit.
    fn note(&mut self, spec: &JobSpec, fit: u32) {
        let [gang] = &*spec.gangs else { return };
        self.known.retain(|(demand, _)| *demand != gang.demand);
        if self.known.len() >= HOPELESS_MAX {
            self.known.remove(0);
        }
        self.known.push((gang.demand.clone(), fit));
    }
}

/// Whether no more tasks of `more` can fit than of `less`.
fn asks_more(more: &Demand, less: &Demand) -> bool {
    // Zero means in proportion, which compares with nothing else.
    let same_terms = (more.gpu_mem.0 == 0) == (less.gpu_mem.0 == 0);
    // Where nodes are kept, longer stays find less room, and those for a window another one.
    more.gpu >= less.gpu
        && more.window == less.window
        && more.stay.believed() >= less.stay.believed()
        && same_terms
        && more.gpu_mem >= less.gpu_mem
        && more.cpu >= less.cpu
        && more.mem >= less.mem
        && (more.models == less.models || !less.names_models())
        && more.needs.cover(less.needs)
        && (more.locality == less.locality || less.locality == Locality::Any)
}
