//! What jobs used in a period: GPU time, waiting, and what came to nothing.
//!
//! A fold over jobs, over or not, of which each knows its stays. Everything is clipped at the
//! borders of the period, and jobs that run are counted up to now. Days, weeks and months are
//! those of UTC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};

use crate::job::JobState;
use crate::store::stays::JOULES_PER_KWH;
use crate::store::{JobRow, StayRow, gpu_micros};

/// Microseconds of a day.
const DAY: u64 = 86_400_000_000;

/// What the model of a GPU is called where there is none, or none is known.
const NO_MODEL: &str = "-";

/// What use is listed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UsageBy {
    /// Who submitted the jobs.
    User,
    /// Who pays for them.
    Tenant,
    /// The GPUs that they were on.
    Model,
    /// Their recurrence group.
    Group,
    /// The day, as in `2026-11-16`.
    Day,
    /// The week, by the day of its Monday.
    Week,
    /// The month, as in `2026-11`.
    Month,
}

/// Which use is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// What it is listed by.
    #[param(inline)]
    pub by: UsageBy,
    /// Seconds since the epoch at which the period begins; 30 days ago when not given.
    #[param(minimum = 0)]
    pub since: Option<f64>,
    /// Seconds since the epoch at which it ends; now when not given.
    #[param(minimum = 0)]
    pub until: Option<f64>,
    /// Only jobs of this tenant.
    pub tenant: Option<String>,
    /// Only jobs of this user.
    pub user: Option<String>,
}

/// What was used in a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Seconds since the epoch at which the period begins.
    pub since: f64,
    /// Seconds since the epoch at which it ends; never later than the answer.
    pub until: f64,
    /// What the rows are by.
    pub by: UsageBy,
    /// The rows: by day, week and month in order of time, else the largest use first.
    pub rows: Vec<UsageRow>,
    /// All of them. A job that is in several rows is counted once.
    pub total: UsageRow,
    /// Jobs of which only the first start and the end are known, because an older version of the
    /// daemon ran them: they are counted as one stay.
    pub guessed_jobs: u32,
}

/// What was used by one user, tenant, GPU model or group, or in one day, week or month.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    /// Which; empty for the sum of all.
    pub key: String,
    /// Jobs that had resources.
    pub jobs: u32,
    /// Jobs that finished.
    pub finished: u32,
    /// Jobs that failed or ran out of time.
    pub failed: u32,
    /// Hours of GPUs that were booked, parts of GPUs as parts.
    pub gpu_hours: f64,
    /// Of those, hours of jobs that failed or ran out of time.
    pub failed_gpu_hours: f64,
    /// Of those, hours of stays that were cut short and of which nothing was saved, of other jobs.
    pub lost_gpu_hours: f64,
    /// Hours that jobs waited, held ones included: between submission and end, without resources.
    pub waited_hours: f64,
    /// Energy of stays that are over and whose GPUs tell it; none where there is none.
    pub energy_kwh: Option<f64>,
}

/// What is summed up of a row, without rounding.
#[derive(Clone, Debug, Default)]
struct Sum {
    jobs: u32,
    finished: u32,
    failed: u32,
    /// GPU time, in microseconds.
    gpu: u128,
    failed_gpu: u128,
    lost_gpu: u128,
    waited: u128,
    /// In millijoules, where anything was measured.
    energy: Option<u128>,
}

/// A fold over jobs.
pub struct Meter {
    by: UsageBy,
    since: u64,
    until: u64,
    now: u64,
    sums: BTreeMap<String, Sum>,
    total: Sum,
    guessed: u32,
}

impl Meter {
    /// For a period in microseconds. What is still to come has not been used.
    pub fn new(by: UsageBy, since: u64, until: u64, now: u64) -> Meter {
        let until = until.min(now);
        let (sums, total) = (BTreeMap::new(), Sum::default());
        Meter { by, since: since.min(until), until, now, sums, total, guessed: 0 }
    }

    /// Counts a job; none may be counted twice.
    pub fn add(&mut self, job: &JobRow) {
        let end = job.ended.unwrap_or(self.now);
        let guess = guess(job, end);
        let stays = if guess.is_empty() { &job.facts.stays } else { &guess };
        let did_fail = matches!(job.state, JobState::Failed | JobState::TimedOut);
        let mut rows: BTreeMap<String, Sum> = BTreeMap::new();
        for stay in stays {
            self.add_stay(job, stay, did_fail, &mut rows);
        }
        let model = stays.first().map_or("", |stay| &stay.model);
        for (from, to) in waits(job.submitted, end, self.now, stays) {
            for (key, from, to) in self.pieces(job, model, from, to) {
                rows.entry(key).or_default().waited += u128::from(to - from);
            }
        }
        if let Some(ended) = job.ended.filter(|at| (self.since..self.until).contains(at)) {
            for (key, ..) in self.pieces(job, model, ended, ended + 1) {
                let sum = rows.entry(key).or_default();
                sum.finished += u32::from(job.state == JobState::Finished);
                sum.failed += u32::from(did_fail);
            }
        }
        self.guessed += u32::from(!guess.is_empty() && rows.values().any(|sum| sum.jobs > 0));
        self.total.jobs += u32::from(rows.values().any(|sum| sum.jobs > 0));
        for (key, sum) in rows {
            self.total.add(&Sum { jobs: 0, ..sum.clone() });
            self.sums.entry(key).or_default().add(&sum);
        }
    }

