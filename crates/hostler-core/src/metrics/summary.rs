//! The summary of a run: what a comparison of policies shows, with every definition in one place.
//!
//! Times are in seconds. Means and percentiles (nearest rank) are over *finished* jobs; other
//! endings are only counted. They are zero when there is nothing to count. Shares of GPU time are
//! over the window from the first submission to the last end of a job that ran, or to now while
//! jobs are in the system.

use serde::{Deserialize, Serialize};

use super::rank::{percentile, ratio};
use super::{Contention, Integral, JobFigures, JobSums, Metrics, Which, add_by_tenant, slowdown};
use crate::id::{ModelId, TenantId};
use crate::job::{Ending, JobKind};
use crate::state::ClusterState;
use crate::units::{Span, Time};
use crate::view::View;

const MICROS_PER_HOUR: f64 = 3.6e9;
/// Milliwatt-microseconds (nanojoules) in a kilowatt-hour.
const NANOJOULES_PER_KWH: f64 = 3.6e15;
/// Jobs shorter than this do not blow the bounded slowdown up.
const SHORT_JOB: Span = Span::from_secs(10);
/// Finish-time fairness above which a job counts as treated unfairly.
pub const UNFAIR: f64 = 1.05;
/// Finish-time fairness above which nobody would call it chance.
const VERY_UNFAIR: f64 = 1.2;

/// A run in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Jobs that were submitted.
    pub jobs_submitted: u64,
    /// Jobs that did their work.
    pub jobs_done: u64,
    /// Jobs that failed by themselves, could not be started, or ran into their time limit.
    pub jobs_failed: u64,
    /// Jobs that were turned away.
    pub jobs_rejected: u64,
    /// Jobs that a person cancelled.
    pub jobs_cancelled: u64,
    /// Jobs that are not over.
    pub jobs_unfinished: u64,

    /// Mean time from submission to end.
    pub avg_jct_s: f64,
    /// Half of the jobs took no longer.
    pub p50_jct_s: f64,
    /// Nine in ten took no longer.
    pub p90_jct_s: f64,
    /// Ninety-nine in a hundred took no longer.
    pub p99_jct_s: f64,
    /// Mean time from submission to end, where each job counts as often as it has instances.
    pub avg_jct_instance_weighted_s: f64,

    /// Mean time without resources, over all waits of a job.
    pub avg_wait_s: f64,
    /// Half of the jobs waited no longer.
    pub p50_wait_s: f64,
    /// Nine in ten waited no longer.
    pub p90_wait_s: f64,
    /// Ninety-nine in a hundred waited no longer.
    pub p99_wait_s: f64,
    /// Mean time without resources, where each job counts as often as it has instances.
    pub avg_wait_instance_weighted_s: f64,

    /// Mean of completion time over run time. Run time is the reference work of the job, so that
    /// lost work and slow machines count against a policy; jobs without run time are left out.
    pub avg_slowdown: f64,
    /// Half of the jobs were slowed down no more.
    pub p50_slowdown: f64,
    /// Nine in ten were slowed down no more.
    pub p90_slowdown: f64,
    /// Ninety-nine in a hundred were slowed down no more.
    pub p99_slowdown: f64,
    /// Mean of completion time over run time or 10 s, whichever is longer; at least 1 per job.
    pub avg_bounded_slowdown: f64,

    /// From the first submission to the last end of a job that ran.
    pub makespan_s: f64,
    /// Booked GPU time over GPU time of nodes that are not down (sleeping nodes count as idle).
    pub gpu_utilisation: f64,
    /// The same from the first to the last submission: without the long end of a run in which a
    /// few jobs are left.
    pub gpu_utilisation_while_arriving: f64,
    /// `gpu_utilisation` without lost work: of a job's GPU time counts done / (done + lost).
    pub gpu_used: f64,
    /// Idle GPU time on devices that are partly booked, over all idle GPU time.
    pub fragmentation: f64,
    /// Mean number of jobs without resources.
    pub avg_queue_length: f64,

    /// Mean number of devices that somebody holds a part of.
    pub gpus_held_avg: f64,
    /// Most of them at any time.
    pub gpus_held_peak: u64,
    /// Mean number of devices more that would be held if each share had one of its own.
    pub gpus_saved_avg: f64,
    /// Most of them at any time.
    pub gpus_saved_peak: u64,
    /// Devices saved over devices that would be held without sharing.
    pub gpus_saved_share: f64,
    /// What sharing cost, where somebody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,

    /// Mean finish-time fairness. For one job it is `jct / ideal` with
    /// `ideal = run × max(1, n × gpus / cluster gpus)`: the time it takes on the `1/n` of the
    /// cluster that is due to it, where `n` is the mean number of jobs in the system during its
    /// life, itself included. Below 1 it fared better than with a cluster cut into equal parts.
    pub fairness_avg: f64,
    /// Finish-time fairness of the job in the middle.
    pub fairness_p50: f64,
    /// Finish-time fairness of the worst but one in twenty.
    pub fairness_p95: f64,
    /// Finish-time fairness of the worst but one in a hundred.
    pub fairness_p99: f64,
    /// Finish-time fairness of the job that fared worst.
    pub fairness_max: f64,
    /// Share of jobs whose finish-time fairness is above 1.05.
    pub unfair_share: f64,
    /// Share of jobs whose finish-time fairness is above 1.2.
    pub very_unfair_share: f64,

    /// Jobs with a deadline, without those that a person cancelled.
    pub deadline_jobs: u64,
    /// Those that ended late or otherwise than by doing their work, or are late already.
    pub deadline_misses: u64,

    /// Stays that began.
    pub starts: u64,
    /// Stays that ended.
    pub stops: u64,
    /// Stays that went on at another size or place.
    pub resizes: u64,
    /// Stays that a policy ended.
    pub preemptions: u64,
    /// Stays after the first, per job.
    pub restarts: u64,
    /// Reference work thrown away.
    pub lost_work_s: f64,
    /// GPU time thrown away.
    pub lost_gpu_hours: f64,
    /// Booked GPU time.
    pub gpu_hours: f64,
    /// Energy of nodes that are neither down nor asleep: their own and their devices' draw, which
    /// grows from idle to busy with the booked part.
    pub energy_kwh: f64,

    /// Jobs by tenant.
    pub by_tenant: Vec<TenantSummary>,
    /// Jobs by the GPU model that gave them most GPU time.
    pub by_model: Vec<ModelSummary>,
    /// Jobs by kind.
    pub by_kind: Vec<KindSummary>,
}

