//! Whether a job that does not fit may do so by now, while resources are given back on trial.
//!
//! A search over the cluster at every step would cost more than the steps. Counting what each node
//! gains tells, without one, that the job cannot fit yet. It never says that a job fits.

use crate::capacity::{Capacity, Overlay};
use crate::job::{Demand, JobSpec, Locality};
use crate::placement::{Part, Placement};
use crate::stage::{Shortfall, may_fit};

/// A bound on how many tasks of a job fit.
pub struct FitBound<'a> {
    spec: &'a JobSpec,
    /// At most this many tasks fit, for a job with one role.
    fit: u32,
}

impl<'a> FitBound<'a> {
    /// The bound of a job for which a search found too little room.
    pub fn new(spec: &'a JobSpec, short: Shortfall) -> FitBound<'a> {
        FitBound { spec, fit: short.fit }
    }

    /// Whether the job could sit where a placement is. What it holds need not be given back
    /// otherwise: the job will not be placed there.
    pub fn concerns(&self, free: &Capacity, placement: &Placement) -> bool {
        let gangs = &self.spec.gangs;
        let suits = |part: &Part| gangs.iter().any(|gang| free.suits(part.node, &gang.demand));
        placement.parts.iter().any(suits)
    }

    /// Gives a placement back.
    pub fn release(&mut self, free: &mut Capacity, placement: &Placement) {
        let [gang] = &*self.spec.gangs else {
            free.release(placement);
            return;
        };
        for part in &placement.parts {
            let slots = |free: &Capacity| free.slots(part.node, &gang.demand, gang.count);
            let before = slots(free);
            free.release_part(part);
            self.grow(&gang.demand, before, slots(free));
        }
    }

    /// Whether it counts: it does for jobs with one role.
    pub(crate) fn counts(&self) -> bool {
        self.spec.gangs.len() == 1
    }

    /// Counts a placement as given back, in `without` alone.
    pub(crate) fn release_beside(
        &mut self,
        free: &Capacity,
        without: &mut Overlay,
        placement: &Placement,
    ) {
        for part in &placement.parts {
            for gang in &self.spec.gangs {
                let before = without.slots(free, part.node, &gang.demand, gang.count);
                without.release(free, part);
                let after = without.slots(free, part.node, &gang.demand, gang.count);
                self.grow(&gang.demand, before, after);
            }
        }
    }

    /// A node holds other numbers of tasks than before.
    fn grow(&mut self, demand: &Demand, before: u32, after: u32) {
        self.fit = match demand.locality {
            Locality::Node | Locality::Island => self.fit.max(after),
            Locality::Any | Locality::Apart | Locality::Rack => {
                self.fit.saturating_add(after - before)
            }
        };
    }

    /// Whether the job cannot fit.
    pub fn is_lost(&self) -> bool {
        matches!(&*self.spec.gangs, [gang] if self.fit < gang.count)
    }

    /// Whether a search is worth its while.
    pub fn is_worth_a_search(&self, free: &Capacity) -> bool {
        !self.is_lost() && may_fit(free, self.spec)
    }
}

#[cfg(test)]
mod tests;