    fn add_stay(
        &self,
        job: &JobRow,
        stay: &StayRow,
        did_fail: bool,
        rows: &mut BTreeMap<String, Sum>,
    ) {
        let to = stay.to.unwrap_or(self.now);
        let long = u128::from(to.saturating_sub(stay.from));
        for (key, from, to) in self.pieces(job, &stay.model, stay.from, to) {
            let sum = rows.entry(key).or_default();
            // One job is one, however many stays of it are in the row.
            sum.jobs = 1;
            // A stay that stands for several is spread over all of its time.
            let gpu = u128::from(stay.gpu_time(self.now)) * u128::from(to - from) / long;
            sum.gpu += gpu;
            if let Some(joules) = stay.joules {
                let energy = u128::from(joules) * 1000 * u128::from(to - from) / long;
                sum.energy = Some(sum.energy.unwrap_or(0) + energy);
            }
            if did_fail {
                sum.failed_gpu += gpu;
            } else if stay.lost {
                sum.lost_gpu += gpu;
            }
        }
    }

    /// The part of some time that is in the period, row by row.
    fn pieces(&self, job: &JobRow, model: &str, from: u64, to: u64) -> Vec<(String, u64, u64)> {
        let (from, to) = (from.max(self.since), to.min(self.until));
        if from >= to {
            return Vec::new();
        }
        let named =
            |text: &str| if text.is_empty() { NO_MODEL.to_owned() } else { text.to_owned() };
        let key = match self.by {
            UsageBy::User => named(&job.user),
            UsageBy::Tenant => named(&job.tenant),
            UsageBy::Model => named(model),
            UsageBy::Group => named(&job.request.group),
            UsageBy::Day | UsageBy::Week | UsageBy::Month => return self.split(from, to),
        };
        vec![(key, from, to)]
    }

    /// Some time, cut where days, weeks or months begin.
    fn split(&self, mut from: u64, to: u64) -> Vec<(String, u64, u64)> {
        let mut pieces = Vec::new();
        while from < to {
            let day = from / DAY;
            let (first, next) = match self.by {
                UsageBy::Week => {
                    // The epoch was a Thursday.
                    let monday = (day + 3) / 7 * 7;
                    (monday.saturating_sub(3), monday + 4)
                }
                UsageBy::Month => {
                    let of = date(day);
                    let first = day + 1 - u64::from(of.day());
                    (first, first + u64::from(of.month().length(of.year())))
                }
                _ => (day, day + 1),
            };
            let of = date(first);
            let (year, month) = (of.year(), u8::from(of.month()));
            let key = match self.by {
                UsageBy::Month => format!("{year:04}-{month:02}"),
                _ => format!("{year:04}-{month:02}-{:02}", of.day()),
            };
            let end = to.min(next * DAY);
            pieces.push((key, from, end));
            from = end;
        }
        pieces
    }

    /// What was counted.
    pub fn report(self) -> Usage {
        let mut rows: Vec<UsageRow> =
            self.sums.into_iter().map(|(key, sum)| sum.row(key)).collect();
        if !matches!(self.by, UsageBy::Day | UsageBy::Week | UsageBy::Month) {
            rows.sort_by(|one, other| other.gpu_hours.total_cmp(&one.gpu_hours));
        }
        Usage {
            since: self.since as f64 / 1e6,
            until: self.until as f64 / 1e6,
            by: self.by,
            rows,
            total: self.total.row(String::new()),
            guessed_jobs: self.guessed,
        }
    }
}

impl Sum {
    fn add(&mut self, more: &Sum) {
        self.jobs += more.jobs;
        self.finished += more.finished;
        self.failed += more.failed;
        self.gpu += more.gpu;
        self.failed_gpu += more.failed_gpu;
        self.lost_gpu += more.lost_gpu;
        self.waited += more.waited;
        if let Some(energy) = more.energy {
            self.energy = Some(self.energy.unwrap_or(0) + energy);
        }
    }

    fn row(&self, key: String) -> UsageRow {
        let hours = |micros: u128| micros as f64 / 3.6e9;
        UsageRow {
            key,
            jobs: self.jobs,
            finished: self.finished,
            failed: self.failed,
            gpu_hours: hours(self.gpu),
            failed_gpu_hours: hours(self.failed_gpu),
            lost_gpu_hours: hours(self.lost_gpu),
            waited_hours: hours(self.waited),
            energy_kwh: self.energy.map(|energy| energy as f64 / 1000.0 / JOULES_PER_KWH),
        }
    }
}

/// The one stay that is known of a job that an older version ran.
fn guess(job: &JobRow, end: u64) -> Vec<StayRow> {
    let Some(from) = job.facts.started.filter(|_| job.facts.stays.is_empty()) else {
        return Vec::new();
    };
    let gpus = job.request.gpus * f64::from(job.request.tasks.max(1));
    let model = job.request.gpu_models.first().cloned().unwrap_or_default();
    let gpu_milli = (gpus * 1000.0).round() as u64;
    let gpu_micros = gpu_micros(gpu_milli, end.saturating_sub(from));
    vec![StayRow { from, to: Some(end), model, gpu_milli, gpu_micros, ..StayRow::default() }]
}

/// When a job had nothing, from its submission to its end. Stays begin in order.
fn waits(submitted: u64, end: u64, now: u64, stays: &[StayRow]) -> Vec<(u64, u64)> {
    let mut waits = Vec::new();
    let mut since = submitted;
    for stay in stays {
        waits.push((since, stay.from));
        since = since.max(stay.to.unwrap_or(now));
    }
    waits.push((since, end));
    waits.retain(|(from, to)| from < to);
    waits
}

/// The date of a day since the epoch; those beyond the calendar are taken for the first.
fn date(day: u64) -> Date {
    let secs = i64::try_from(day.saturating_mul(86_400)).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(secs).unwrap_or(OffsetDateTime::UNIX_EPOCH).date()
}

#[cfg(test)]
mod tests;