/// Finished jobs that have something in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobGroup {
    /// How many.
    pub jobs: u64,
    /// Mean time from submission to end.
    pub avg_jct_s: f64,
    /// Half of them took no longer.
    pub p50_jct_s: f64,
    /// Nine in ten took no longer.
    pub p90_jct_s: f64,
    /// Ninety-nine in a hundred took no longer.
    pub p99_jct_s: f64,
    /// Mean time without resources.
    pub avg_wait_s: f64,
    /// Half of them waited no longer.
    pub p50_wait_s: f64,
    /// Nine in ten waited no longer.
    pub p90_wait_s: f64,
    /// Ninety-nine in a hundred waited no longer.
    pub p99_wait_s: f64,
}

/// Jobs of one tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantSummary {
    /// Its name.
    pub name: Box<str>,
    /// GPU time of all its jobs, finished or not.
    pub gpu_hours: f64,
    /// Its finished jobs.
    #[serde(flatten)]
    pub finished: JobGroup,
}

/// Devices and jobs of one GPU model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSummary {
    /// Its name.
    pub name: Box<str>,
    /// Booked over available GPU time.
    pub utilisation: f64,
    /// Booked GPU time.
    pub gpu_hours: f64,
    /// Finished jobs that it gave most GPU time.
    #[serde(flatten)]
    pub finished: JobGroup,
}

/// Jobs of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSummary {
    /// The kind.
    pub kind: JobKind,
    /// Its finished jobs.
    #[serde(flatten)]
    pub finished: JobGroup,
}

impl Metrics {
    /// The run up to now in numbers.
    pub fn summary(&self, state: &ClusterState) -> Summary {
        let mut summary = Summary::default();
        let mut jobs = self.counts.jobs;
        let mut tenant_gpu_time = self.tenant_gpu_time.clone();
        self.add_live(state, &mut jobs, &mut tenant_gpu_time);
        self.sum_counts(state, &jobs, &mut summary);
        self.sum_times(&mut summary);
        self.sum_fairness(&mut summary);
        self.sum_window(state, &jobs, &mut summary);
        summary.by_tenant = self.by_tenant(state, &tenant_gpu_time);
        summary.by_model = self.by_model(state);
        summary.by_kind = self.by_kind();
        summary
    }

    fn add_live(&self, state: &ClusterState, jobs: &mut JobSums, tenant_gpu_time: &mut Vec<u128>) {
        let view = View::new(state);
        for job in state.jobs() {
            let gpu_time = view.served(job);
            jobs.add(job, gpu_time);
            add_by_tenant(tenant_gpu_time, job.spec.tenant, gpu_time);
            if let Some(deadline) = job.spec.deadline {
                jobs.add_deadline(state.now() > deadline);
            }
        }
    }

