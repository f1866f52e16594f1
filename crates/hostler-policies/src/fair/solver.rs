//! From the state to shares of time: builds the instance, lets an allocator solve it, and turns
//! the answer into targets. The mathematics is in `allocate`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hostler_core::id::{JobId, ModelId, ProfileKey};
use hostler_core::job::{Job, Sharing};
use hostler_core::profile::{PairPace, PairRun};
use hostler_core::solve::Solve;
use hostler_core::target::{Solution, SolveRecord, Target, Team, Turn};
use hostler_core::units::{Pace, Span};
use hostler_core::view::View;

use super::roster::{Roster, RosterEntry, gpu_gang, is_bound};
use super::seats;
use crate::allocate::{
    Allocate, AllocateError, Allocation, Entity, Inner, Instance, Isolated, JobRow, PairRow,
    in_parts, isolated_rates,
};
use crate::limits::{PACKED_CLASSES_MAX, STEPS_LEFT_PART, UNKNOWN_RUN};

/// Steps and speeds are counted in millionths.
const MILLION: f64 = 1e6;

/// Makes the allocator for a question.
pub(super) type Make = Arc<dyn Fn(&View<'_>) -> Box<dyn Allocate> + Send + Sync>;

/// Says how fast jobs would be with an equal part of the cluster each.
pub type Alone = Arc<dyn Fn(&Instance) -> Vec<f64> + Send + Sync>;

/// What goes into an instance.
#[derive(Clone)]
pub struct FairQuestion {
    /// Whether jobs that are willing may share GPUs.
    pub packed: bool,
    /// Whether pairs that nobody has seen are asked about, as if neither of the two cost the other
    /// anything: for a rule that tries them.
    pub hopeful: bool,
    /// Whether priorities are weights.
    pub weighted: bool,
    /// Whether tenants share first, and how each divides its part.
    pub tenants: Option<Inner>,
    /// Price of a GPU hour of each model, by name; others cost 1.
    pub prices: BTreeMap<String, f64>,
    /// Whether jobs are served strictly in order of submission: those behind as many as the whole
    /// cluster could hold are not asked about.
    pub in_order: bool,
    /// Steps per second of each job with an equal part of the cluster to itself, to be noted with
    /// the solution; none where nobody asks for it.
    pub alone: Option<Alone>,
}

/// Solves for shares of time.
pub(super) struct FairSolver {
    pub(super) question: FairQuestion,
    pub(super) make: Make,
    pub(super) roster: Arc<Roster>,
}

impl Solve for FairSolver {
    fn solve(&mut self, view: &View<'_>) -> Solution {
        if !self.roster.is_current(view) {
            Arc::make_mut(&mut self.roster).refresh(view);
        }
        let (jobs, instance) = self.question.instance(view, &self.roster);
        if jobs.is_empty() {
            return Solution::default();
        }
        let mut allocator = (self.make)(view);
        let answer = match allocator.allocate(&instance) {
            // Of jobs that share nobody looks at more pairs than that.
            Err(AllocateError::TooMany { limit, .. }) if self.question.packed => {
                in_parts(&mut *allocator, &instance, limit)
            }
            answer => answer,
        };
        let (allocation, failed) = match answer {
            Ok(allocation) => (allocation, false),
            // Nobody is left without GPUs because an optimiser gave up.
            Err(_) => (Isolated.allocate(&instance).unwrap_or_default(), true),
        };
        Solution {
            targets: targets(&jobs, &allocation),
            solve_records: self.question.solve_records(&jobs, &instance),
            fallback: failed || allocation.fallback.is_some(),
        }
    }
}

impl Default for FairQuestion {
    fn default() -> FairQuestion {
        FairQuestion::new()
    }
}

impl FairQuestion {
    /// A question about jobs and their speeds, and nothing else.
    pub fn new() -> FairQuestion {
        FairQuestion {
            packed: false,
            hopeful: false,
            weighted: false,
            tenants: None,
            prices: BTreeMap::new(),
            in_order: false,
            alone: Some(Arc::new(isolated_rates)),
        }
    }

    fn instance(&self, view: &View<'_>, roster: &Roster) -> (Vec<JobId>, Instance) {
        let workers = workers(view);
        let able = |row: &RosterEntry| {
            row.rates.iter().zip(&workers).any(|(rate, gpus)| rate * gpus > 0.0)
        };
        let (mut ids, mut jobs, mut kinds) = (Vec::new(), Vec::new(), Kinds::default());
        let (mut asked, all) = (0.0, workers.iter().sum::<f64>());
        for (job, row) in roster.rows(view).filter(|(_, row)| able(row)) {
            if self.in_order && asked > all {
                break;
            }
            asked += f64::from(gang(row));
            ids.push(job.id);
            let kind = if self.packed { kinds.of(view, job) } else { 0 };
            jobs.push(JobRow { kind, ..self.job_row(view, job, row) });
        }
        let pairs = if self.packed { kinds.pairs(view, self.hopeful) } else { Vec::new() };
        if self.hopeful {
            note_partners(view, &mut jobs);
        }
        let price = |name: &str| self.prices.get(name).copied().unwrap_or(1.0);
        let prices = view.models().iter().map(|model| price(&model.name)).collect();
        let entities = match self.tenants {
            Some(inner) => {
                view.tenants().iter().map(|tenant| entity(tenant.weight, inner)).collect()
            }
            None => Vec::new(),
        };
        (ids, Instance { workers, prices, jobs, pairs, entities })
    }

    fn job_row(&self, view: &View<'_>, job: &Job, row: &RosterEntry) -> JobRow {
        let steps_left = steps_left(view, job, row);
        let solve_record = view.solve_record(job.id);
        JobRow {
            rates: row.rates.to_vec(),
            kind: 0,
            gang: gang(row),
            weight: if self.weighted { f64::from(job.spec.priority.max(1)) } else { 1.0 },
            steps_left,
            end_is_known: end_is_known(view, job),
            age_secs: view.now().since(job.submitted).secs_f64(),
            finish_credit: solve_record.map_or(0.0, |own| credit(&own, steps_left)),
            slack_secs: job.spec.deadline.map(|at| at.secs_f64() - view.now().secs_f64()),
            entity: self.tenants.map(|_| job.spec.tenant.0),
            held_type: held(view, job),
            number: job.id.0,
            partner: None,
            gpu_use: job.gpu_use.map_or(1.0, |used| f64::from(used.0) / 1000.0),
            has_run: job.started,
        }
    }

    fn solve_records(&self, jobs: &[JobId], instance: &Instance) -> Vec<SolveRecord> {
        let rates = self.alone.as_ref().map(|alone| alone(instance));
        let rows = jobs.iter().zip(&instance.jobs).zip(rates.into_iter().flatten());
        let solve_record = rows.map(|((job, row), rate)| SolveRecord {
            job: *job,
            steps_left: (row.steps_left * MILLION).round() as u64,
            isolated: (rate * MILLION).round() as u64,
            credit: Span((row.finish_credit * MILLION).round() as u64),
        });
        solve_record.collect()
    }
}

/// GPUs of a job; a part of one counts as one.
fn gang(row: &RosterEntry) -> u32 {
    row.gpu_milli.div_ceil(1000).clamp(1, u32::MAX.into()) as u32
}

fn entity(weight: u32, inner: Inner) -> Entity {
    Entity { weight: f64::from(weight.max(1)), inner }
}

/// GPUs of each model on nodes that take jobs.
fn workers(view: &View<'_>) -> Vec<f64> {
    let mut workers = vec![0.0; view.models().len()];
    for node in view.nodes().iter().filter(|node| node.usable()) {
        if let Some(model) = node.spec.gpu_model {
            workers[model.index()] += f64::from(node.spec.gpus);
        }
    }
    workers
}

/// Steps that are believed left: those that the job counts itself, or those of its estimate.
fn steps_left(view: &View<'_>, job: &Job, row: &RosterEntry) -> f64 {
    let done = view.done(job).secs_f64() * row.reference;
    let left = match (job.spec.work, job.estimate) {
        // A step that is not done is to do; the tolerance is for work counted in microseconds.
        (Some(steps), _) => (steps as f64 - done - 1e-3).ceil(),
        // Who has outlasted the belief is believed to need a part of what it has done.
        (None, Some(estimate)) => {
            (estimate.run.secs_f64() * row.reference - done).max(done * STEPS_LEFT_PART)
        }
        (None, None) => UNKNOWN_RUN.secs_f64() * row.reference,
    };
    left.max(1e-6)
}

/// Whether the steps left are more than a guess.
fn end_is_known(view: &View<'_>, job: &Job) -> bool {
    let outlasts = job.estimate.is_none_or(|estimate| view.done(job) >= estimate.run);
    job.spec.work.is_some() || !outlasts
}

/// Time that all work so far would have taken with an equal part of the cluster.
fn credit(last: &SolveRecord, steps_left: f64) -> f64 {
    let steps = (last.steps_left as f64 / MILLION - steps_left).max(0.0);
    let isolated = last.isolated as f64 / MILLION;
    let since = if isolated > 0.0 { steps / isolated } else { 0.0 };
    last.credit.secs_f64() + since
}

/// The model that a job has all to itself.
fn held(view: &View<'_>, job: &Job) -> Option<usize> {
    view.own_accounts(job.id).iter().position(|account| account.share >= Target::ALL)
}

/// Shares as whole numbers.
fn targets(jobs: &[JobId], allocation: &Allocation) -> Vec<Target> {
    let share = |share: f64| (share.clamp(0.0, 1.0) * Target::ALL as f64).round() as u64;
    let given = allocation.shares.iter().flatten().filter(|part| **part > 0.0).count();
    let mut targets = Vec::with_capacity(given + allocation.pairs.len());
    for (job, row) in jobs.iter().zip(&allocation.shares) {
        let team = Team::alone(*job);
        for (model, part) in row.iter().enumerate().filter(|(_, part)| **part > 0.0) {
            targets.push(Target { team, model: ModelId(model as u32), share: share(*part) });
        }
    }
    for pair in &allocation.pairs {
        let (team, model) = (Team::pair(jobs[pair.first], jobs[pair.second]), pair.gpu as u32);
        targets.push(Target { team, model: ModelId(model), share: share(pair.share) });
    }
    targets.retain(|target| target.share > 0);
    targets
}

/// Kinds of jobs that behave alike in pairs: same profile, same shape.
#[derive(Default)]
struct Kinds {
    known: BTreeMap<(ProfileKey, u32, u32), u32>,
}

impl Kinds {
    /// The kind of a job; zero when it shares with nobody.
    fn of(&mut self, view: &View<'_>, job: &Job) -> u32 {
        let Some(key) = pair_key(view, job) else { return 0 };
        let next = self.known.len() as u32 + 1;
        *self.known.entry(key).or_insert(next)
    }

    /// Pairs of kinds that run together somewhere; with those that nobody has seen, if somebody is
    /// hopeful of them.
    fn pairs(&self, view: &View<'_>, hopeful: bool) -> Vec<PairRow> {
        let mut pairs = Vec::new();
        // A hope for every two of many kinds would be more than can be looked at.
        let few = if hopeful { PACKED_CLASSES_MAX } else { usize::MAX };
        for (first, first_kind) in self.known.iter().take(few) {
            for (second, second_kind) in self.known.range(first..).take(few) {
                if (first.1, first.2) != (second.1, second.2) {
                    continue;
                }
                let row = pair_row(view, (first.0, second.0), first.1, hopeful);
                pairs.extend(row.map(|(rates, seen)| PairRow {
                    first: *first_kind,
                    second: *second_kind,
                    rates,
                    seen,
                }));
            }
        }
        pairs
    }
}

/// Speeds of two kinds of jobs beside each other by model, and whether they were seen on any; none
/// where nothing is to be said of them.
fn pair_row(
    view: &View<'_>,
    (one, other): (ProfileKey, ProfileKey),
    gpus: u32,
    hopeful: bool,
) -> Option<(Vec<(f64, f64)>, bool)> {
    let (profile, theirs) = (view.profile(one), view.profile(other));
    // Of one of the two alone, half is a guess.
    let own = |model| profile.and_then(|own| own.exact_pair(PairRun(other, model, gpus)));
    let others = |model| theirs.and_then(|theirs| theirs.exact_pair(PairRun(one, model, gpus)));
    let alone = |key: ProfileKey, model: ModelId| {
        view.profile(key).map_or(1.0, |profile| profile.steps_per_sec(model, gpus, false))
    };
    let mut seen = false;
    let models = (0..view.models().len() as u32).map(ModelId);
    let rates = models.map(|model| {
        let known = match hopeful {
            true => own(model).zip(others(model)).map(|(own, others)| (own.0, others.0)),
            false => profile
                .and_then(|profile| profile.pair(other, model, gpus))
                .map(|PairPace(own, others)| (own, others)),
        };
        match known {
            Some(pair) => {
                seen = true;
                let both = pair.0 > Pace::ZERO && pair.1 > Pace::ZERO;
                if both { (pair.0.steps_per_sec(), pair.1.steps_per_sec()) } else { (0.0, 0.0) }
            }
            None if hopeful => (alone(one, model), alone(other, model)),
            None => (0.0, 0.0),
        }
    });
    let rates: Vec<(f64, f64)> = rates.collect();
    (hopeful || rates.iter().any(|(rate, _)| *rate > 0.0)).then_some((rates, seen))
}

/// Says of each job with whom it shares GPUs by the last solution.
fn note_partners(view: &View<'_>, jobs: &mut [JobRow]) {
    let sharing = view.pair_accounts().filter(|(_, _, account)| account.share > 0);
    let sharing = sharing.filter_map(|(team, ..)| Some((team.first.0, team.second?.0)));
    let partners: BTreeMap<u32, u32> =
        sharing.flat_map(|(one, other)| [(one, other), (other, one)]).collect();
    if !partners.is_empty() {
        jobs.iter_mut().for_each(|job| job.partner = partners.get(&job.number).copied());
    }
}

/// Whether the two of a team are still believed to run together; who is alone always is. Who is
/// hopeful believes it of all that were not seen together on as many GPUs.
pub(super) fn runs_together(view: &View<'_>, turn: Turn, hopeful: bool) -> bool {
    let Some(second) = turn.team.second else { return true };
    let key = |job: JobId| view.job(job).and_then(|job| pair_key(view, job));
    let (Some(first), Some(second)) = (key(turn.team.first), key(second)) else { return false };
    let run = PairRun(second.0, turn.model, first.1);
    let own = view.profile(first.0);
    let pair = match hopeful {
        true => own.and_then(|own| own.exact_pair(run)),
        false => own.and_then(|own| own.pair(run.0, run.1, run.2)),
    };
    match pair {
        Some(PairPace(own, others)) => own > Pace::ZERO && others > Pace::ZERO,
        None => hopeful,
    }
}

/// What must be equal for two jobs to share GPUs in the same way: profile, GPUs in all, and GPUs
/// of a task. None when the job shares with nobody, can go on with whole GPUs only, or asks for
/// more of their memory than half.
fn pair_key(view: &View<'_>, job: &Job) -> Option<(ProfileKey, u32, u32)> {
    let stays = || {
        let lease = job.lease().and_then(|lease| view.lease(lease));
        lease.is_some_and(|lease| !view.may_stop_for_good(lease))
    };
    if (is_bound(view, job) || stays()) && !seats::has_halves(view, job) {
        return None;
    }
    let gang = gpu_gang(&job.spec)?;
    let halves = view.models().iter().map(|model| model.mem.0 / 2);
    if gang.demand.gpu_mem.0 > halves.min().unwrap_or(0) {
        return None;
    }
    let willing = job.spec.sharing == Sharing::Willing && !gang.demand.gpu.is_fraction();
    let profile = job.spec.profile.filter(|_| willing)?;
    Some((profile, job.spec.gpus(), gang.demand.gpu.0))
}
