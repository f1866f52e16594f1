//! Finish-time fairness by leases, after Themis (Mahajan and others, NSDI 2020).
//!
//! Whoever would end latest, against what is due to him, comes first: jobs rank by the time from
//! their submission to their expected end over the time that they would take with an equal part of
//! the cluster, all at its reference speed. A job keeps its GPUs for a lease. Whenever one runs
//! out, and whenever a job comes or ends, those who wait and those whose lease is over are ranked
//! together: whoever is not among those that fit is stopped, and the others begin another lease.
//! Needs run times. By itself that starves large gangs, which never find enough leases over at
//! once; `mode` says what is done about it.

use hostler_core::cluster::Health;
use hostler_core::job::{Job, Phase};
use hostler_core::metrics::ideal_secs;
use hostler_core::pipeline::{Pipeline, Preempt};
use hostler_core::placement::Lease;
use hostler_core::policy::{PolicyDef, SettingType};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::{Learnt, Order};
use hostler_core::units::{Span, Time};
use hostler_core::view::View;
use serde::{Deserialize, Serialize};

use crate::limits::{CLAIM_LOOKS_PER_LEASE, CLAIM_MARGIN, UNKNOWN_RUN};
use crate::place::PlaceRule;

/// Finish-time fairness by leases.
pub fn def() -> PolicyDef {
    let summary = "worst off first, against an equal part of the cluster; GPUs on lease";
    PolicyDef::new("themis", summary, |config: Config| {
        if config.lease_secs == 0 {
            return Err("`lease_secs` must be at least 1".to_owned());
        }
        if !(1.0..=1e6).contains(&config.claim_at) {
            return Err("`claim_at` must be from 1 to 1000000".to_owned());
        }
        let order = WorstOff {
            lease: Span::from_secs(config.lease_secs),
            mode: config.mode,
            claim_at: config.claim_at,
            gpu_milli: 0,
            somebody_waits: None,
        };
        Ok(Box::new(Pipeline {
            preempt: Preempt::ByRank,
            estimates: config.estimate,
            ..Pipeline::new(order, config.place.build())
        }))
    })
}

hostler_core::settings! {
    struct Config {
        /// How long a job keeps its GPUs before others may have them.
        lease_secs: u64 = 600,
        mode: Mode = Mode::Reserve,
        /// With `reserve`: the finish-time fairness from which a job that waits has a claim to the
        /// places of jobs that fare better, whose lease goes on.
        claim_at: f64 = 1.1,
        estimate: EstimateSource = EstimateSource::Oracle,
        place: PlaceRule = PlaceRule::BestFit,
    }
}

/// What is done for gangs that do not find enough leases over at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Nothing.
    Plain,
    /// All leases end together.
    Aligned,
    /// Who fares badly enough need not wait for leases to end.
    Reserve,
}

impl SettingType for Mode {
    const TAKES: &'static str = "\"plain\" | \"aligned\" | \"reserve\"";
    const HELP: &'static str = "What is done for gangs that do not find enough leases over at \
                                once: nothing, all leases end together, or who fares badly enough \
                                need not wait for them to end.";
}

/// Ranks by finish-time fairness, worst first; those whose lease goes on give way to nobody, or to
/// those who fare much worse.
struct WorstOff {
    lease: Span,
    mode: Mode,
    claim_at: f64,
    /// GPUs of nodes that are not down, as of this question.
    gpu_milli: u64,
    /// Since when somebody waits, as of this question.
    somebody_waits: Option<Time>,
}

/// Steps in which finish-time fairness is told apart.
const STEPS: f64 = 1e9;

impl WorstOff {
    /// Expected completion time over that with an equal part of the cluster.
    fn fairness(&self, view: &View<'_>, job: &Job) -> f64 {
        let (life, left, ideal) = self.times(view, job);
        (life + left) / ideal
    }

    /// Seconds since its submission, seconds of work left, and those that all of it would take with
    /// an equal part of the cluster.
    fn times(&self, view: &View<'_>, job: &Job) -> (f64, f64, f64) {
        let life = view.now().since(job.submitted);
        let done = view.done(job).secs_f64();
        let run = job.estimate.map_or(UNKNOWN_RUN, |estimate| estimate.run).secs_f64();
        let left = believed_run(run, done) - done;
        let crowd = match life.0 {
            0 => view.job_count() as f64,
            life => view.crowd_since(job) as f64 / life as f64,
        };
        let part = job.asked().gpu_milli() as f64 / self.gpu_milli.max(1) as f64;
        (life.secs_f64(), left, ideal_secs((done + left).max(1e-6), crowd, part))
    }

    /// Whether the lease of a stay ran out since the policy was last asked. One that ran out while
    /// nobody waited was followed by the next, and nobody was asked about it.
    fn is_over(&self, view: &View<'_>, lease: &Lease) -> bool {
        let begun = begin_of(lease);
        let asked = view.asked_at().unwrap_or(Time::ZERO).max(self.soonest_end(lease));
        let over = self.leases_by(begun, view.now());
        let end = self.end_of(begun, over);
        let mattered = end == view.now() || self.somebody_waits.is_some_and(|since| since < end);
        over > self.leases_by(begun, asked) && mattered
    }