    fn sum_counts(&self, state: &ClusterState, jobs: &JobSums, summary: &mut Summary) {
        let ended = |ending: Ending| self.counts.by_ending[ending as usize];
        summary.jobs_submitted = self.counts.submitted;
        summary.jobs_done = ended(Ending::Finished);
        summary.jobs_failed = ended(Ending::Failed) + ended(Ending::TimedOut);
        summary.jobs_rejected = ended(Ending::Rejected);
        summary.jobs_cancelled = ended(Ending::Cancelled);
        summary.jobs_unfinished = state.job_count() as u64;
        summary.starts = self.counts.starts;
        summary.stops = self.counts.stops;
        summary.resizes = self.counts.resizes;
        summary.deadline_jobs = jobs.deadline_jobs;
        summary.deadline_misses = jobs.deadline_misses;
        summary.preemptions = jobs.preemptions;
        summary.restarts = jobs.restarts;
        summary.lost_work_s = jobs.lost_work as f64 / 1e6;
        summary.gpu_hours = jobs.gpu_time as f64 / MICROS_PER_HOUR;
        summary.lost_gpu_hours = jobs.lost_gpu_time as f64 / MICROS_PER_HOUR;
    }

    fn sum_times(&self, summary: &mut Summary) {
        let jct = self.distribution(Which::Jct);
        let wait = self.distribution(Which::Wait);
        let slowdowns = self.distribution(Which::Slowdown);
        summary.avg_jct_s = self.mean_secs(|row| row.jct, |_| 1);
        summary.avg_wait_s = self.mean_secs(|row| row.wait, |_| 1);
        summary.avg_jct_instance_weighted_s = self.mean_secs(|row| row.jct, JobFigures::instances);
        summary.avg_wait_instance_weighted_s =
            self.mean_secs(|row| row.wait, JobFigures::instances);
        summary.avg_slowdown = mean(slowdowns.iter().copied());
        let bounded = |row: &JobFigures| row.jct.0 as f64 / row.run.max(SHORT_JOB).0 as f64;
        let ran = self.finished().filter(|row| slowdown(row).is_some());
        summary.avg_bounded_slowdown = mean(ran.map(|row| bounded(row).max(1.0)));
        let at = |values: &[f64], percent| percentile(values, percent).unwrap_or(0.0);
        summary.p50_jct_s = at(&jct, 50);
        summary.p90_jct_s = at(&jct, 90);
        summary.p99_jct_s = at(&jct, 99);
        summary.p50_wait_s = at(&wait, 50);
        summary.p90_wait_s = at(&wait, 90);
        summary.p99_wait_s = at(&wait, 99);
        summary.p50_slowdown = at(&slowdowns, 50);
        summary.p90_slowdown = at(&slowdowns, 90);
        summary.p99_slowdown = at(&slowdowns, 99);
    }

    fn sum_fairness(&self, summary: &mut Summary) {
        let ran = self.finished().filter(|row| row.fairness > 0.0);
        let mut values: Vec<f32> = ran.map(|row| row.fairness).collect();
        values.sort_unstable_by(f32::total_cmp);
        let at = |percent| f64::from(percentile(&values, percent).unwrap_or(0.0));
        let above = |limit: f64| {
            let count = values.iter().filter(|value| f64::from(**value) > limit).count();
            ratio(count as u128, values.len() as u128)
        };
        summary.fairness_avg = mean(values.iter().copied().map(f64::from));
        summary.fairness_p50 = at(50);
        summary.fairness_p95 = at(95);
        summary.fairness_p99 = at(99);
        summary.fairness_max = at(100);
        summary.unfair_share = above(UNFAIR);
        summary.very_unfair_share = above(VERY_UNFAIR);
    }

    fn sum_window(&self, state: &ClusterState, jobs: &JobSums, summary: &mut Summary) {
        let total = |integral: &Integral| self.over_window(state, integral);
        let opened = self.opened.unwrap_or(Time::ZERO);
        let models = || self.models.iter();
        let capacity: u128 = models().map(|model| total(&model.capacity)).sum();
        let allocated: u128 = models().map(|model| total(&model.allocated)).sum();
        // Integrals of compute count thousandths, ledgers count devices.
        let used = (jobs.gpu_time - jobs.lost_gpu_time) * 1000;
        let waiting = total(&self.present) - total(&self.placed);
        let window = self.window_end(state).since(opened);
        summary.makespan_s = self.last_end.since(opened).secs_f64();
        summary.gpu_utilisation = ratio(allocated, capacity);
        let (booked, there) = self.while_arriving;
        summary.gpu_utilisation_while_arriving = ratio(booked, there);
        summary.gpu_used = ratio(used, capacity);
        summary.fragmentation = ratio(total(&self.rest), capacity.saturating_sub(allocated));
        summary.avg_queue_length = ratio(waiting, u128::from(window.0));
        let (shares, saved) = (total(&self.shares), total(&self.saved));
        summary.gpus_held_avg = ratio(shares - saved, u128::from(window.0));
        summary.gpus_held_peak = self.sharing.held_peak;
        summary.gpus_saved_avg = ratio(saved, u128::from(window.0));
        summary.gpus_saved_peak = self.sharing.saved_peak;
        summary.gpus_saved_share = ratio(saved, shares);
        summary.energy_kwh = total(&self.milliwatts) as f64 / NANOJOULES_PER_KWH;
    }

