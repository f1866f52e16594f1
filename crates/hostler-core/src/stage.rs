//! The stages that a [`crate::pipeline::Pipeline`] is made of.

use crate::capacity::Capacity;
use crate::job::{Demand, Gang, Job, JobSpec};
use crate::placement::{Part, Placement};
use crate::reason::Reason;
use crate::units::Time;
use crate::view::View;

/// Ranks jobs.
pub trait Order: Send {
    /// Rank of a job: least first; equal keys go by submission.
    ///
    /// The key of a waiting job may depend on facts that are put in the journal when they change
    /// (its specification, estimate and ledger), and on the time as far as
    /// [`Order::changes_at`] tells. That of a running job is looked at when it is needed.
    fn key(&self, view: &View<'_>, job: &Job) -> i64;

    /// Whether a job that runs never ranks after what it did, but for facts that are put in the
    /// journal and at times that [`Order::changes_at`] tells. Where that is so, a pass that
    /// preempts costs what changed.
    fn keeps_rank(&self) -> bool {
        false
    }

    /// Whether keys change by time alone at all. Only then [`Order::changes_at`] is asked.
    fn is_timed(&self) -> bool {
        false
    }

    /// When the key of a job changes next by time alone: because it has waited, or has been served,
    /// for so long. None when only facts change it. The policy is asked at that time. Of a job that
    /// starts just now its phase tells; its lease is not there yet.
    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let _ = (view, job);
        None
    }
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

/// Somewhere that placements can be tried: a capacity of one's own, or a plan.
pub trait Room {
    /// What is free there.
    fn free(&self) -> &Capacity;

    /// Finds room for all roles of a job, all or none, by a rule that says where one role goes.
    /// What is free afterwards is what was free before.
    fn try_roles(&mut self, spec: &JobSpec, choose: Choose<'_>) -> Result<Placement, Shortfall>;
}

/// Says where the tasks of one role go, given what is free beside the roles before it.
pub type Choose<'a> = &'a mut dyn FnMut(&Capacity, u32, &Gang) -> Result<Vec<Part>, Shortfall>;

impl Room for Capacity {
    fn free(&self) -> &Capacity {
        self
    }

    fn try_roles(&mut self, spec: &JobSpec, choose: Choose<'_>) -> Result<Placement, Shortfall> {
        if let [gang] = &*spec.gangs {
            return choose(self, 0, gang).map(|parts| Placement { parts });
        }
        let mut placement = Placement::default();
        let mut shortfall = None;
        for (at, gang) in spec.gangs.iter().enumerate() {
            match choose(self, at as u32, gang) {
                Ok(parts) => {
                    for part in &parts {
                        self.book_part(part).expect("the rule chose free resources");
                    }
                    placement.parts.extend(parts);
                }
                Err(short) => {
                    shortfall = Some(Shortfall { fit: placement.tasks() + short.fit });
                    break;
                }
            }
        }
        self.release(&placement);
        shortfall.map_or(Ok(placement), Err)
    }
}

/// Places all roles of a job by one rule, all or none.
pub fn place_job(
    place: &dyn Place,
    room: &mut impl Room,
    spec: &JobSpec,
) -> Result<Placement, Shortfall> {
    room.try_roles(spec, &mut |free, at, gang| place.choose(free, at, &gang.demand, gang.count))
}

#[cfg(test)]
mod tests;
