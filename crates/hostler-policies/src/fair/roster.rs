//! Who takes part: jobs with one GPU role that GPUs of a single model can hold, and how fast they
//! are on which. A cache of the job table; all of it follows from the state.
//!
//! Jobs without GPUs, with several roles, or too large for any one model are no part of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use hostler_core::admit::EmptyCluster;
use hostler_core::id::{JobId, ModelId, ModelSet, NodeId};
use hostler_core::job::{Demand, Gang, Job, JobSpec, Models, Phase};
use hostler_core::plan::Plan;
use hostler_core::reason::Reason;
use hostler_core::state::Change;
use hostler_core::table::IdWindow;
use hostler_core::target::Turn;
use hostler_core::view::View;

use crate::limits::ROSTER_OVER_MIN;
use crate::place::best_fit::BestFit;

/// What a round knows of one job.
#[derive(Clone, Debug)]
pub(super) struct RosterEntry {
    /// Steps per second on each model, by id; 0 where it cannot run.
    pub(super) rates: Arc<[f64]>,
    /// Thousandths of GPUs that it asks for.
    pub(super) gpu_milli: u64,
    /// Steps per second of the run that run times refer to.
    pub(super) reference: f64,
}

/// The jobs that take part, and those that do not.
#[derive(Clone, Default)]
pub(super) struct Roster {
    /// Of all jobs; some of them may be over.
    rows: IdWindow<Option<RosterEntry>>,
    empty_cluster: EmptyCluster,
    /// Step of the catalogue, and number of the journal, that this follows.
    seen: Option<(u64, u64)>,
    /// Waiting jobs that nobody was told yet why they wait.
    newcomers: BTreeSet<JobId>,
    /// Waiting jobs that take no part.
    others: BTreeSet<JobId>,
    /// Waiting jobs whose turn it may be.
    due: BTreeSet<JobId>,
    /// Jobs whose rows are those of one that can go on where it is or was only.
    bound: BTreeSet<JobId>,
}

/// What changed since the last question.
#[derive(Default)]
pub(super) struct RosterNews {
    /// Everything may have.
    pub(super) all: bool,
    /// Jobs that began or ceased to wait.
    pub(super) changed: Vec<JobId>,
    /// Nodes that have more free than before.
    pub(super) freed: Vec<NodeId>,
}

impl Roster {
    /// Whether this follows the state as it is.
    pub(super) fn is_current(&self, view: &View<'_>) -> bool {
        self.seen == Some((view.catalogue_step(), view.journal().end()))
    }

    /// Follows the state.
    pub(super) fn refresh(&mut self, view: &View<'_>) -> RosterNews {
        let known = self.seen.filter(|(catalogue, _)| *catalogue == view.catalogue_step());
        let changes = known.and_then(|(_, journal)| view.journal().since(journal));
        self.seen = Some((view.catalogue_step(), view.journal().end()));
        let Some(changes) = changes else {
            self.start_anew(view);
            return RosterNews { all: true, ..RosterNews::default() };
        };
        self.enter(view);
        let mut news = RosterNews::default();
        for change in changes {
            match change {
                Change::Queued(id) | Change::Unqueued(id) => news.changed.push(*id),
                Change::Freed(node) | Change::Vacated(node, _) => news.freed.push(*node),
                Change::Ended(_)
                | Change::Slipped(_)
                | Change::Rescheduled(_)
                | Change::Closed(_) => {}
            }
        }
        for id in &news.changed {
            self.follow_bonds(view, *id);
            self.look_at(view, *id);
        }
        self.newcomers.retain(|id| is_new(view, *id));
        self.due.retain(|id| is_due(view, *id));
        if self.rows.len() > 2 * view.job_count() + ROSTER_OVER_MIN {
            self.forget_over(view);
        }
        news
    }

    fn start_anew(&mut self, view: &View<'_>) {
        *self = Roster { seen: self.seen, ..Roster::default() };
        self.empty_cluster.refresh(view);
        self.enter(view);
        view.pending().iter().for_each(|id| self.look_at(view, *id));
    }

    /// Takes in the jobs that came after the last one known.
    fn enter(&mut self, view: &View<'_>) {
        for job in view.jobs_from(JobId(self.rows.next_id())) {
            self.rows.insert(job.id.0, row(&self.empty_cluster, view, job));
            if is_bound(view, job) {
                self.bound.insert(job.id);
            }
        }
    }

    /// What a job can run on is something else while it cannot leave.
    fn follow_bonds(&mut self, view: &View<'_>, id: JobId) {
        let bound = view.job(id).is_some_and(|job| is_bound(view, job));
        let was_bound = match bound {
            true => !self.bound.insert(id),
            false => self.bound.remove(&id),
        };
        let known = self.rows.get_mut(id.0).filter(|_| bound || was_bound);
        if let Some((job, known)) = view.job(id).zip(known) {
            *known = row(&self.empty_cluster, view, job);
        }
    }

    /// Notes what is to be known of a job that waits, or does so no more.
    fn look_at(&mut self, view: &View<'_>, id: JobId) {
        let waits = view.job(id).is_some_and(|job| job.phase == Phase::Pending);
        let note = |set: &mut BTreeSet<JobId>, belongs: bool| match waits && belongs {
            true => _ = set.insert(id),
            false => _ = set.remove(&id),
        };
        let takes_part = self.rows.get(id.0).is_some_and(Option::is_some);
        note(&mut self.newcomers, is_new(view, id));
        note(&mut self.others, !takes_part);
        note(&mut self.due, takes_part && is_due(view, id));
    }

