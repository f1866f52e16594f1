//! Waiting jobs in order of rank: a cache that follows the journal, and the time where ranks do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::decision::Decision;
use crate::id::{JobId, LeaseId, NodeId};
use crate::job::{Job, JobSpec, Phase};
use crate::pipeline::{ShareRule, asked};
use crate::plan::Plan;
use crate::stage::Order;
use crate::state::Change;
use crate::units::Time;
use crate::view::View;

/// Position of a job: least key first, then by submission.
pub type Rank = (i64, JobId);

/// All waiting jobs by rank.
#[derive(Default)]
pub struct Backlog {
    seen: Option<u64>,
    keys: BTreeMap<JobId, (i64, Arc<JobSpec>)>,
    order: BTreeSet<Rank>,
    times: Times,
    sharing: ShareRule,
    /// Whether no job that waits has the key that it had.
    keys_forgotten: bool,
}

/// What changed since the last question.
#[derive(Default)]
pub struct BacklogChanges {
    /// The cache started anew: everything may have changed.
    pub all: bool,
    /// Jobs that left, with what they asked for: they may be over.
    pub left: Vec<(Rank, Arc<JobSpec>)>,
    /// Those of them that came back at another rank and waited all the time.
    reranked: BTreeSet<JobId>,
    /// Those that did not.
    gone: BTreeSet<JobId>,
    /// Jobs that came, or have another rank.
    pub came: Vec<Rank>,
    /// Jobs that rank as before; something else about them may be new, their estimate for one.
    pub stayed: Vec<Rank>,
    /// Jobs of which a stay is over.
    pub ended: Vec<JobId>,
    /// Nodes that have more free than before, each once.
    pub freed: Vec<NodeId>,
    /// Which of them have more than what leases left.
    pub opened: Vec<NodeId>,
    /// Which leases left which of them.
    pub vacated: Vec<(NodeId, LeaseId)>,
    /// Running jobs that may rank after what they did.
    pub slipped: Vec<LeaseId>,
    /// Running jobs that are believed to end at another time than before.
    pub rescheduled: Vec<LeaseId>,
    /// Nodes that may take no new jobs, other than before.
    pub closed: Vec<NodeId>,
}

impl BacklogChanges {
    /// Whether a job that came waited before as well, and nothing but its rank is another. Who is
    /// to be looked at as if it had just come has left first.
    pub fn only_ranks_otherwise(&self, id: JobId) -> bool {
        self.reranked.contains(&id) && !self.gone.contains(&id)
    }
}

/// When ranks of waiting and of running jobs change by time alone. Empty where they never do.
#[derive(Default)]
struct Times {
    by_job: BTreeMap<JobId, Time>,
    line: BTreeSet<(Time, JobId)>,
}

impl Times {
    fn set(&mut self, job: JobId, at: Option<Time>) {
        if at.is_none() && self.by_job.is_empty() {
            return;
        }
        if let Some(before) = self.by_job.remove(&job) {
            self.line.remove(&(before, job));
        }
        if let Some(at) = at {
            self.by_job.insert(job, at);
            self.line.insert((at, job));
        }
    }

    /// Jobs whose rank may be another by now; they are forgotten here.
    fn due(&mut self, now: Time) -> Vec<JobId> {
        let mut due = Vec::new();
        while let Some((_, job)) = self.line.first().filter(|(at, _)| *at <= now).copied() {
            self.set(job, None);
            due.push(job);
        }
        due
    }
}

impl Backlog {
    /// Follows the journal, or starts anew when it does not reach back far enough.
    pub fn sync(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
        sharing: ShareRule,
    ) -> BacklogChanges {
        self.sharing = sharing;
        let journal = view.journal();
        let changes = self.seen.and_then(|seen| journal.since(seen));
        self.seen = Some(journal.end());
        let followed = changes.and_then(|changes| self.follow(view, order, changes));
        let news = followed.unwrap_or_else(|| self.start_anew(view, order));
        self.keys_forgotten = false;
        news
    }

    /// Forgets the keys of jobs that wait: none is what it was.
    pub fn forget_keys(&mut self) {
        self.keys_forgotten = true;
    }

    /// Forgets all ranks and times: none is what it was.
    pub fn forget(&mut self) {
        self.seen = None;
    }

    /// Asks for a question at the time at which a rank changes next. Those who start now count
    /// too: nothing may happen before their time has come.
    pub fn wake_in_time(&mut self, view: &View<'_>, order: &dyn Order, plan: &mut Plan<'_>) {
        if !order.is_timed() {
            return;
        }
        for decision in plan.decisions() {
            if let Decision::Start { lease, job, .. } = decision {
                let job = view.job(*job).expect("a waiting job is not over");
                let starting = Job { phase: Phase::Starting(*lease), ..job.clone() };
                self.times.set(job.id, order.changes_at(view, &starting));
            }
        }
        if !order.wakes() {
            return;
        }
        while let Some((at, job)) = self.times.line.first().copied() {
            if view.job(job).is_some() {
                return plan.wake_at(at);
            }
            self.times.set(job, None);
        }
    }

