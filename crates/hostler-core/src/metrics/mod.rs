//! Numbers about a run: folds of what a [`Watch`] sees, the same for simulated and real clusters.
//!
//! [`Metrics`] keeps the accounts behind a [`Summary`]; [`Series`], [`Heat`] and [`Timeline`] are
//! for pictures and golden texts, and cost nothing where they are not used. A callback costs the
//! parts of its lease, never the size of the cluster or of the history.

mod fleet;
mod grid;
mod heat;
mod integral;
mod rank;
mod row;
mod saved;
mod series;
mod steps;
mod summary;
#[cfg(test)]
mod tests;
mod timeline;

pub use heat::{Heat, HeatMap};
pub use rank::percentile;
pub use row::JobFigures;
pub use saved::Contention;
pub use series::{Series, SeriesPoints};
pub use summary::{JobGroup, KindSummary, ModelSummary, Summary, TenantSummary, UNFAIR};
pub use timeline::Timeline;

use crate::cluster::Node;
use crate::id::{NodeId, TenantId};
use crate::job::{Ending, Job, Phase};
use crate::placement::Lease;
use crate::state::ClusterState;
use crate::units::{Span, Time};
use crate::watch::Watch;
use fleet::Fleet;
use integral::Integral;
use rank::ratio;
use saved::{Moved, Shares};

/// Which distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Seconds from submission to end.
    Jct,
    /// Seconds without resources.
    Wait,
    /// Completion time over run time.
    Slowdown,
}

/// The accounts of a run.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    rows: Vec<JobFigures>,
    /// Jobs that are over of which at least so many are kept; all when none.
    rows_kept: Option<usize>,
    counts: Counts,
    /// First submission: time-weighted figures count from here.
    opened: Option<Time>,
    /// Last end of a job that had resources.
    last_end: Time,
    /// GPU time booked and GPU time there, from the first to the latest submission.
    while_arriving: (u128, u128),
    /// Jobs that are not over.
    present: Integral,
    /// Jobs with resources.
    placed: Integral,
    /// GPU compute that is up and that is booked, by model.
    models: Vec<ModelUse>,
    /// Idle GPU compute on devices of which a part is booked.
    rest: Integral,
    milliwatts: Integral,
    /// Shares of devices that are held, and how many devices more that is than are held.
    shares: Integral,
    saved: Integral,
    sharing: Sharing,
    fleet: Fleet,
    /// GPU compute that is up, over all models.
    capacity: u64,
    tenant_gpu_time: Vec<u128>,
}

/// Shares by device, and the most at any time.
#[derive(Clone, Debug, Default)]
struct Sharing {
    shares: Shares,
    saved_peak: u64,
    held_peak: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ModelUse {
    capacity: Integral,
    allocated: Integral,
}

/// Plain sums over jobs that are over, and over stays.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    submitted: u64,
    by_ending: [u64; 5],
    starts: u64,
    stops: u64,
    resizes: u64,
    jobs: JobSums,
}

/// Sums over the ledgers of jobs.
#[derive(Clone, Copy, Debug, Default)]
struct JobSums {
    preemptions: u64,
    restarts: u64,
    lost_work: u128,
    gpu_time: u128,
    lost_gpu_time: u128,
    deadline_jobs: u64,
    deadline_misses: u64,
}

impl JobSums {
    /// Counts a job that received `gpu_time`, its current stay included. Work is lost when a stay
    /// ends, so a current stay has lost nothing.
    fn add(&mut self, job: &Job, gpu_time: u64) {
        let (done, lost) = (job.ledger.done.0, job.ledger.lost_work.0);
        self.preemptions += u64::from(job.ledger.preemptions);
        self.restarts += u64::from(job.ledger.restarts);
        self.lost_work += u128::from(lost);
        self.gpu_time += u128::from(gpu_time);
        if lost > 0 {
            let (lost, all) = (u128::from(lost), u128::from(done) + u128::from(lost));
            self.lost_gpu_time += u128::from(job.ledger.gpu_time()) * lost / all;
        }
    }

    fn add_deadline(&mut self, missed: bool) {
        self.deadline_jobs += 1;
        self.deadline_misses += u64::from(missed);
    }
}

