//! How good a predictor would have been on jobs that are over.
//!
//! A job is predicted from jobs that ended before it was submitted and from no others. The error
//! is the distance from the truth as a share of the truth.

use hostler_core::id::JobId;
use hostler_core::job::Estimate;
use hostler_core::metrics::percentile;
use hostler_core::units::{Span, Time};
use serde::Serialize;

use crate::features::{Features, Learner};

/// A job that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// What was known when it was submitted.
    pub features: Features,
    /// When it was submitted.
    pub submitted: Time,
    /// When it ended.
    pub ended: Time,
    /// How long it ran.
    pub run: Span,
}

/// Jobs to learn from, and jobs to be judged by.
pub struct Parted<'a> {
    /// In order of their end; all ended before the first of the others was submitted.
    pub learnt: Vec<&'a Past>,
    /// In order of submission.
    pub judged: &'a [Past],
}

/// Parts jobs by time of submission. Jobs among the first `percent` per cent that were not over by
/// then are in neither part. `past` ascends by submission.
pub fn part(past: &[Past], percent: u32) -> Parted<'_> {
    assert!(percent <= 100, "{percent} per cent is beyond all");
    assert!(past.is_sorted_by_key(|job| job.submitted), "jobs are in order of submission");
    let count = (past.len() as u64 * u64::from(percent) / 100) as usize;
    let (first, judged) = past.split_at(count);
    let over = |job: &&Past| judged.first().is_none_or(|next| job.ended < next.submitted);
    let mut learnt: Vec<&Past> = first.iter().filter(over).collect();
    learnt.sort_by_key(|job| job.ended);
    Parted { learnt, judged }
}

/// What a learner that learns as jobs end would have said of each at its submission.
pub fn online(learner: &mut dyn Learner, past: &[Past]) -> Vec<Option<Estimate>> {
    follow(learner, past, Until::LastSubmission)
}

/// Lets a learner see jobs come and end.
pub fn teach(learner: &mut dyn Learner, past: &[Past]) {
    follow(learner, past, Until::LastEnd);
}

/// How far jobs are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    LastSubmission,
    LastEnd,
}

/// Submissions and ends in the order of time; the answer is what was said at submissions.
fn follow(learner: &mut dyn Learner, past: &[Past], until: Until) -> Vec<Option<Estimate>> {
    assert!(past.is_sorted_by_key(|job| job.submitted), "jobs are in order of submission");
    // Jobs to come have numbers from zero on, and are not to be taken for these.
    let number = |at: usize| JobId(u32::MAX - (past.len() - at) as u32);
    let mut ends: Vec<(Time, usize)> = past.iter().map(|job| job.ended).zip(0..).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut said = Vec::with_capacity(past.len());
    let mut learn_before = |learner: &mut dyn Learner, time: Time| {
        while let Some((_, at)) = ends.next_if(|(ended, _)| *ended < time) {
            learner.learn_of(number(at), &past[at].features, past[at].run);
        }
    };
    for (at, job) in past.iter().enumerate() {
        learn_before(learner, job.submitted);
        said.push(learner.foretell(number(at), &job.features));
    }
    if until == Until::LastEnd {
        learn_before(learner, Time(u64::MAX));
    }
    said
}

/// Errors at which the distribution is told.
const CDF_ERRORS: [f64; 12] = [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 100.0];

/// An error that counts as small.
const SMALL: f64 = 0.25;

/// How good estimates were.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Jobs that had an estimate.
    pub jobs: usize,
    /// Jobs that had none.
    pub unknown: usize,
    /// Share of jobs whose error is below a quarter of the truth; those without an estimate count.
    pub share_under_25: f64,
    /// Median error, as a share of the truth.
    pub median_error: f64,
    /// Mean absolute error in seconds.
    pub mae_s: f64,
    /// Share of estimates that are off by no more than their spread; half is right.
    pub within_spread: f64,
    /// How much the order of the estimates is that of the truths: Spearman's rank correlation, 1
    /// when they are the same and 0 when they have nothing to do with each other. Jobs without an
    /// estimate come last, as where jobs are ranked by them.
    pub rank_correlation: f64,
    /// Pairs of an error and the share of jobs with at most that error.
    pub cdf: Vec<(f64, f64)>,
}

/// Judges estimates by the truth.
pub fn score(said: impl IntoIterator<Item = (Option<Estimate>, Span)>) -> Score {
    let (mut errors, mut unknown) = (Vec::new(), 0);
    let (mut off_s, mut within) = (0.0, 0);
    let (mut believed, mut truths) = (Vec::new(), Vec::new());
    for (estimate, truth) in said {
        believed.push(estimate.map_or(u64::MAX, |estimate| estimate.run.0));
        truths.push(truth.0);
        let Some(Estimate { run, spread }) = estimate else {
            unknown += 1;
            continue;
        };
        let off = Span(run.0.abs_diff(truth.0));
        off_s += off.secs_f64();
        within += usize::from(off <= spread);
        errors.push(off.0 as f64 / truth.0.max(1) as f64);
    }
    errors.sort_by(f64::total_cmp);
    let jobs = errors.len();
    let share =
        |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let up_to = |most: f64| share(errors.partition_point(|error| *error <= most), jobs + unknown);
    Score {
        jobs,
        unknown,
        share_under_25: share(errors.partition_point(|error| *error < SMALL), jobs + unknown),
        median_error: percentile(&errors, 50).unwrap_or(0.0),
        mae_s: if jobs == 0 { 0.0 } else { off_s / jobs as f64 },
        within_spread: share(within, jobs),
        rank_correlation: correlation(&ranks(&believed), &ranks(&truths)),
        cdf: CDF_ERRORS.map(|error| (error, up_to(error))).to_vec(),
    }
}

/// Twice the rank of each value, from 0; equal ones have the mean of theirs.
fn ranks(values: &[u64]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by_key(|at| values[*at]);
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let last = first + equal.len() - 1;
        equal.iter().for_each(|at| ranks[*at] = (first + last) as i64);
        first = last + 1;
    }
    ranks
}

/// How two lists of ranks go together; none do where all values of one are equal.
fn correlation(one: &[i64], other: &[i64]) -> f64 {
    // The mean of twice the ranks is whole.
    let mean = one.len() as i64 - 1;
    let sum = |one: &[i64], other: &[i64]| -> i128 {
        let products =
            one.iter().zip(other).map(|(a, b)| i128::from(a - mean) * i128::from(b - mean));
        products.sum()
    };
    let spread = sum(one, one) as f64 * sum(other, other) as f64;
    if spread == 0.0 { 0.0 } else { sum(one, other) as f64 / libm::sqrt(spread) }
}

#[cfg(test)]
mod tests;