    fn start_anew(&mut self, view: &View<'_>, order: &dyn Order) -> BacklogChanges {
        self.keys.clear();
        self.order.clear();
        self.times = Times::default();
        let mut news = BacklogChanges { all: true, ..BacklogChanges::default() };
        for id in view.pending() {
            let rank = view.job(*id).map(|job| (order.key(view, job), *id));
            news.came.extend(rank.and_then(|rank| self.add(view, order, rank)));
        }
        for lease in view.leases() {
            self.note_time(view, order, lease.job);
        }
        news
    }

    /// Takes in what changed. None when a job was found to run that never waited here: such are
    /// few, and who follows starts by the jobs that leave need not know of them.
    fn follow(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
        changes: &[Change],
    ) -> Option<BacklogChanges> {
        let mut news = BacklogChanges::default();
        // Before anything else: what is noted below are times to come.
        let due = self.times.due(view.now());
        for change in changes {
            match change {
                Change::Queued(id) => self.requeue(view, order, *id, &mut news),
                Change::Unqueued(id) => {
                    news.gone.insert(*id);
                    match self.remove(*id) {
                        Some(left) => news.left.push(left),
                        None if view.job(*id).is_some_and(|job| job.lease().is_some()) => {
                            return None;
                        }
                        None => {}
                    }
                    self.note_time(view, order, *id);
                }
                Change::Ended(id) => {
                    news.ended.push(*id);
                    self.note_time(view, order, *id);
                }
                Change::Freed(node) => {
                    news.freed.push(*node);
                    news.opened.push(*node);
                }
                Change::Vacated(node, lease) => {
                    news.freed.push(*node);
                    news.vacated.push((*node, *lease));
                }
                Change::Slipped(lease) => news.slipped.push(*lease),
                Change::Rescheduled(lease) => {
                    news.rescheduled.push(*lease);
                    // It may hold other GPUs than before.
                    let job = view.lease(*lease).map(|lease| lease.job);
                    job.into_iter().for_each(|job| self.note_time(view, order, job));
                }
                Change::Closed(node) => news.closed.push(*node),
            }
        }
        for id in due {
            if self.keys.contains_key(&id) {
                self.requeue(view, order, id, &mut news);
            } else {
                news.slipped.extend(view.job(id).and_then(Job::lease));
                self.note_time(view, order, id);
            }
        }
        if self.keys_forgotten {
            view.pending().iter().for_each(|id| self.requeue(view, order, *id, &mut news));
        }
        news.freed.sort_unstable();
        news.freed.dedup();
        // A job may have left and come back more than once, at other ranks.
        news.came.retain(|rank| self.order.contains(rank));
        news.came.sort_unstable_by_key(|rank| rank.1);
        news.came.dedup();
        Some(news)
    }

    /// Takes a job in at the rank that it has now, unless it is known there: a submission and its
    /// estimate come as two changes, and the first of them shows both.
    fn requeue(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
        id: JobId,
        news: &mut BacklogChanges,
    ) {
        let known = self.keys.get(&id).map(|(key, _)| *key);
        let job = view.job(id).filter(|job| known.is_some() || job.phase == Phase::Pending);
        let key = job.map(|job| order.key(view, job));
        if let Some(known) = known.filter(|known| key == Some(*known)) {
            news.stayed.push((known, id));
            return self.note_time(view, order, id);
        }
        let left = self.remove(id);
        if left.is_some() && !news.gone.contains(&id) {
            news.reranked.insert(id);
        }
        news.left.extend(left);
        news.came.extend(key.and_then(|key| self.add(view, order, (key, id))));
    }

    /// Takes a job in at a rank, if it waits.
    fn add(&mut self, view: &View<'_>, order: &dyn Order, rank: Rank) -> Option<Rank> {
        let id = rank.1;
        let job = view.job(id).filter(|job| job.phase == Phase::Pending)?;
        self.keys.insert(id, (rank.0, self.sharing.booked(job)));
        self.order.insert(rank);
        self.note_time(view, order, id);
        Some(rank)
    }

    /// Notes when the rank of a job that waits or runs changes next.
    fn note_time(&mut self, view: &View<'_>, order: &dyn Order, id: JobId) {
        if !order.is_timed() {
            return;
        }
        let ranked = |job: &&Job| job.phase == Phase::Pending || job.lease().is_some();
        let at = view.job(id).filter(ranked).and_then(|job| order.changes_at(view, job));
        self.times.set(id, at);
    }

    fn remove(&mut self, id: JobId) -> Option<(Rank, Arc<JobSpec>)> {
        let (key, spec) = self.keys.remove(&id)?;
        self.order.remove(&(key, id));
        Some(((key, id), spec))
    }

    /// What a waiting job books, by the rule of sharing.
    pub fn spec<'a>(&'a self, view: &'a View<'_>, id: JobId) -> &'a Arc<JobSpec> {
        match self.sharing {
            ShareRule::Requests => asked(view, id),
            ShareRule::Off | ShareRule::Packed => {
                &self.keys.get(&id).expect("a waiting job is in the backlog").1
            }
        }
    }

    /// The jobs, best first.
    pub fn iter(&self) -> impl Iterator<Item = Rank> {
        self.order.iter().copied()
    }

    /// The jobs behind a rank, best first.
    pub fn behind(&self, rank: Rank) -> impl Iterator<Item = Rank> {
        self.order.range((Bound::Excluded(rank), Bound::Unbounded)).copied()
    }

    /// Whether a job waits at this rank.
    pub fn contains(&self, rank: &Rank) -> bool {
        self.order.contains(rank)
    }
}
