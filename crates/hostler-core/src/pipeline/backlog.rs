//! Waiting jobs in order of rank: a cache that follows the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{JobId, NodeId};
use crate::job::{JobSpec, Phase};
use crate::pipeline::{ShareRule, asked};
use crate::stage::Order;
use crate::state::Change;
use crate::view::View;

/// Position of a job: least key first, then by submission.
pub(super) type Rank = (i64, JobId);

/// All waiting jobs by rank.
#[derive(Default)]
pub(super) struct Backlog {
    seen: Option<u64>,
    keys: BTreeMap<JobId, (i64, Arc<JobSpec>)>,
    order: BTreeSet<Rank>,
    sharing: ShareRule,
}

/// What changed since the last question.
#[derive(Default)]
pub(super) struct BacklogChanges {
    /// The cache started anew: everything may have changed.
    pub(super) all: bool,
    /// Jobs that left, with what they asked for: they may be over.
    pub(super) left: Vec<(Rank, Arc<JobSpec>)>,
    pub(super) came: Vec<Rank>,
    pub(super) freed: Vec<NodeId>,
}

impl Backlog {
    /// Follows the journal, or starts anew when it does not reach back far enough.
    pub(super) fn sync(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
        sharing: ShareRule,
    ) -> BacklogChanges {
        self.sharing = sharing;
        let journal = view.state().journal();
        let changes = self.seen.and_then(|seen| journal.since(seen));
        self.seen = Some(journal.end());
        match changes {
            Some(changes) => self.follow(view, order, changes),
            None => self.start_anew(view, order),
        }
    }

    fn start_anew(&mut self, view: &View<'_>, order: &dyn Order) -> BacklogChanges {
        self.keys.clear();
        self.order.clear();
        let mut news = BacklogChanges { all: true, ..BacklogChanges::default() };
        for id in view.pending() {
            news.came.extend(self.add(view, order, *id));
        }
        news
    }

    fn follow(&mut self, view: &View<'_>, order: &dyn Order, changes: &[Change]) -> BacklogChanges {
        let mut news = BacklogChanges::default();
        for change in changes {
            match change {
                Change::Queued(id) if self.is_known(view, order, *id) => {}
                Change::Queued(id) => {
                    news.left.extend(self.remove(*id));
                    news.came.extend(self.add(view, order, *id));
                }
                Change::Unqueued(id) => news.left.extend(self.remove(*id)),
                Change::Freed(node) => news.freed.push(*node),
            }
        }
        news.freed.sort_unstable();
        news.freed.dedup();
        news
    }

    fn add(&mut self, view: &View<'_>, order: &dyn Order, id: JobId) -> Option<Rank> {
        let job = view.job(id).filter(|job| job.phase == Phase::Pending)?;
        let rank = (order.key(view, job), id);
        self.keys.insert(id, (rank.0, self.sharing.booked(job)));
        self.order.insert(rank);
        Some(rank)
    }

    /// Whether the job is known at the rank that it has now: a submission and its estimate come as
    /// two changes, and the first of them shows both.
    fn is_known(&self, view: &View<'_>, order: &dyn Order, id: JobId) -> bool {
        let known = self.keys.get(&id).zip(view.job(id));
        known.is_some_and(|((key, _), job)| *key == order.key(view, job))
    }

    fn remove(&mut self, id: JobId) -> Option<(Rank, Arc<JobSpec>)> {
        let (key, spec) = self.keys.remove(&id)?;
        self.order.remove(&(key, id));
        Some(((key, id), spec))
    }

    /// What a waiting job books, by the rule of sharing.
    pub(super) fn spec<'a>(&'a self, view: &'a View<'_>, id: JobId) -> &'a Arc<JobSpec> {
        match self.sharing {
            ShareRule::Requests => asked(view, id),
            ShareRule::Off | ShareRule::Packed => {
                &self.keys.get(&id).expect("a waiting job is in the backlog").1
            }
        }
    }

    /// The jobs, best first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Rank> {
        self.order.iter().copied()
    }

    pub(super) fn contains(&self, rank: &Rank) -> bool {
        self.order.contains(rank)
    }
}