impl Metrics {
    /// The accounts from now on of a cluster that is at work already.
    ///
    /// Jobs in it keep their time of submission and their ledger; figures over time count from now.
    pub fn joining(state: &ClusterState) -> Metrics {
        let mut metrics = Metrics::default();
        let now = state.now();
        for node in state.nodes() {
            metrics.node_changed(now, state, node);
        }
        metrics.counts.submitted = state.job_count() as u64;
        metrics.present.set(now, now, state.job_count() as u64);
        metrics.placed.set(now, now, state.lease_count() as u64);
        for lease in state.leases() {
            metrics.shares_began(now, lease);
        }
        if state.job_count() > 0 {
            metrics.open(now);
        }
        metrics
    }

    /// The same, but distributions are of the last `rows` jobs or somewhat more: for a cluster that
    /// runs for years.
    pub fn keeping(self, rows: usize) -> Metrics {
        Metrics { rows_kept: Some(rows.max(1)), ..self }
    }

    /// Jobs that are over, in order of their end.
    pub fn rows(&self) -> &[JobFigures] {
        &self.rows
    }

    /// Values of all finished jobs, ascending.
    pub fn distribution(&self, which: Which) -> Vec<f64> {
        let finished = self.finished();
        let mut values: Vec<f64> = match which {
            Which::Jct => finished.map(|row| row.jct.secs_f64()).collect(),
            Which::Wait => finished.map(|row| row.wait.secs_f64()).collect(),
            Which::Slowdown => finished.filter_map(slowdown).collect(),
        };
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    fn finished(&self) -> impl Iterator<Item = &JobFigures> {
        self.rows.iter().filter(|row| row.ending() == Ending::Finished)
    }

    /// The first submission: what was before is no part of the run.
    fn open(&mut self, at: Time) {
        self.opened = Some(at);
        self.last_end = at;
        for model in &mut self.models {
            model.capacity.restart(at);
            model.allocated.restart(at);
        }
        for integral in [&mut self.present, &mut self.placed, &mut self.rest, &mut self.milliwatts]
        {
            integral.restart(at);
        }
        self.shares.restart(at);
        self.saved.restart(at);
    }

    fn shares_began(&mut self, at: Time, lease: &Lease) {
        let Moved { shares, saved } = self.sharing.shares.began(&lease.placement);
        if shares > 0 {
            let shares = self.shares.value() + shares;
            self.shares.set(at, self.last_end, shares);
            self.saved_moved(at, self.saved.value() + saved);
            self.sharing.held_peak = self.sharing.held_peak.max(shares - self.saved.value());
        }
    }

    fn shares_ended(&mut self, at: Time, lease: &Lease) {
        let Moved { shares, saved } = self.sharing.shares.ended(&lease.placement);
        if shares > 0 {
            self.shares.set(at, self.last_end, self.shares.value() - shares);
            self.saved_moved(at, self.saved.value() - saved);
        }
    }

    fn saved_moved(&mut self, at: Time, saved: u64) {
        if saved != self.saved.value() {
            self.saved.set(at, self.last_end, saved);
            self.sharing.saved_peak = self.sharing.saved_peak.max(saved);
        }
    }

    fn refresh_parts(&mut self, at: Time, state: &ClusterState, lease: &Lease) {
        for part in &lease.placement.parts {
            if !part.slices.is_empty() {
                self.refresh(at, state, part.node);
            }
        }
    }

    fn refresh(&mut self, at: Time, state: &ClusterState, id: NodeId) {
        let (before, now) = self.fleet.refresh(state, id);
        if before == now {
            return;
        }
        let mark = self.last_end;
        let moved = |integral: &mut Integral, before: u64, now: u64| {
            if before != now {
                integral.set(at, mark, integral.value() - before + now);
            }
        };
        moved(&mut self.rest, before.rest.into(), now.rest.into());
        moved(&mut self.milliwatts, before.milliwatts, now.milliwatts);
        self.capacity = self.capacity - u64::from(before.capacity) + u64::from(now.capacity);
        let Some(model) = state.node(id).spec.gpu_model else {
            return;
        };
        if self.models.len() <= model.index() {
            self.models.resize(model.index() + 1, ModelUse::default());
        }
        let model = &mut self.models[model.index()];
        moved(&mut model.capacity, before.capacity.into(), now.capacity.into());
        moved(&mut model.allocated, before.allocated.into(), now.allocated.into());
    }

    fn fairness(&self, at: Time, state: &ClusterState, job: &Job) -> f32 {
        let (life, run) = (at.since(job.submitted), row::run_of(job));
        if life == Span::ZERO || run == Span::ZERO {
            return 0.0;
        }
        let crowd = state.crowd_since(job) as f64 / life.0 as f64;
        let demand = ratio(u128::from(job.asked().gpu_milli()), u128::from(self.capacity));
        (life.secs_f64() / ideal_secs(run.secs_f64(), crowd, demand)) as f32
    }

    fn count_end(&mut self, at: Time, job: &Job, ending: Ending) {
        let gpu_time = job.ledger.gpu_time();
        self.counts.by_ending[ending as usize] += 1;
        self.counts.jobs.add(job, gpu_time);
        add_by_tenant(&mut self.tenant_gpu_time, job.spec.tenant, gpu_time);
        match (job.spec.deadline, ending) {
            (None, _) | (Some(_), Ending::Cancelled) => {}
            (Some(deadline), Ending::Finished) => self.counts.jobs.add_deadline(at > deadline),
            (Some(_), Ending::Failed | Ending::TimedOut | Ending::Rejected) => {
                self.counts.jobs.add_deadline(true);
            }
        }
    }
}

impl Watch for Metrics {
    fn submitted(&mut self, at: Time, _job: &Job) {
        if self.opened.is_none() {
            self.open(at);
        }
        self.counts.submitted += 1;
        let sum = |part: fn(&ModelUse) -> &Integral| -> u128 {
            self.models.iter().map(|model| part(model).at(at)).sum()
        };
        self.while_arriving = (sum(|model| &model.allocated), sum(|model| &model.capacity));
        self.present.set(at, self.last_end, self.present.value() + 1);
    }