    fn window_end(&self, state: &ClusterState) -> Time {
        if self.present.value() > 0 { state.now() } else { self.last_end }
    }

    fn over_window(&self, state: &ClusterState, integral: &Integral) -> u128 {
        if self.opened.is_none() {
            0
        } else if self.present.value() > 0 {
            integral.at(state.now())
        } else {
            integral.at_mark(self.last_end)
        }
    }

    fn mean_secs(&self, value: fn(&JobFigures) -> Span, weight: fn(&JobFigures) -> u32) -> f64 {
        let (mut sum, mut weights) = (0, 0);
        for row in self.finished() {
            let weight = u128::from(weight(row));
            sum += u128::from(value(row).0) * weight;
            weights += weight;
        }
        ratio(sum, weights) / 1e6
    }

    fn by_tenant(&self, state: &ClusterState, gpu_time: &[u128]) -> Vec<TenantSummary> {
        let groups = self.groups(gpu_time.len(), |row| Some(row.tenant.index()));
        let name = |id: usize| match state.tenants().get(id) {
            Some(tenant) => tenant.name.clone(),
            None => format!("{:?}", TenantId(id as u32)).into(),
        };
        let tenants = groups.into_iter().zip(gpu_time).enumerate();
        let tenants = tenants.filter(|(_, (group, time))| group.jobs > 0 || **time > 0);
        let summary = tenants.map(|(id, (finished, time))| TenantSummary {
            name: name(id),
            gpu_hours: *time as f64 / MICROS_PER_HOUR,
            finished,
        });
        summary.collect()
    }

    fn by_model(&self, state: &ClusterState) -> Vec<ModelSummary> {
        let groups = self.groups(self.models.len(), |row| row.model().map(ModelId::index));
        let models = groups.into_iter().zip(&self.models).enumerate();
        let summary = models.map(|(id, (finished, model))| {
            let capacity = self.over_window(state, &model.capacity);
            let allocated = self.over_window(state, &model.allocated);
            ModelSummary {
                name: state.model(ModelId(id as u32)).name.clone(),
                utilisation: ratio(allocated, capacity),
                gpu_hours: allocated as f64 / 1000.0 / MICROS_PER_HOUR,
                finished,
            }
        });
        summary.collect()
    }

    fn by_kind(&self) -> Vec<KindSummary> {
        let kinds = [JobKind::Training, JobKind::Batch];
        let groups = self.groups(kinds.len(), |row| Some(row.kind() as usize));
        let summary = kinds.into_iter().zip(groups);
        let summary = summary.map(|(kind, finished)| KindSummary { kind, finished });
        summary.filter(|kind| kind.finished.jobs > 0).collect()
    }

    /// Finished jobs in `count` groups by key.
    fn groups(&self, count: usize, key: fn(&JobFigures) -> Option<usize>) -> Vec<JobGroup> {
        let keyed = self.finished().filter_map(|row| Some((key(row)?, row)));
        let mut rows: Vec<(usize, &JobFigures)> = keyed.collect();
        rows.sort_unstable_by_key(|(key, row)| (*key, row.wait));
        let mut groups = vec![JobGroup::default(); count];
        for same in rows.chunk_by(|(first, _), (second, _)| first == second) {
            groups[same[0].0] = group(same);
        }
        groups
    }
}

/// The figures of jobs that ascend by wait.
fn group(rows: &[(usize, &JobFigures)]) -> JobGroup {
    let count = rows.len() as u128;
    let jct = rows.iter().map(|(_, row)| u128::from(row.jct.0)).sum();
    let wait = rows.iter().map(|(_, row)| u128::from(row.wait.0)).sum();
    let wait_at = |percent| percentile(rows, percent).map_or(0.0, |(_, row)| row.wait.secs_f64());
    let mut jcts: Vec<Span> = rows.iter().map(|(_, row)| row.jct).collect();
    jcts.sort_unstable();
    let jct_at = |percent| percentile(&jcts, percent).map_or(0.0, Span::secs_f64);
    JobGroup {
        jobs: rows.len() as u64,
        avg_jct_s: ratio(jct, count) / 1e6,
        p50_jct_s: jct_at(50),
        p90_jct_s: jct_at(90),
        p99_jct_s: jct_at(99),
        avg_wait_s: ratio(wait, count) / 1e6,
        p50_wait_s: wait_at(50),
        p90_wait_s: wait_at(90),
        p99_wait_s: wait_at(99),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u64);
    for value in values {
        sum += value;
        count += 1;
    }
    if count == 0 { 0.0 } else { sum / count as f64 }
}
