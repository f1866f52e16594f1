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

    /// Takes in what all keys depend on, before any of them is asked for at a question; tells
    /// which keys may be others than at the question before by that.
    fn learn(&mut self, view: &View<'_>) -> Learnt {
        let _ = view;
        Learnt::Nothing
    }

    /// Whether a job that runs never ranks after what it did, or after [`Order::key_at_most`], but
    /// for facts that are put in the journal and at times that [`Order::changes_at`] tells. Where
    /// that is so, a pass that preempts costs what changed.
    fn keeps_rank(&self) -> bool {
        false
    }

    /// The largest key that a running job may have before a fact is put in the journal, or its time
    /// comes. None where its key does not grow in between.
    fn key_at_most(&self, view: &View<'_>, job: &Job) -> Option<i64> {
        let _ = (view, job);
        None
    }

    /// Whether keys change by time alone at all. Only then [`Order::changes_at`] is asked.
    fn is_timed(&self) -> bool {
        false
    }

    /// Whether the times that [`Order::changes_at`] tells are those of questions, as of this one:
    /// they need not be while they change nothing.
    fn wakes(&self) -> bool {
        true
    }

    /// When the key of a job changes next by time alone: because it has waited, or has been served,
    /// for so long. None when only facts change it. The policy is asked at that time. Of a job that
    /// starts just now its phase tells; its lease is not there yet.
    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let _ = (view, job);
        None
    }
}

/// Which keys may be others than they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt {
    /// None of them.
    Nothing,
    /// Those of jobs that wait.
    Waiting,
    /// All of them, and the times at which they change.
    Everything,
}

/// Chooses nodes.
pub trait Place: Send {
    /// Takes in what choices depend on besides what is free, before any of a question.
    fn learn(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// Places `count` tasks of one role, all or none. When they do not fit, the answer is how many
    /// would; whether they fit does not depend on the rule, only where they go.
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall>;

    /// The same for a role of `spec`: where it goes may depend on what else the job says, whether
    /// it fits may not.
    fn choose_for(
        &self,
        spec: &JobSpec,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        let _ = spec;
        self.choose(free, gang, demand, count)
    }
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
    room.try_roles(spec, &mut |free, at, gang| {
        place.choose_for(spec, free, at, &gang.demand, gang.count)
    })
}

#[cfg(test)]
mod tests;
