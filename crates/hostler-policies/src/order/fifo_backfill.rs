//! First in, first out with backfilling (the "EASY" rule).
//!
//! Jobs start in the order of their submission. The first that does not fit, the head, gets a
//! reservation: a place, and the earliest time at which running jobs are believed to have left it.
//! A job behind it starts now if it fits and either is believed to end by that time or leaves the
//! reserved place alone. So GPUs that would idle are used, and only the head is protected: jobs
//! further back may be delayed by those that overtake them (`conservative-backfill` protects all).
//!
//! Needs estimates. Jobs without one are believed to run for ever: they are waited for last, and
//! start early only beside the reserved place. A job that outlasts its estimate is believed to
//! need a tenth more than it has run so far. When no end of a running job makes room for the head
//! (its nodes are down), there is nothing to protect and all that fits starts.
//!
//! Never preempts. Remembers nothing: the reservation is worked out anew at each question, on a
//! copy of the free capacity, node by node, and only when some job could make use of a gap.

use std::collections::BTreeMap;

use hostler_core::capacity::Capacity;
use hostler_core::job::{Demand, Job, JobSpec};
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::{Place, place_job};
use hostler_core::units::Time;
use hostler_core::view::View;

use super::outlook::{
    Door, Ending, believed_end, blocked, endings, explain, explain_rest, may_fit, no_capacity,
};
use crate::place::PlaceRule;

/// First in, first out with backfilling.
pub const DEF: PolicyDef = PolicyDef {
    kind: "fifo-backfill",
    summary: "first in, first out; others fill gaps if they do not delay the first that waits",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings("fifo-backfill", table)?;
        Ok(Box::new(FifoBackfill {
            place: config.place.build(),
            depth: config.depth as usize,
            estimate: config.estimate,
            door: Door::default(),
        }))
    },
};

hostler_core::settings! {
    struct Config {
        /// Waiting jobs behind the head that are considered: a hundred find nearly all gaps, and
        /// bound what a question costs on a long queue.
        depth: u32 = 100,
        /// Whose run times count. Few traces carry what users said, so the truth is the default;
        /// on a real cluster nobody knows it.
        estimate: EstimateSource = EstimateSource::Oracle,
        /// Which nodes a job gets.
        place: PlaceRule = PlaceRule::BestFit,
    }
}

struct FifoBackfill {
    place: Box<dyn Place>,
    depth: usize,
    estimate: EstimateSource,
    door: Door,
}

impl Policy for FifoBackfill {
    fn estimates(&self) -> EstimateSource {
        self.estimate
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let came = self.door.admit(view, plan);
        let mut started = Vec::new();
        let mut line = view.pending().iter();
        let place = &*self.place;
        let head = line.find_map(|id| blocked(place, view, plan, *id, &mut started));
        let Some(head) = head else { return };
        explain(plan, head, no_capacity(plan.free(), &head.spec));
        let mut gaps = Gaps {
            view,
            place,
            head,
            started,
            shadow: None,
            failed: BTreeMap::new(),
        };
        let mut left = self.depth;
        for id in line {
            if left == 0 {
                break;
            }
            if plan.has_job(*id) {
                continue;
            }
            let job = view.job(*id).expect("a waiting job is not over");
            if let Err(reason) = gaps.fill(plan, job) {
                explain(plan, job, reason);
                left -= 1;
            }
        }
        explain_rest(view, plan, &came, head.id);
    }
}

/// The search for jobs that fill gaps without delaying the head.
struct Gaps<'a> {
    view: &'a View<'a>,
    place: &'a dyn Place,
    head: &'a Job,
    /// Jobs that this question started before it came to the head.
    started: Vec<Ending>,
    /// The reservation, once somebody asked for it; none inside when there is none to be had.
    shadow: Option<Option<Shadow>>,
    /// Demands that found no room, with the smallest number of tasks that did not.
    failed: BTreeMap<&'a Demand, u32>,
}

/// The head's reservation.
struct Shadow {
    /// When the head is believed to start.
    at: Time,
    /// What is free then beside the head and those that will still run.
    free: Capacity,
}

impl<'a> Gaps<'a> {
    /// Starts a job that fits and does not delay the head.
    fn fill(&mut self, plan: &mut Plan<'_>, job: &'a Job) -> Result<(), Reason> {
        if self.has_failed(&job.spec) || !may_fit(plan.free(), &job.spec) {
            return Err(no_capacity(plan.free(), &job.spec));
        }
        let Ok(placement) = place_job(self.place, plan.free_mut(), &job.spec) else {
            self.note_failure(&job.spec);
            return Err(no_capacity(plan.free(), &job.spec));
        };
        let now = self.view.now();
        let end = believed_end(self.view, job, &placement, now);
        let place = self.place;
        let placement = match self.shadow(plan) {
            None => placement,
            Some(shadow) if end <= shadow.at && end < Time::NEVER => placement,
            Some(shadow) => beside(place, shadow, plan, &job.spec, placement).ok_or(
                Reason::WouldDelay {
                    reserved: self.head.id,
                },
            )?,
        };
        plan.start(job.id, placement)
            .expect("a waiting job starts on free nodes");
        Ok(())
    }

    /// The head's reservation. Jobs that were started behind it are in it already or gone by then,
    /// so the first answer stays.
    fn shadow(&mut self, plan: &Plan<'_>) -> Option<&mut Shadow> {
        if self.shadow.is_none() {
            let started = std::mem::take(&mut self.started);
            let ends = endings(self.view, started);
            let free = plan.free().clone();
            self.shadow = Some(reserve(self.place, free, &ends, &self.head.spec));
        }
        self.shadow.as_mut().expect("made above").as_mut()
    }

    fn has_failed(&self, spec: &JobSpec) -> bool {
        let [gang] = &*spec.gangs else { return false };
        self.failed
            .get(&gang.demand)
            .is_some_and(|count| *count <= gang.count)
    }

    fn note_failure(&mut self, spec: &'a JobSpec) {
        if let [gang] = &*spec.gangs {
            let least = self.failed.entry(&gang.demand).or_insert(u32::MAX);
            *least = gang.count.min(*least);
        }
    }
}

/// Gives stays back in the order of their end until the head fits, and books it there.
fn reserve(
    place: &dyn Place,
    mut free: Capacity,
    ends: &[Ending],
    head: &JobSpec,
) -> Option<Shadow> {
    for together in ends.chunk_by(|one, next| one.at == next.at) {
        for ending in together {
            free.release(&ending.placement);
        }
        if !may_fit(&free, head) {
            continue;
        }
        if let Ok(claim) = place_job(place, &mut free, head) {
            free.book(&claim).expect("the rule chose free resources");
            let at = together[0].at;
            return Some(Shadow { at, free });
        }
    }
    None
}

/// Books a job beside the head: where the rule wants it now, else where it would want it then, if
/// that is free now.
fn beside(
    place: &dyn Place,
    shadow: &mut Shadow,
    plan: &mut Plan<'_>,
    spec: &JobSpec,
    wanted: Placement,
) -> Option<Placement> {
    if shadow.free.book(&wanted).is_ok() {
        return Some(wanted);
    }
    let other = place_job(place, &mut shadow.free, spec).ok()?;
    let free = plan.free_mut();
    free.book(&other).ok()?;
    free.release(&other);
    shadow
        .free
        .book(&other)
        .expect("the rule chose free resources");
    Some(other)
}
