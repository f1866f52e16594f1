//! The Gittins index in a few queues: Tiresias for a cluster that knows how long its jobs last (Gu
//! and others, NSDI 2019).
//!
//! Jobs sink from queue to queue as under `tiresias`. Within a queue comes first who is likely to
//! end for the least GPU time, by what jobs needed that are over: those of the same group, of the
//! same tenant, or all, whichever are the closest of which enough are known. What a job received is
//! looked at in steps, so that a rank changes with a step, with what is learnt, and not in between.
//! Learns from ends alone, needs no estimate, and goes by queues only until enough jobs
//! are over. Long jobs may starve unless `promote` is set.

use hostler_core::job::Job;
use hostler_core::limits::SERVICES_LEARNT_MAX;
use hostler_core::pipeline::{HalfLifeDays, Head, Pipeline, ShareRule};
use hostler_core::policy::PolicyDef;
use hostler_core::stage::{Learnt, Order};
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

use super::likely_ends::{Ends, Needs};
use super::queues::{Promote, QueueLimits, Queues};
use super::rank::by_rank_if;
use super::steps::Steps;
use crate::place::PlaceRule;

/// The Gittins index in a few queues.
pub fn def() -> PolicyDef {
    let summary = "likeliest to end for little GPU time first, in a few queues, preempting";
    PolicyDef::new("gittins", summary, |config: Config| {
        if config.span_gpu_secs == 0 {
            return Err("`span_gpu_secs` must be at least 1".to_owned());
        }
        if !(1..=SERVICES_LEARNT_MAX).contains(&(config.ends_min as usize)) {
            return Err(format!("`ends_min` must be from 1 to {SERVICES_LEARNT_MAX}"));
        }
        let order = ByIndex {
            queues: Queues::new(&config.limits_gpu_secs, config.promote),
            steps: Steps::new(config.quantum_gpu_secs)?,
            span: Span::from_secs(config.span_gpu_secs).0,
            ends_min: config.ends_min as usize,
            learnt_at: None,
            ends: Ends::default(),
        };
        let pipeline = Pipeline {
            head: config.head,
            preempt: by_rank_if(config.preempt),
            sharing: config.sharing,
            ..Pipeline::new(order, config.place.build())
        };
        Ok(Box::new(pipeline.with_fair_share(config.fair_share_days)))
    })
}

hostler_core::settings! {
    struct Config {
        limits_gpu_secs: QueueLimits = QueueLimits::default(),
        promote: Promote = Promote::default(),
        /// GPU seconds that the index looks ahead: how likely is an end within them?
        span_gpu_secs: u64 = 3250,
        /// GPU seconds by which jobs must differ to be told apart: the larger, the fewer are
        /// stopped.
        quantum_gpu_secs: u64 = 7200,
        /// Ends of jobs that must be known, of like ones or of all, before they tell anything.
        ends_min: u32 = 100,
        /// Whether jobs take the place of running ones that rank after them.
        preempt: bool = true,
        head: Head = Head::Skips,
        place: PlaceRule = PlaceRule::BestFit,
        sharing: ShareRule = ShareRule::Requests,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

/// Bits of a key that tell jobs of one queue apart.
const INDEX_BITS: u32 = 50;

/// Ranks by queue, then by index.
struct ByIndex {
    queues: Queues,
    steps: Steps,
    /// In device-microseconds.
    span: u64,
    ends_min: usize,
    /// What follows from the state, and of which of its ends.
    learnt_at: Option<u64>,
    ends: Ends,
}

impl ByIndex {
    fn needs_like(&self, job: &Job) -> Option<&Needs> {
        self.ends.needs_like(job.asked())
    }
}

impl Order for ByIndex {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        let last = (1 << INDEX_BITS) - 1;
        let served = self.steps.step_of(view, job).begins;
        let index = self.needs_like(job).map_or(0, |needs| {
            needs.time_per_end(served, self.span).map_or(last, |time| time.min(last))
        });
        ((self.queues.queue_of(view, job) as i64) << INDEX_BITS) + index as i64
    }

    fn learn(&mut self, view: &View<'_>) -> Learnt {
        let services = view.services();
        let known = self.learnt_at.replace(services.learnt_count());
        if known == self.learnt_at {
            return Learnt::Nothing;
        }
        self.ends = Ends::new(services, self.ends_min);
        Learnt::Everything
    }

    fn keeps_rank(&self) -> bool {
        true
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let step = self.needs_like(job).and_then(|_| self.steps.next_at(view, job));
        [self.queues.moves_at(view, job), step].into_iter().flatten().min()
    }
}
