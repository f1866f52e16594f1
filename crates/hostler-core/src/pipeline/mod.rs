//! A policy made of stages: an order, a placement, and rules for what does not fit.
//!
//! Three passes share the backlog: strict (the first job that does not fit blocks the rest),
//! greedy (it is passed over) and by rank (it takes the place of running jobs that rank lower).

mod backlog;
mod fair_share;
mod greedy;
mod leaving;
mod notes;
mod preempt;
mod reach;
mod runners;
mod shapes;
mod share;
mod stirs;
mod strict;
mod touched;

use std::sync::Arc;

pub use backlog::{Backlog, BacklogChanges, Rank};
pub use fair_share::{HalfLifeDays, by_past, weigh_in_time};
use serde::{Deserialize, Serialize};
pub use share::ShareRule;

use crate::admit::EmptyCluster;
use crate::capacity::{Capacity, Overlay};
use crate::id::JobId;
use crate::job::{Job, JobSpec};
use crate::placement::Placement;
use crate::plan::Plan;
use crate::policy::{Cadence, Policy, SettingType, Wake};
use crate::predict::EstimateSource;
use crate::reason::Reason;
use crate::stage::{Learnt, Order, Place, no_capacity, place_job};
use crate::units::Span;
use crate::view::View;

/// What happens behind a job that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Head {
    /// Nothing: the order is strict.
    Blocks,
    /// Others that fit start; large jobs may wait for long.
    #[default]
    Skips,
}

impl SettingType for Head {
    const TAKES: &'static str = "\"blocks\" | \"skips\"";
    const HELP: &'static str = "What happens behind a job that does not fit.";
}

/// Whether running jobs give way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preempt {
    /// They run to their end.
    #[default]
    Never,
    /// They are stopped when jobs that rank before them need the room.
    ByRank,
}

/// A policy made of stages.
pub struct Pipeline {
    /// Who comes first.
    pub order: Box<dyn Order>,
    /// Where.
    pub place: Box<dyn Place>,
    /// What happens behind a job that does not fit.
    pub head: Head,
    /// Whether running jobs give way.
    pub preempt: Preempt,
    /// What jobs book that ask for a part of a GPU.
    pub sharing: ShareRule,
    /// When to ask.
    pub cadence: Cadence,
    /// Whose run times the order looks at.
    pub estimates: EstimateSource,
    /// After how long what a tenant used counts half; none when the past does not count.
    pub half_life: Option<Span>,
    /// What is remembered between questions.
    pub cache: Cache,
}

impl Pipeline {
    /// Jobs in this order onto the nodes that the rule wants: asked at every event, by what users
    /// say, greedily, as requested and without preemption.
    pub fn new(order: impl Order + 'static, place: Box<dyn Place>) -> Pipeline {
        Pipeline {
            order: Box::new(order),
            place,
            head: Head::Skips,
            preempt: Preempt::Never,
            sharing: ShareRule::Requests,
            cadence: Cadence::EveryEvent,
            estimates: EstimateSource::User,
            half_life: None,
            cache: Cache::default(),
        }
    }

    /// Tenants that used less than their due come first, if the past counts.
    pub fn with_fair_share(self, days: HalfLifeDays) -> Pipeline {
        let Some(half_life) = days.span() else { return self };
        Pipeline { order: by_past(self.order), half_life: Some(half_life), ..self }
    }
}

/// What a pipeline remembers between questions; all of it follows from the state.
#[derive(Default)]
pub struct Cache {
    backlog: Backlog,
    empty_cluster: EmptyCluster,
    blocked: Option<strict::Blocked>,
    shapes: shapes::ShapeQueues,
    runners: runners::Runners,
    reach: reach::Reach,
    stirs: stirs::Stirs,
    /// Memory for looks ahead; what is in it means nothing.
    spare: Capacity,
    without: Overlay,
}

impl Policy for Pipeline {
    fn cadence(&self) -> Cadence {
        self.cadence
    }

