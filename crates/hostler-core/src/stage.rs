//! The stages that a [`crate::pipeline::Pipeline`] is made of.

use crate::capacity::Capacity;
use crate::job::{Demand, Job, JobSpec};
use crate::placement::{Part, Placement};
use crate::reason::Reason;
use crate::view::View;

/// Ranks jobs.
pub trait Order: Send {
    /// Rank of a job: least first; equal keys go by submission.
    ///
    /// The key of a waiting job may depend only on facts that are put in the journal when they
    /// change: its specification, estimate and ledger. Not on the time.
    fn key(&self, view: &View<'_>, job: &Job) -> i64;
}

/// Chooses nodes.
pub trait Place: Send {
    /// Places `count` tasks of one role, all or none. When they do not fit, the answer is how many
    /// would; whether they fit does not depend on the rule, only where they go.
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall>;
}

/// A gang that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Tasks that would fit.
    pub fit: u32,
}

/// Whether a placement is worth a search: cheap, and never no where one could be found.
pub fn may_fit(free: &Capacity, spec: &JobSpec) -> bool {
    spec.gangs.iter().all(|gang| free.may_hold(&gang.demand, gang.count))
}

/// That a job does not fit, with a bound on how much of it would.
pub fn no_capacity(free: &Capacity, spec: &JobSpec) -> Reason {
    let bounds = spec.gangs.iter().map(|gang| free.slots_bound(&gang.demand));
    let tasks = spec.tasks();
    let fit = bounds.min().unwrap_or(0).min(tasks.saturating_sub(1));
    Reason::NoCapacity { tasks, fit }
}

/// Places all roles of a job, all or none. `free` is left as it was.
pub fn place_job(
    place: &dyn Place,
    free: &mut Capacity,
    spec: &JobSpec,
) -> Result<Placement, Shortfall> {
    if let [gang] = &*spec.gangs {
        let parts = place.choose(free, 0, &gang.demand, gang.count)?;
        return Ok(Placement { parts });
    }
    let mut placement = Placement::default();
    let mut shortfall = None;
    for (at, gang) in spec.gangs.iter().enumerate() {
        match place.choose(free, at as u32, &gang.demand, gang.count) {
            Ok(parts) => {
                for part in &parts {
                    free.book_part(part).expect("the rule chose free resources");
                }
                placement.parts.extend(parts);
            }
            Err(short) => {
                shortfall = Some(Shortfall { fit: placement.tasks() + short.fit });
                break;
            }
        }
    }
    free.release(&placement);
    shortfall.map_or(Ok(placement), Err)
}
