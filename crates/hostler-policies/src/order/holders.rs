//! GPUs that running jobs hold by what they asked for, and those that jobs hold which were
//! submitted after another: sums that follow the journal. No policy of its own.

use std::collections::BTreeMap;
use std::ops::Bound;

use hostler_core::id::{JobId, NodeId};
use hostler_core::job::Job;
use hostler_core::pipeline::BacklogChanges;
use hostler_core::view::View;

/// Who holds how many GPUs, in thousandths. All of it follows from the state.
#[derive(Default)]
pub(super) struct Holders {
    by_job: BTreeMap<JobId, u64>,
    held: u64,
    /// GPUs of each node that may take jobs; none of the others.
    by_node: Vec<u64>,
    usable: u64,
    /// What those hold that were submitted after this job.
    later: (JobId, u64),
}

impl Holders {
    /// Takes in what happened since the last question.
    pub(super) fn follow(&mut self, view: &View<'_>, news: &BacklogChanges) {
        if news.all {
            *self = Holders::default();
            view.leases().for_each(|lease| self.look_at(view, lease.job));
            return view.nodes().iter().for_each(|node| self.look_at_node(view, node.id));
        }
        let left = news.left.iter().map(|(rank, _)| rank.1);
        left.chain(news.ended.iter().copied()).for_each(|job| self.look_at(view, job));
        let nodes = news.freed.iter().chain(&news.closed);
        nodes.for_each(|node| self.look_at_node(view, *node));
    }

    fn look_at(&mut self, view: &View<'_>, id: JobId) {
        let runs = view.job(id).filter(|job| job.lease().is_some());
        let now = runs.map(|job: &Job| job.spec.gpu_milli());
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

    fn look_at_node(&mut self, view: &View<'_>, id: NodeId) {
        let usable = view.node(id).filter(|node| node.usable());
        let gpus = usable.map_or(0, |node| u64::from(node.spec.gpus) * 1000);
        if self.by_node.len() <= id.index() {
            self.by_node.resize(id.index() + 1, 0);
        }
        let before = std::mem::replace(&mut self.by_node[id.index()], gpus);
        self.usable = self.usable - before + gpus;
    }

    /// GPUs of nodes that may take jobs.
    pub(super) fn usable(&self) -> u64 {
        self.usable
    }

    /// What all hold that run.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// What those hold that were submitted after a job. Costs those that run between this and the
    /// job that was asked about last.
    pub(super) fn held_after(&mut self, id: JobId) -> u64 {
        let (last, held) = self.later;
        let between = (Bound::Excluded(last.min(id)), Bound::Included(last.max(id)));
        let gpus: u64 = self.by_job.range(between).map(|(_, gpus)| *gpus).sum();
        self.later = (id, if id > last { held - gpus } else { held + gpus });
        self.later.1
    }

    /// Whether a job runs that was submitted before another.
    pub(super) fn any_before(&self, id: JobId) -> bool {
        self.by_job.first_key_value().is_some_and(|(first, _)| *first < id)
    }
}