    fn estimates(&self) -> EstimateSource {
        self.estimates
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        if wake == Wake::Round {
            plan.begin_round();
        }
        self.place.learn(view);
        match self.order.learn(view) {
            Learnt::Nothing => {}
            Learnt::Waiting => self.cache.backlog.forget_keys(),
            Learnt::Everything => self.cache.backlog.forget(),
        }
        let mut news = self.cache.backlog.sync(view, &*self.order, self.sharing);
        self.cache.empty_cluster.refresh(view);
        self.turn_away(view, &mut news, plan);
        // What no strict pass counts on is forgotten: nodes that are freed meanwhile are not
        // told of again.
        let blocked = self.cache.blocked.take();
        match (self.preempts_now(wake), self.head) {
            (true, _) => self.by_rank(view, &news, plan),
            (false, Head::Blocks) => self.strict(view, &news, blocked, plan),
            (false, Head::Skips) => self.greedy(view, &news, plan),
        }
        if self.head == Head::Blocks && !self.preempts_now(wake) {
            self.resume_suspended(view, plan, |_, placement| Some(placement));
        }
        self.cache.backlog.wake_in_time(view, &*self.order, plan);
        if let Some(half_life) = self.half_life {
            weigh_in_time(view, half_life, plan);
        }
    }
}

impl Pipeline {
    /// Whether running jobs may have to give way at this question: with rounds, when one begins.
    fn preempts_now(&self, wake: Wake) -> bool {
        match (self.preempt, self.cadence) {
            (Preempt::Never, _) => false,
            (Preempt::ByRank, Cadence::EveryEvent) => true,
            (Preempt::ByRank, Cadence::Rounds(_)) => wake == Wake::Round,
        }
    }

    /// Lets suspended jobs go on behind one that does not fit: the memory that they wait in may be
    /// what it waits for. `beside` tells whether a place is not kept for others.
    fn resume_suspended(
        &self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        mut beside: impl FnMut(&mut Plan<'_>, Placement) -> Option<Placement>,
    ) {
        let mut waiting: Vec<&Job> = view.suspended().collect();
        waiting.retain(|job| !plan.has_job(job.id));
        waiting.sort_by_cached_key(|job| (self.order.key(view, job), job.id));
        for job in waiting {
            let spec = self.cache.backlog.spec(view, job.id);
            let found = place_job(&*self.place, plan, spec).ok();
            if let Some(placement) = found.and_then(|placement| beside(plan, placement)) {
                plan.start(job.id, placement).expect("a waiting job starts on free nodes");
            }
        }
    }

    /// Rejects newcomers that can never run.
    fn turn_away(&mut self, view: &View<'_>, news: &mut BacklogChanges, plan: &mut Plan<'_>) {
        let Cache { empty_cluster, backlog, .. } = &mut self.cache;
        let (place, sharing) = (&*self.place, self.sharing);
        let mut came = std::mem::take(&mut news.came);
        came.retain(|(_, id)| {
            // Was let in before.
            if news.only_ranks_otherwise(*id) {
                return true;
            }
            let spec = match sharing {
                ShareRule::Off => backlog.spec(view, *id),
                // Whoever fits by request fits when packed; room that others may not leave some
                // day is no promise.
                ShareRule::Requests | ShareRule::Packed => asked(view, *id),
            };
            empty_cluster.admits(view, plan, *id, spec, place)
        });
        news.came = came;
    }
}

/// What a waiting job asks for, as submitted.
fn asked<'a>(view: &'a View<'_>, id: JobId) -> &'a Arc<JobSpec> {
    &view.job(id).expect("a waiting job is not over").spec
}

/// Tells a newcomer why it waits. Jobs that were stopped keep the reason they have.
fn explain(view: &View<'_>, plan: &mut Plan<'_>, rank: &Rank, reason: Reason) {
    let job = view.job(rank.1).expect("a waiting job is not over");
    if job.reason == Reason::New {
        plan.hold(rank.1, reason);
    }
}

/// Tells newcomers that were not planned for that they do not fit.
fn explain_newcomers(
    view: &View<'_>,
    plan: &mut Plan<'_>,
    backlog: &Backlog,
    news: &BacklogChanges,
) {
    for rank in &news.came {
        let job = view.job(rank.1).expect("a waiting job is not over");
        if job.reason == Reason::New && !plan.has_job(rank.1) {
            let reason = no_capacity(plan.free(), backlog.spec(view, rank.1));
            plan.hold(rank.1, reason);
        }
    }
}

#[cfg(test)]
mod tests;