    fn forget_over(&mut self, view: &View<'_>) {
        let known = self.rows.numbered().map(|(id, _)| id);
        let over: Vec<u32> = known.filter(|id| view.job(JobId(*id)).is_none()).collect();
        over.into_iter().for_each(|id| _ = self.rows.remove(id));
        // Who ends while it runs is not told of.
        self.bound.retain(|id| view.job(*id).is_some());
    }

    /// What is known of a job that takes part.
    pub(super) fn row(&self, job: JobId) -> Option<&RosterEntry> {
        self.rows.get(job.0)?.as_ref()
    }

    /// Jobs that take part and are not held by a person, by id.
    pub(super) fn rows<'a>(
        &'a self,
        view: &View<'a>,
    ) -> impl Iterator<Item = (&'a Job, &'a RosterEntry)> {
        let view = *view;
        view.jobs().filter_map(move |job| self.asking(job))
    }

    /// Those of them that may have a share, by id.
    pub(super) fn rows_with_share<'a>(
        &'a self,
        view: &View<'a>,
    ) -> impl Iterator<Item = (&'a Job, &'a RosterEntry)> {
        let view = *view;
        view.in_rounds().iter().filter_map(move |id| self.asking(view.job(*id)?))
    }

    fn asking<'a>(&'a self, job: &'a Job) -> Option<(&'a Job, &'a RosterEntry)> {
        let asks = job.phase != Phase::Held && !job.cancelled;
        Some((job, self.row(job.id).filter(|_| asks)?))
    }

    /// Whether a job that takes part waits.
    pub(super) fn has_waiting(&self, view: &View<'_>) -> bool {
        view.pending().len() > self.others.len()
    }

    /// Waiting jobs that take no part, by id.
    pub(super) fn others(&self) -> &BTreeSet<JobId> {
        &self.others
    }

    /// Waiting jobs that were told nothing so far, by id.
    pub(super) fn newcomers(&self) -> &BTreeSet<JobId> {
        &self.newcomers
    }

    /// Turns of jobs that take part and wait.
    pub(super) fn turns_due(&self, view: &View<'_>) -> Vec<Turn> {
        self.due.iter().filter_map(|job| view.turn(*job)).collect()
    }

    /// Notes that turns are about to be given.
    pub(super) fn note_turns(&mut self, view: &View<'_>, turns: &[Turn]) {
        let waits = |id: &JobId| view.job(*id).is_some_and(|job| job.phase == Phase::Pending);
        self.due.extend(turns.iter().flat_map(|turn| turn.team.members()).filter(waits));
    }

    /// Turns newcomers away that can never run here.
    pub(super) fn turn_away(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        for id in self.newcomers.clone() {
            let job = view.job(id).expect("a waiting job is not over");
            if !self.empty_cluster.admits(view, plan, id, &job.spec, &BestFit) {
                continue;
            }
            if self.row(id).is_some_and(|row| row.rates.iter().all(|rate| *rate <= 0.0)) {
                plan.turn_away(id, Reason::NoSuchModel).expect("a waiting job can be turned away");
            }
        }
    }
}

/// Whether a job waits and was told nothing so far.
fn is_new(view: &View<'_>, id: JobId) -> bool {
    view.job(id).is_some_and(|job| job.phase == Phase::Pending && job.reason == Reason::New)
}

/// Whether it is the turn of a job that waits.
fn is_due(view: &View<'_>, id: JobId) -> bool {
    let waits = view.job(id).is_some_and(|job| job.phase == Phase::Pending && !job.cancelled);
    waits && view.turn(id).is_some()
}

/// The only role of a job, when it has GPUs.
pub(super) fn gpu_gang(spec: &JobSpec) -> Option<&Gang> {
    match &*spec.gangs {
        [gang] if gang.demand.gpu.0 > 0 => Some(gang),
        _ => None,
    }
}

/// The demand of a role, of GPUs of one model only.
pub(super) fn demand_on(demand: &Demand, model: ModelId) -> Demand {
    Demand { models: Models::OneOf(ModelSet::one(model)), ..demand.clone() }
}

/// Whether a job can go on where it is only: it waits in memory there, or could leave by that way
/// alone.
pub(super) fn is_bound(view: &View<'_>, job: &Job) -> bool {
    let stays = || job.spec.checkpoint.never && view.abilities().suspend.is_some();
    job.is_suspended() || (job.lease().is_some() && stays())
}

fn row(empty_cluster: &EmptyCluster, view: &View<'_>, job: &Job) -> Option<RosterEntry> {
    let spec = &job.spec;
    let gang = gpu_gang(spec)?;
    // A suspended job asks for its own GPUs by itself.
    let lease = job.lease().filter(|_| is_bound(view, job)).and_then(|lease| view.lease(lease));
    let home = lease.and_then(|lease| view.model_of(lease));
    let profile = spec.profile.and_then(|key| view.profile(key));
    let gpus = spec.gpus();
    let models = (0..view.models().len() as u32).map(ModelId);
    let mut held = false;
    let rates = models.map(|model| {
        let asked = gang.demand.models.set().contains(model);
        let asked = asked && home.is_none_or(|home| home == model);
        if !asked || !empty_cluster.holds(view, &demand_on(&gang.demand, model), gang.count) {
            return 0.0;
        }
        held = true;
        profile.map_or(1.0, |profile| profile.steps_per_sec(model, gpus, false))
    });
    let rates: Arc<[f64]> = rates.collect();
    let reference = profile.map_or(1.0, |profile| profile.reference(gpus).steps_per_sec());
    held.then_some(RosterEntry { rates, gpu_milli: spec.gpu_milli(), reference })
}