    fn began(&mut self, at: Time, state: &ClusterState, _job: &Job, lease: &Lease) {
        self.refresh_parts(at, state, lease);
        self.shares_began(at, lease);
        self.counts.starts += 1;
        self.placed.set(at, self.last_end, self.placed.value() + 1);
    }

    fn ended(&mut self, at: Time, state: &ClusterState, _job: &Job, lease: &Lease) {
        self.refresh_parts(at, state, lease);
        self.shares_ended(at, lease);
        self.counts.stops += 1;
        self.placed.set(at, self.last_end, self.placed.value() - 1);
    }

    fn moved(&mut self, at: Time, state: &ClusterState, _job: &Job, from: &Lease, to: &Lease) {
        self.refresh_parts(at, state, from);
        self.shares_ended(at, from);
        self.refresh_parts(at, state, to);
        self.shares_began(at, to);
        self.counts.resizes += 1;
    }

    fn retired(&mut self, at: Time, state: &ClusterState, job: &Job) {
        let Phase::Done(ending) = job.phase else { unreachable!("{:?} is over", job.id) };
        let fairness = self.fairness(at, state, job);
        if let Some(kept) = self.rows_kept.filter(|kept| self.rows.len() >= 2 * kept) {
            self.rows.drain(..kept);
        }
        self.rows.push(JobFigures::new(at, job, ending, fairness));
        self.count_end(at, job, ending);
        self.present.set(at, self.last_end, self.present.value() - 1);
        if job.ledger.first_start.is_some() {
            self.last_end = at;
        }
    }

    fn node_changed(&mut self, at: Time, state: &ClusterState, node: &Node) {
        self.refresh(at, state, node.id);
    }
}

/// Seconds that a job takes with the part of the cluster that is due to it: so many of work, among
/// a crowd of so many jobs, where it asks for such a part of the cluster. Finish-time fairness is
/// measured against it.
pub fn ideal_secs(work_secs: f64, crowd: f64, part: f64) -> f64 {
    work_secs * (crowd * part).max(1.0)
}

/// Completion time over run time; none when it did not run.
fn slowdown(row: &JobFigures) -> Option<f64> {
    (row.run > Span::ZERO).then(|| row.jct.0 as f64 / row.run.0 as f64)
}

fn add_by_tenant(times: &mut Vec<u128>, tenant: TenantId, gpu_time: u64) {
    if times.len() <= tenant.index() {
        times.resize(tenant.index() + 1, 0);
    }
    times[tenant.index()] += u128::from(gpu_time);
}
