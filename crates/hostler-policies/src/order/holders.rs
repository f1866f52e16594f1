//! GPUs that running jobs hold by what they asked for, and those that jobs hold which were
//! submitted after another: sums that follow the journal, by class of node. No policy of its own.

use std::collections::BTreeMap;
use std::ops::Bound;

use hostler_core::cluster::Node;
use hostler_core::id::{Features, JobId, ModelId};
use hostler_core::job::{Demand, JobSpec};
use hostler_core::pipeline::BacklogChanges;
use hostler_core::placement::Placement;
use hostler_core::view::View;

/// Who holds how many GPUs, in thousandths. All of it follows from the state.
#[derive(Default)]
pub(super) struct Holders {
    classes: Vec<Class>,
    /// What each node is one of, and its GPUs while it may take jobs.
    by_node: Vec<(usize, u64)>,
    /// What each running job holds, by class.
    by_job: BTreeMap<JobId, Box<[(usize, u64)]>>,
}

/// Nodes that may serve the same jobs.
struct Class {
    model: Option<ModelId>,
    features: Features,
    by_job: BTreeMap<JobId, u64>,
    held: u64,
    usable: u64,
    /// What those hold that were submitted after this job.
    later: (JobId, u64),
}

impl Holders {
    /// Takes in what happened since the last question.
    pub(super) fn follow(&mut self, view: &View<'_>, news: &BacklogChanges) {
        let nodes = news.freed.iter().chain(&news.closed).filter_map(|id| view.node(*id));
        if news.all || !nodes.clone().all(|node| self.knows(node)) {
            *self = Holders::default();
            view.nodes().iter().for_each(|node| self.add_node(node));
            return view.leases().for_each(|lease| self.look_at(view, lease.job));
        }
        nodes.for_each(|node| self.look_at_node(node));
        let left = news.left.iter().map(|(rank, _)| rank.1);
        left.chain(news.ended.iter().copied()).for_each(|job| self.look_at(view, job));
    }

    /// The classes of nodes that could hold a role of a job.
    pub(super) fn serving(&self, spec: &JobSpec) -> Vec<usize> {
        let serve = |class: &Class| spec.gangs.iter().any(|gang| class.serves(&gang.demand));
        (0..self.classes.len()).filter(|at| serve(&self.classes[*at])).collect()
    }

    /// Whether any of these classes could hold a role of a job.
    pub(super) fn serve(&self, classes: &[usize], spec: &JobSpec) -> bool {
        let mut classes = classes.iter().map(|at| &self.classes[*at]);
        classes.any(|class| spec.gangs.iter().any(|gang| class.serves(&gang.demand)))
    }

    /// Whether any of these classes could hold a task.
    pub(super) fn serve_tasks(&self, classes: &[usize], demand: &Demand) -> bool {
        classes.iter().any(|at| self.classes[*at].serves(demand))
    }

    /// What a placement takes of each class, in thousandths of GPUs.
    pub(super) fn taken(&self, spec: &JobSpec, placement: &Placement) -> Box<[(usize, u64)]> {
        let mut taken: BTreeMap<usize, u64> = BTreeMap::new();
        for part in &placement.parts {
            let gpu = spec.gangs.get(part.gang as usize).map_or(0, |gang| gang.demand.gpu.0);
            let class = self.by_node.get(part.node.index()).map(|(class, _)| *class);
            if let Some(class) = class {
                *taken.entry(class).or_default() += u64::from(gpu) * u64::from(part.tasks);
            }
        }
        taken.into_iter().collect()
    }

    /// GPUs of nodes of these classes that may take jobs.
    pub(super) fn usable(&self, classes: &[usize]) -> u64 {
        classes.iter().map(|at| self.classes[*at].usable).sum()
    }

    /// What all hold that run on them.
    pub(super) fn held(&self, classes: &[usize]) -> u64 {
        classes.iter().map(|at| self.classes[*at].held).sum()
    }

    /// What those hold of them that were submitted after a job.
    pub(super) fn held_after(&mut self, classes: &[usize], id: JobId) -> u64 {
        classes.iter().map(|at| self.classes[*at].held_after(id)).sum()
    }

    /// Whether a job runs on them that was submitted before another.
    pub(super) fn any_before(&self, classes: &[usize], id: JobId) -> bool {
        let first = |at: &usize| self.classes[*at].by_job.first_key_value();
        classes.iter().filter_map(first).any(|(first, _)| *first < id)
    }

    fn look_at(&mut self, view: &View<'_>, id: JobId) {
        for (class, _) in self.by_job.remove(&id).unwrap_or_default() {
            self.classes[class].change(id, None);
        }
        let job = view.job(id);
        let lease = job.and_then(|job| view.lease(job.lease()?));
        let Some((job, lease)) = job.zip(lease) else { return };
        let held = self.taken(&job.spec, &lease.placement);
        for (class, gpus) in &held {
            self.classes[*class].change(id, Some(*gpus));
        }
        self.by_job.insert(id, held);
    }

    /// Whether a node is of the class that it was of.
    fn knows(&self, node: &Node) -> bool {
        let class = self.by_node.get(node.id.index()).map(|(class, _)| &self.classes[*class]);
        class.is_some_and(|class| class.is_of(node))
    }

    fn add_node(&mut self, node: &Node) {
        let class = self.class_of(node);
        self.by_node.push((class, 0));
        self.look_at_node(node);
    }

    fn look_at_node(&mut self, node: &Node) {
        let gpus = if node.usable() { u64::from(node.spec.gpus) * 1000 } else { 0 };
        let (class, before) = &mut self.by_node[node.id.index()];
        let class = &mut self.classes[*class];
        class.usable = class.usable - std::mem::replace(before, gpus) + gpus;
    }

    fn class_of(&mut self, node: &Node) -> usize {
        let known = self.classes.iter().position(|class| class.is_of(node));
        known.unwrap_or_else(|| {
            self.classes.push(Class {
                model: node.spec.gpu_model,
                features: node.spec.features,
                by_job: BTreeMap::new(),
                held: 0,
                usable: 0,
                later: (JobId(0), 0),
            });
            self.classes.len() - 1
        })
    }
}

impl Class {
    fn is_of(&self, node: &Node) -> bool {
        (self.model, self.features) == (node.spec.gpu_model, node.spec.features)
    }

    fn serves(&self, demand: &Demand) -> bool {
        let model = self.model.is_some_and(|model| demand.models.set().contains(model));
        (model || demand.gpu.0 == 0) && self.features.cover(demand.needs)
    }

    /// A job holds so much now, or runs here no more.
    fn change(&mut self, id: JobId, now: Option<u64>) {
        let before = match now {
            Some(gpus) => self.by_job.insert(id, gpus),
            None => self.by_job.remove(&id),
        };
        let (before, now) = (before.unwrap_or(0), now.unwrap_or(0));
        self.held = self.held - before + now;
        if id > self.later.0 {
            self.later.1 = self.later.1 - before + now;
        }
    }

    /// Costs those that run between this job and the one that was asked about last.
    fn held_after(&mut self, id: JobId) -> u64 {
        let (last, held) = self.later;
        let between = (Bound::Excluded(last.min(id)), Bound::Included(last.max(id)));
        let gpus: u64 = self.by_job.range(between).map(|(_, gpus)| *gpus).sum();
        self.later = (id, if id > last { held - gpus } else { held + gpus });
        self.later.1
    }
}
