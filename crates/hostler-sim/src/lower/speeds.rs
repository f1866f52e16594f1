//! What a throughput table means for the jobs of a trace.
//!
//! A task names its workload in `model` and its steps in `work`. The reference run of a job is the
//! one on the fastest model that its gang fits on, close together; its length is steps over that
//! speed. Jobs go only where they fit. Jobs whose workload the table lacks run as without a table.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::cluster::GpuModel;
use hostler_core::id::{ModelId, ModelSet, ProfileKey};
use hostler_core::job::Models;
use hostler_core::profile::Profile;
use hostler_core::units::{Pace, Span};

use crate::trace::table::{JobRow, OptU64, TaskRow, Trace};
use crate::trace::text::TextId;
use crate::trace::throughputs::Throughputs;

/// A throughput table on a cluster, and the workloads of a trace in it.
#[derive(Debug, Default)]
pub(super) struct Speeds {
    profiles: Vec<Profile>,
    keys: BTreeMap<TextId, ProfileKey>,
    models: usize,
}

/// What a throughput table does not say of a workload and its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Jobs whose workload is not in the table.
    pub jobs: usize,
    /// The workloads that are not, by name.
    pub workloads: BTreeSet<String>,
    /// GPU models of the cluster that no row is about.
    pub gpu_models: Vec<String>,
    /// Whether no job names a workload of the table.
    pub unused: bool,
}

impl Speeds {
    pub(super) fn new(trace: &Trace, models: &[GpuModel], table: &Throughputs) -> Speeds {
        let mut keys = BTreeMap::new();
        for task in trace.tasks.iter().filter(|task| !task.model.is_empty()) {
            if let Some(key) = table.key(trace.text.get(task.model)) {
                keys.insert(task.model, key);
            }
        }
        Speeds { profiles: table.profiles(models), keys, models: models.len() }
    }

    /// Profiles that jobs of this trace have and that run somewhere.
    pub(super) fn used(&self) -> BTreeMap<ProfileKey, Profile> {
        // Pairs name others: all profiles of the table are there, or none.
        let all = if self.keys.is_empty() { &[][..] } else { &self.profiles };
        let numbered = all.iter().enumerate().filter(|(_, profile)| profile.is_sane());
        numbered.map(|(at, profile)| (ProfileKey(at as u32), profile.clone())).collect()
    }

    pub(super) fn keys(&self) -> &BTreeMap<TextId, ProfileKey> {
        &self.keys
    }

    /// Steps of a job that the table knows, and how long they take at its reference speed.
    pub(super) fn run(&self, tasks: &[TaskRow]) -> Option<(u64, Span)> {
        let profile = self.profile(tasks)?;
        let steps = tasks.iter().filter_map(|task| task.work.get()).max()?;
        let run = match profile.reference(gpus(tasks)) {
            // It fits nowhere and will be rejected.
            Pace::ZERO => Span(1),
            pace => pace.time_for(steps).max(Span(1)),
        };
        Some((steps, run))
    }

    /// The models of a demand on which the gang fits.
    pub(super) fn fitting(&self, tasks: &[TaskRow], models: Models) -> Models {
        let Some(profile) = self.profile(tasks) else {
            return models;
        };
        let all = (0..self.models).map(|at| ModelId(at as u32));
        let gpus = gpus(tasks);
        let fits = all.filter(|model| profile.fits(*model, gpus)).map(ModelSet::one);
        let fits = fits.fold(ModelSet::NONE, ModelSet::with);
        if fits.0.count_ones() as usize == self.models {
            return models;
        }
        Models::OneOf(ModelSet(models.set().0 & fits.0))
    }

    fn profile(&self, tasks: &[TaskRow]) -> Option<&Profile> {
        let key = tasks.iter().find_map(|task| self.keys.get(&task.model))?;
        Some(&self.profiles[key.index()])
    }

    /// Writes run times that follow from steps into the trace, so that load is counted with them.
    pub(super) fn fill_in(&self, trace: &mut Trace) {
        for job in &trace.jobs {
            let tasks = &mut trace.tasks[job.tasks()];
            if let Some((_, run)) = self.run(tasks) {
                let millis = OptU64::some(run.0.div_ceil(1000));
                tasks.iter_mut().for_each(|task| task.duration_ms = millis);
            }
        }
    }

    pub(super) fn gaps(&self, trace: &Trace, models: &[GpuModel], table: &Throughputs) -> Gaps {
        let lacking = |job: &&JobRow| {
            let tasks = trace.tasks[job.tasks()].iter();
            let mut named = tasks.filter(|task| !task.model.is_empty()).peekable();
            named.peek().is_some() && named.all(|task| !self.keys.contains_key(&task.model))
        };
        let names = trace.tasks.iter().map(|task| task.model);
        let names = names.filter(|name| !name.is_empty() && !self.keys.contains_key(name));
        let distinct: BTreeSet<TextId> = names.collect();
        let in_table = |model: &GpuModel| {
            table.gpu_models().iter().any(|name| name.to_lowercase() == model.name.to_lowercase())
        };
        let unknown = models.iter().filter(|model| !in_table(model));
        Gaps {
            jobs: trace.jobs.iter().filter(lacking).count(),
            workloads: distinct.iter().map(|name| trace.text.get(*name).to_owned()).collect(),
            gpu_models: unknown.map(|model| model.name.to_string()).collect(),
            unused: self.keys.is_empty(),
        }
    }
}

/// GPUs that the tasks of a job are on.
fn gpus(tasks: &[TaskRow]) -> u32 {
    let gpus = |task: &TaskRow| task.count.saturating_mul(task.gpu_milli.or(0).div_ceil(1000));
    tasks.iter().map(gpus).fold(0, u32::saturating_add)
}
