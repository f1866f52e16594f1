//! Running jobs by rank, last first: who gives way to whom.
//!
//! A walk over all leases at every question would cost more than the question. Where running jobs
//! keep their rank or rise ([`Order::keeps_rank`]), the rank that one had when it was last looked
//! at is never too good, so a line by such ranks is followed from its end: whoever is met there is
//! looked at again, once for all who ask at a question. Whoever proves to belong further ahead than
//! anybody asked for goes to where it belongs by then; those who were asked for are likely to be
//! looked at the next time in any case, and keep their places.

use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Bound;

use super::backlog::{BacklogChanges, Rank};
use super::notes::{Note, Notes, Seen};
use crate::id::LeaseId;
use crate::job::Job;
use crate::limits::RUNNERS_OVER_MIN;
use crate::placement::Lease;
use crate::stage::Order;
use crate::view::View;

/// A running job and its rank.
pub(super) type Runner = (Rank, LeaseId);

/// Running jobs in line. All of it follows from the state.
#[derive(Default)]
pub(super) struct Runners {
    /// None until somebody asks.
    line: Option<Line>,
    sorted: Sorted,
    /// Number of this question.
    question: u64,
}

/// The end of the line by the ranks of this question.
#[derive(Default)]
struct Sorted {
    /// As far as anybody asked, last first.
    met: Vec<Runner>,
    /// Looked at, but somebody else may come before.
    looked_at: BinaryHeap<Runner>,
    /// Who comes next in the line; its end is looked at first.
    next: Vec<Runner>,
    /// The last one that was taken from the line.
    reached: Option<Runner>,
}

/// A lease that ranks after what it did when it was last looked at.
#[derive(Clone, Copy)]
pub(super) struct Slip {
    pub(super) lease: LeaseId,
    /// Its key before, where that is known and all went by it.
    pub(super) before: Option<i64>,
    /// Its key now.
    pub(super) now: i64,
}

/// Runners that are taken from the line at a time.
const TAKEN_AT_ONCE: usize = 32;

impl Sorted {
    /// The next in line, at a rank that it does not rank after by now; who follows does neither.
    fn peek(&mut self, line: &Line) -> Option<Runner> {
        if self.next.is_empty() {
            let end = self.reached.map_or(Bound::Unbounded, Bound::Excluded);
            let rest = line.runners.range((Bound::Unbounded, end)).rev();
            self.next.extend(rest.take(TAKEN_AT_ONCE).copied());
            self.next.reverse();
            self.reached = self.next.first().copied().or(self.reached);
        }
        self.next.last().copied()
    }

    /// Takes the next one by the ranks of this question, if it ranks after a key.
    fn take(
        &mut self,
        line: &mut Line,
        key: i64,
        (view, order): (&View<'_>, &dyn Order),
    ) -> Option<Runner> {
        while let Some(bound) = self.peek(line).filter(|(rank, _)| rank.0 > key) {
            if self.looked_at.peek().is_some_and(|runner| *runner > bound) {
                break;
            }
            self.next.pop();
            match ranked(view, order, bound.1) {
                Some(runner) => self.looked_at.push(runner),
                None => line.remove(bound),
            }
        }
        self.looked_at.peek().filter(|(rank, _)| rank.0 > key)?;
        self.looked_at.pop()
    }
}

/// Every lease once, at a rank that it does not rank after by now, and some that ended.
#[derive(Default)]
struct Line {
    runners: BTreeSet<Runner>,
    notes: Notes,
    /// Whether keys grow without a word.
    drifts: bool,
}

impl Line {
    fn of_all(view: &View<'_>, order: &dyn Order) -> Line {
        let mut line = Line::default();
        view.leases().for_each(|lease| _ = line.put(lease.id, view, order));
        line
    }

    /// Puts a lease where it belongs by now, unless it has ended; the answer are its keys before
    /// and now.
    fn put(
        &mut self,
        id: LeaseId,
        view: &View<'_>,
        order: &dyn Order,
    ) -> Option<(Option<i64>, i64)> {
        let lease = view.lease(id)?;
        let job = view.job(lease.job)?;
        let most = order.key_at_most(view, job);
        self.drifts |= most.is_some();
        let rank = (most.unwrap_or_else(|| order.key(view, job)), job.id);
        let before = self.notes.insert(id, Note::new(rank, lease.stop.is_some()));
        let before = before.map(|note| note.rank);
        if before != Some(rank) {
            before.iter().for_each(|before| _ = self.runners.remove(&(*before, id)));
            self.runners.insert((rank, id));
        }
        Some((before.map(|(key, _)| key), rank.0))
    }

