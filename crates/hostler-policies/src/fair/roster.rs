//! Who takes part: jobs with one GPU role that GPUs of a single model can hold, and how fast they
//! are on which. A cache of the job table; all of it follows from the state.
//!
//! Jobs without GPUs, with several roles, or too large for any one model are no part of it.

use std::sync::Arc;

use hostler_core::admit::EmptyCluster;
use hostler_core::id::{JobId, ModelId, ModelSet};
use hostler_core::job::{Demand, Gang, Job, JobSpec, Models, Phase};
use hostler_core::plan::Plan;
use hostler_core::reason::Reason;
use hostler_core::table::IdWindow;
use hostler_core::view::View;

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
    rows: IdWindow<Option<RosterEntry>>,
    empty_cluster: EmptyCluster,
    /// Step of the catalogue.
    seen: Option<u64>,
    /// Number of jobs and of the next one: jobs are the same while neither changes.
    jobs: (usize, u32),
}

impl Roster {
    /// Follows the state.
    pub(super) fn refresh(&mut self, view: &View<'_>) {
        if self.seen != Some(view.catalogue_step()) {
            self.rows = IdWindow::default();
            self.empty_cluster = EmptyCluster::default();
            self.empty_cluster.refresh(view);
            self.seen = Some(view.catalogue_step());
        }
        let jobs = (view.job_count(), view.next_job().0);
        if self.jobs != jobs || self.rows.len() != jobs.0 {
            self.jobs = jobs;
            let known = self.rows.numbered().map(|(id, _)| id);
            let over: Vec<u32> = known.filter(|id| view.job(JobId(*id)).is_none()).collect();
            over.into_iter().for_each(|id| _ = self.rows.remove(id));
            self.enter(view);
            // Another state than the last: numbers that were passed over belong to jobs.
            if self.rows.len() != jobs.0 {
                self.rows = IdWindow::default();
                self.enter(view);
            }
        }
    }

    /// Takes in the jobs that came after the last one known.
    fn enter(&mut self, view: &View<'_>) {
        let known = self.rows.next_id();
        for job in view.jobs().filter(|job| job.id.0 >= known) {
            let row = row(&self.empty_cluster, view, &job.spec);
            self.rows.insert(job.id.0, row);
        }
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
        self.rows.numbered().filter_map(move |(id, row)| {
            let job =
                view.job(JobId(id)).filter(|job| job.phase != Phase::Held && !job.cancelled)?;
            Some((job, row.as_ref()?))
        })
    }

    /// Waiting jobs that take part, by id.
    pub(super) fn waiting<'a>(
        &'a self,
        view: &View<'a>,
    ) -> impl Iterator<Item = (&'a Job, &'a RosterEntry)> {
        let view = *view;
        view.pending().iter().filter_map(move |id| {
            let job = view.job(*id).filter(|job| !job.cancelled)?;
            Some((job, self.row(*id)?))
        })
    }

    /// Waiting jobs that take no part, by id.
    pub(super) fn others<'a>(&'a self, view: &View<'a>) -> impl Iterator<Item = &'a Job> {
        let view = *view;
        let others = view.pending().iter().filter(|id| self.row(**id).is_none());
        others.filter_map(move |id| view.job(*id))
    }

    /// Turns a waiting job away that can never run here.
    pub(super) fn admit(&mut self, view: &View<'_>, plan: &mut Plan<'_>, job: &Job) {
        if !self.empty_cluster.admits(view, plan, job.id, &job.spec, &BestFit) {
            return;
        }
        if self.row(job.id).is_some_and(|row| row.rates.iter().all(|rate| *rate <= 0.0)) {
            plan.turn_away(job.id, Reason::NoSuchModel).expect("a waiting job can be turned away");
        }
    }
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

fn row(empty_cluster: &EmptyCluster, view: &View<'_>, spec: &JobSpec) -> Option<RosterEntry> {
    let gang = gpu_gang(spec)?;
    let profile = spec.profile.and_then(|key| view.profile(key));
    let gpus = spec.gpus();
    let models = (0..view.models().len() as u32).map(ModelId);
    let mut held = false;
    let rates = models.map(|model| {
        let asked = gang.demand.models.set().contains(model);
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
