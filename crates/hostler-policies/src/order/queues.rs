//! Queues by attained service: which one a job is in, and when it moves. No policy of its own.
//!
//! All of it follows from what the state knows of a job: what it received, since when, and how
//! long it had nothing. There is no list of who was promoted when.

use hostler_core::job::{Job, Phase};
use hostler_core::policy::SettingType;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;
use serde::{Deserialize, Serialize};

use crate::limits::QUEUES_MAX;

/// GPU seconds at which jobs sink into the next queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct QueueLimits(Vec<u64>);

impl Default for QueueLimits {
    fn default() -> QueueLimits {
        QueueLimits(vec![3250, 7200])
    }
}

impl SettingType for QueueLimits {
    const TAKES: &'static str = "list of integers";
    const HELP: &'static str = "GPU seconds at which jobs sink into the next queue, ascending.";
}

impl TryFrom<Vec<u64>> for QueueLimits {
    type Error = String;

    fn try_from(limits: Vec<u64>) -> Result<QueueLimits, String> {
        let ascend = limits.is_sorted_by(|one, next| one < next);
        match ascend && limits.first() != Some(&0) && limits.len() < QUEUES_MAX {
            true => Ok(QueueLimits(limits)),
            false => Err(format!("fewer than {QUEUES_MAX} limits above 0, in ascending order")),
        }
    }
}

impl From<QueueLimits> for Vec<u64> {
    fn from(limits: QueueLimits) -> Vec<u64> {
        limits.0
    }
}

/// How many times as long as it ran a job waits before it begins anew; zero when it never does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Promote(f64);

impl SettingType for Promote {
    const TAKES: &'static str = "number";
    const HELP: &'static str = "A job that has waited so many times as long as it has run begins \
                                anew in the first queue: the less, the fairer. 0: never.";
}

impl TryFrom<f64> for Promote {
    type Error = &'static str;

    fn try_from(times: f64) -> Result<Promote, &'static str> {
        match times == 0.0 || (0.001..=1e6).contains(&times) {
            true => Ok(Promote(times)),
            false => Err("0, or a number from 0.001 to 1000000"),
        }
    }
}

impl From<Promote> for f64 {
    fn from(promote: Promote) -> f64 {
        promote.0
    }
}

/// Queues by attained service.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    /// GPU time at which jobs sink into the next queue (device-microseconds), ascending.
    limits: Vec<u64>,
    /// Thousandths of the setting; zero when nobody is promoted.
    promote_milli: u64,
}

impl Queues {
    pub(super) fn new(limits: &QueueLimits, promote: Promote) -> Queues {
        let limits = limits.0.iter().map(|secs| secs.saturating_mul(1_000_000)).collect();
        Queues { limits, promote_milli: (promote.0 * 1000.0).round() as u64 }
    }

    /// The queue of a job, from zero.
    ///
    /// Who waits stays in the queue that it was stopped in until all that it received is paid
    /// back: one that came back by and by would be stopped again at once.
    pub(super) fn queue_of(&self, view: &View<'_>, job: &Job) -> usize {
        let served = view.served(job);
        if job.phase == Phase::Pending && self.paid_back(job, view.now()) >= served {
            return 0;
        }
        self.queue_at(served.saturating_sub(self.paid_by_change(view, job)))
    }

    /// When a job moves to another queue, if no fact moves it before.
    pub(super) fn moves_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        if job.phase == Phase::Pending {
            return self.promoted_at(view, job);
        }
        let paid = self.paid_by_change(view, job);
        let counted = view.served(job).saturating_sub(paid);
        let limit = self.limits.get(self.queue_at(counted))?;
        view.served_at(job, limit.saturating_add(paid))
    }

    fn queue_at(&self, gpu_time: u64) -> usize {
        self.limits.partition_point(|limit| *limit <= gpu_time)
    }

    /// When a job that waits has waited long enough to begin anew.
    fn promoted_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let first = job.ledger.first_start.filter(|_| self.promote_milli > 0)?;
        if self.queue_of(view, job) == 0 {
            return None;
        }
        let served = u128::from(job.ledger.gpu_time()) * u128::from(self.promote_milli);
        let waited = served.div_ceil(u128::from(job.asked().gpu_milli()).max(1));
        Some(first + job.ledger.ran + Span(u64::try_from(waited).unwrap_or(u64::MAX)))
    }

    /// GPU time that had been paid back when a job last began to hold something, or ceased to.
    ///
    /// To one that begins anew the time to load what it saved is no service: where that is as long
    /// as the first queue, it would sink before it did anything, again and again.
    fn paid_by_change(&self, view: &View<'_>, job: &Job) -> u64 {
        let paid = self.paid_back(job, last_change(view, job));
        let begins_anew = self.promote_milli > 0 && paid >= job.ledger.gpu_time();
        let lease = job.lease().and_then(|lease| view.lease(lease)).filter(|_| begins_anew);
        paid.saturating_add(lease.map_or(0, |lease| view.gpu_time_of_load(lease)))
    }

    /// GPU time that waiting has paid back by a time at which a job holds nothing, or began to
    /// hold what it holds.
    fn paid_back(&self, job: &Job, at: Time) -> u64 {
        let Some(first) = job.ledger.first_start.filter(|_| self.promote_milli > 0) else {
            return 0;
        };
        let waited = at.since(first).saturating_sub(job.ledger.ran);
        let asked = u128::from(job.asked().gpu_milli());
        let paid = u128::from(waited.0) * asked / u128::from(self.promote_milli);
        u64::try_from(paid).unwrap_or(u64::MAX)
    }
}

/// When a job last began to hold something, or ceased to.
fn last_change(view: &View<'_>, job: &Job) -> Time {
    match job.lease() {
        Some(lease) => view.lease(lease).map_or(view.now(), |lease| lease.since),
        None => job.phase_since,
    }
}