    /// No lease of a stay ends by then. Where all end together, one that has just begun is not for
    /// nothing: who loads what was saved works for as long as that took.
    fn soonest_end(&self, lease: &Lease) -> Time {
        match self.mode {
            Mode::Plain | Mode::Reserve => begin_of(lease),
            Mode::Aligned => begin_of(lease) + lease.load,
        }
    }

    /// Until when nobody has a claim to the place of a job: what it loads is for nothing unless it
    /// works as long afterwards.
    fn safe_until(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let lease = job.lease().and_then(|lease| view.lease(lease))?;
        let until = begin_of(lease) + lease.load;
        (self.mode == Mode::Reserve && until > view.now()).then_some(until)
    }

    /// Whether a job runs and its lease goes on.
    fn goes_on(&self, view: &View<'_>, job: &Job) -> bool {
        let lease = job.lease().and_then(|lease| view.lease(lease));
        lease.is_some_and(|lease| !self.is_over(view, lease))
    }

    /// Leases that are over by a time, of a stay that began `since`.
    fn leases_by(&self, since: Time, at: Time) -> u64 {
        at.since(self.counted_from(since)).0 / self.lease.0
    }

    /// When the lease of a stay that began `since` runs out next.
    fn next_end(&self, since: Time, now: Time) -> Time {
        self.end_of(since, self.leases_by(since, now) + 1)
    }

    /// When so many leases of a stay that began `since` are over.
    fn end_of(&self, since: Time, leases: u64) -> Time {
        self.counted_from(since) + Span(leases.saturating_mul(self.lease.0))
    }

    /// From when the leases of a stay that began `since` are counted.
    fn counted_from(&self, since: Time) -> Time {
        match self.mode {
            Mode::Plain | Mode::Reserve => since,
            Mode::Aligned => Time::ZERO,
        }
    }

    /// When a waiting job will have a claim to places of others, if nothing changes; it is looked
    /// at a few times in each lease at most.
    fn claims_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let (life, left, ideal) = self.times(view, job);
        let secs = self.claim_at * ideal - (life + left);
        let soonest = Span(self.lease.0 / CLAIM_LOOKS_PER_LEASE);
        (secs > 0.0)
            .then(|| view.now() + Span(((secs * 1e6) as u64).saturating_add(1)).max(soonest))
    }
}

/// From when the leases of a stay count: loading what was saved is nothing that it is for.
fn begin_of(lease: &Lease) -> Time {
    lease.since + lease.load
}

/// Seconds that a job takes which was believed to take so many, and has done so many: who outlasts
/// what was believed is believed to take twice as long. In steps: were it a little more each time,
/// whoever works would soon seem well off, and others would claim its place.
fn believed_run(believed: f64, done: f64) -> f64 {
    let believed = believed.max(1e-6);
    let doublings = libm::log2((done / believed).max(0.5)).floor() + 1.0;
    believed * libm::exp2(doublings)
}

/// The worse, the earlier.
fn rank(fairness: f64) -> i64 {
    -(fairness * STEPS).min(i64::MAX as f64) as i64
}

impl Order for WorstOff {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        match self.goes_on(view, job) {
            true => match self.mode {
                Mode::Plain | Mode::Aligned => i64::MIN,
                Mode::Reserve if self.safe_until(view, job).is_some() => i64::MIN,
                Mode::Reserve => rank((self.fairness(view, job) + CLAIM_MARGIN).max(self.claim_at)),
            },
            false => rank(self.fairness(view, job)),
        }
    }

    /// As long as its lease goes on, a job gives way to those alone that have a claim.
    fn key_at_most(&self, view: &View<'_>, job: &Job) -> Option<i64> {
        let most = match self.mode {
            Mode::Plain | Mode::Aligned => i64::MIN,
            Mode::Reserve => rank(self.claim_at),
        };
        // When its lease was over and it has kept its place, the next one begins.
        Some(if self.goes_on(view, job) { most } else { self.key(view, job).max(most) })
    }

    /// Every rank changes all the time.
    fn learn(&mut self, view: &View<'_>) -> Learnt {
        let up = view.nodes().iter().filter(|node| node.health != Health::Down);
        self.gpu_milli = up.map(|node| u64::from(node.spec.gpus) * 1000).sum();
        let waiting = view.pending().iter().filter_map(|id| view.job(*id));
        self.somebody_waits = waiting.map(|job| job.phase_since).min();
        Learnt::Waiting
    }

    fn keeps_rank(&self) -> bool {
        true
    }

    fn is_timed(&self) -> bool {
        true
    }

    /// While nobody waits it does not matter whose lease is over.
    fn wakes(&self) -> bool {
        self.somebody_waits.is_some()
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        match job.phase {
            Phase::Pending if self.mode == Mode::Reserve => self.claims_at(view, job),
            Phase::Starting(lease) | Phase::Running(lease) => {
                let lease = view.lease(lease);
                let begun = lease.map_or(view.now(), begin_of);
                let after = lease.map_or(view.now(), |lease| self.soonest_end(lease));
                let end = self.next_end(begun, after.max(view.now()));
                Some(self.safe_until(view, job).map_or(end, |until| until.min(end)))
            }
            Phase::Pending | Phase::Held | Phase::Stopping(_) | Phase::Done(_) => None,
        }
    }
}
