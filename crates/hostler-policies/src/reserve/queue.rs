//! Waiting jobs with their access, by what they ask for: a cache that follows the journal.
//!
//! A job whose access changes with time moves to another shape when the time comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::capacity::Capacity;
use hostler_core::id::{JobId, NodeId};
use hostler_core::job::{JobSpec, Phase};
use hostler_core::shapes::Shapes;
use hostler_core::state::Change;
use hostler_core::units::Time;
use hostler_core::view::View;

use super::class_access::{Class, ClassAccess, Fleet, Rules};

/// Waiting jobs, by id and by shape.
#[derive(Default)]
pub(super) struct Queue {
    seen: Option<u64>,
    waiting: BTreeMap<JobId, Waiting>,
    /// Jobs with one role.
    pub(super) shapes: Shapes<Access, JobId>,
    /// When access changes.
    times: BTreeSet<(Time, JobId)>,
    /// Jobs with several roles.
    pub(super) complex: BTreeSet<JobId>,
}

/// Where the jobs of a shape may go.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    pub(super) classes: Arc<[Class]>,
    /// Whether the top class among them is kept from it.
    kept: bool,
}

/// A job that waits.
pub(super) struct Waiting {
    pub(super) spec: Arc<JobSpec>,
    pub(super) access: ClassAccess,
}

/// What changed since the last question.
#[derive(Default)]
pub(super) struct QueueChanges {
    /// Jobs that began to wait, or whose access is another now.
    pub(super) came: BTreeSet<JobId>,
    freed: BTreeSet<NodeId>,
}

impl Queue {
    /// Follows the journal and the time, or starts anew when the journal does not reach back far
    /// enough or `grew` says that the machines are others.
    pub(super) fn sync(
        &mut self,
        view: &View<'_>,
        fleet: &Fleet,
        rules: &Rules,
        grew: bool,
    ) -> QueueChanges {
        let journal = view.journal();
        let noted = self.seen.and_then(|seen| journal.since(seen)).filter(|_| !grew);
        self.seen = Some(journal.end());
        let mut changes = QueueChanges::default();
        let Some(noted) = noted else {
            *self = Queue { seen: self.seen, ..Queue::default() };
            changes.came = view.pending().clone();
            changes.came.iter().for_each(|id| self.add(view, fleet, rules, *id));
            return changes;
        };
        for change in noted {
            match change {
                Change::Queued(id) => _ = changes.came.insert(*id),
                Change::Unqueued(id) => self.remove(*id),
                Change::Freed(node) | Change::Vacated(node, _) => _ = changes.freed.insert(*node),
                Change::Ended(_)
                | Change::Slipped(_)
                | Change::Rescheduled(_)
                | Change::Closed(_) => {}
            }
        }
        let due = self.times.iter().take_while(|(at, _)| *at <= view.now());
        changes.came.extend(due.map(|(_, id)| *id));
        changes.came.retain(|id| view.job(*id).is_some_and(|job| job.phase == Phase::Pending));
        for id in &changes.came {
            self.remove(*id);
            self.add(view, fleet, rules, *id);
        }
        changes
    }

    /// The waiting jobs in order of submission.
    pub(super) fn iter(&self) -> impl Iterator<Item = (JobId, &Waiting)> {
        self.waiting.iter().map(|(id, waiting)| (*id, waiting))
    }

    pub(super) fn get(&self, id: JobId) -> &Waiting {
        self.waiting.get(&id).expect("the queue follows the waiting jobs")
    }

    /// When the access of a waiting job changes next; those in `gone` wait no more.
    pub(super) fn next_time(&self, gone: &BTreeSet<JobId>) -> Option<Time> {
        let mut times = self.times.iter();
        times.find(|(_, id)| !gone.contains(id)).map(|(at, _)| *at)
    }

    /// Shapes that may have gained, with their bounds raised.
    pub(super) fn gained(
        &mut self,
        view: &View<'_>,
        free: &Capacity,
        changes: &QueueChanges,
    ) -> Vec<usize> {
        let freed: Vec<NodeId> = changes.freed.iter().copied().collect();
        self.shapes.freed(free, &freed, |access, node| {
            let class = view.node(node).map(|node| node.spec.gpu_model);
            class.is_some_and(|class| access.classes.contains(&class))
        });
        self.shapes.take_listed()
    }

    fn add(&mut self, view: &View<'_>, fleet: &Fleet, rules: &Rules, id: JobId) {
        let job = view.job(id).expect("a waiting job is not over");
        let access = rules.access(view, fleet, job);
        self.times.extend(access.kept.as_ref().map(|kept| (kept.until, id)));
        if let [gang] = &*job.spec.gangs {
            let shape = self.shapes.add(gang, shape_access(&access), id);
            self.shapes.list(shape);
        } else {
            self.complex.insert(id);
        }
        self.waiting.insert(id, Waiting { spec: Arc::clone(&job.spec), access });
    }

    fn remove(&mut self, id: JobId) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        if let Some(kept) = &waiting.access.kept {
            self.times.remove(&(kept.until, id));
        }
        match &*waiting.spec.gangs {
            [gang] => self.shapes.remove(gang, shape_access(&waiting.access), id),
            _ => _ = self.complex.remove(&id),
        }
    }
}

fn shape_access(access: &ClassAccess) -> Access {
    Access { classes: Arc::clone(&access.searches[0].classes), kept: access.kept.is_some() }
}