    fn remove(&mut self, runner: Runner) {
        self.notes.remove(runner.1);
        self.runners.remove(&runner);
    }
}

impl Runners {
    /// Forgets everybody: who runs is looked up when somebody asks.
    pub(super) fn forget(&mut self) {
        *self = Runners::default();
    }

    /// Takes in who began to run, and who ranks after what it did, which is the answer. Ranks of
    /// the question before are not those of this one.
    pub(super) fn follow(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
        news: &BacklogChanges,
    ) -> Vec<Slip> {
        let Runners { line, sorted, question } = self;
        *question += 1;
        let again: Vec<LeaseId> = sorted.looked_at.drain().map(|(_, id)| id).collect();
        sorted.met.clear();
        sorted.next.clear();
        sorted.reached = None;
        let most = 2 * view.lease_count() + RUNNERS_OVER_MIN;
        *line = line.take().filter(|line| line.runners.len() <= most);
        let mut put = |id| line.as_mut().and_then(|line| line.put(id, view, order));
        started(view, news).for_each(|lease| _ = put(lease.id));
        let slips = news.slipped.iter().map(|id| {
            let (before, now) = put(*id).unwrap_or((None, i64::MAX));
            Slip { lease: *id, before: before.filter(|_| order.is_timed()), now }
        });
        let slips = slips.collect();
        again.into_iter().for_each(|id| _ = put(id));
        slips
    }

    /// Takes in that a lease was told to stop.
    pub(super) fn tell(&mut self, id: LeaseId) {
        self.line.iter_mut().for_each(|line| line.notes.tell(id));
    }

    /// The key that a lease had when it was last looked at, which may have ended since; only where
    /// all go by it.
    pub(super) fn noted(&self, order: &dyn Order, id: LeaseId) -> Option<i64> {
        let line = self.line.as_ref().filter(|_| order.is_timed())?;
        line.notes.get(id).map(|note| note.rank.0)
    }

    /// The last in line but so many, if it ranks after a key.
    pub(super) fn last_but(
        &mut self,
        count: usize,
        key: i64,
        (view, order): (&View<'_>, &dyn Order),
    ) -> Option<Runner> {
        let Runners { line, sorted, .. } = self;
        let line = line.get_or_insert_with(|| Line::of_all(view, order));
        while sorted.met.len() <= count {
            let runner = sorted.take(line, key, (view, order))?;
            sorted.met.push(runner);
        }
        Some(sorted.met[count]).filter(|(rank, _)| rank.0 > key)
    }

    /// Where keys grow without a word: those that may rank after a key before one is said, and the
    /// best key of which the same is true.
    pub(super) fn drifting_after(
        &mut self,
        key: i64,
        (view, order): (&View<'_>, &dyn Order),
    ) -> Option<(Vec<LeaseId>, i64)> {
        let line = self.line.get_or_insert_with(|| Line::of_all(view, order));
        if !line.drifts {
            return None;
        }
        let mut last_first = line.runners.iter().rev().peekable();
        let after = std::iter::from_fn(|| last_first.next_if(|(rank, _)| rank.0 > key));
        let live = after.filter(|(_, id)| job_of(view, *id).is_some());
        let live = live.map(|(_, id)| *id).collect();
        Some((live, last_first.next().map_or(i64::MIN, |(rank, _)| rank.0)))
    }

    /// A running job as those see it who wait. Where keys change at times that are told of, it has
    /// the one that was noted then: to work it out may cost a walk over all that a job holds.
    pub(super) fn seen(&self, view: &View<'_>, order: &dyn Order, id: LeaseId) -> Option<Seen> {
        let look = || {
            let lease = view.lease(id)?;
            let job = view.job(lease.job)?;
            let key = order.key_at_most(view, job).unwrap_or_else(|| order.key(view, job));
            Some(Seen { key, told: lease.stop.is_some() })
        };
        match self.line.as_ref().and_then(|line| line.notes.get(id)) {
            Some(note) if order.is_timed() => Some(Seen { key: note.rank.0, told: note.told }),
            Some(note) => note.at(self.question, look),
            None => look(),
        }
    }
}

/// Leases of jobs that waited at the question before.
pub(super) fn started<'v>(
    view: &View<'v>,
    news: &BacklogChanges,
) -> impl Iterator<Item = &'v Lease> {
    news.left.iter().filter_map(|(rank, _)| view.lease(view.job(rank.1)?.lease()?))
}

/// The job of a lease that has not ended.
fn job_of<'v>(view: &View<'v>, id: LeaseId) -> Option<&'v Job> {
    view.job(view.lease(id)?.job)
}

/// A lease that has not ended, with the rank of its job.
fn ranked(view: &View<'_>, order: &dyn Order, id: LeaseId) -> Option<Runner> {
    let job = job_of(view, id)?;
    Some(((order.key(view, job), job.id), id))
}
