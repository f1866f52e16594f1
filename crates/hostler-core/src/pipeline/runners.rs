//! Running jobs by rank, last first: who gives way to whom.
//!
//! A walk over all leases at every question would cost more than the question. Where running jobs
//! keep their rank or rise ([`Order::keeps_rank`]), the rank that one had when it was last looked
//! at is never too good, so a line by such ranks is followed from its end: whoever is met there is
//! looked at again, and goes to where it belongs by now.

use std::collections::{BTreeMap, BTreeSet};

use super::backlog::{BacklogChanges, Rank};
use crate::id::{LeaseId, NodeId};
use crate::limits::RUNNERS_OVER_MIN;
use crate::stage::Order;
use crate::view::View;

/// A running job and its rank.
pub(super) type Runner = (Rank, LeaseId);

/// Running jobs in line. All of it follows from the state.
#[derive(Default)]
pub(super) struct Runners {
    /// None until somebody asks.
    line: Option<Line>,
}

/// Every lease once, at a rank that it does not rank after by now, and some that ended.
#[derive(Default)]
struct Line {
    runners: BTreeSet<Runner>,
    ranks: BTreeMap<LeaseId, Rank>,
}

impl Line {
    fn of_all(view: &View<'_>, order: &dyn Order) -> Line {
        let mut line = Line::default();
        let all = view.leases().filter_map(|lease| ranked(view, order, lease.id));
        all.for_each(|runner| line.put(runner));
        line
    }

    /// Puts a lease where it belongs by now.
    fn put(&mut self, (rank, id): Runner) {
        if let Some(before) = self.ranks.insert(id, rank) {
            self.runners.remove(&(before, id));
        }
        self.runners.insert((rank, id));
    }

    fn remove(&mut self, runner: Runner) {
        self.ranks.remove(&runner.1);
        self.runners.remove(&runner);
    }
}

impl Runners {
    /// Forgets everybody: who runs is looked up when somebody asks.
    pub(super) fn forget(&mut self) {
        self.line = None;
    }

    /// Takes in who began to run and who ranks after what it did; the answer are their nodes.
    pub(super) fn follow(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
        news: &BacklogChanges,
    ) -> Vec<NodeId> {
        let most = 2 * view.lease_count() + RUNNERS_OVER_MIN;
        self.line = self.line.take().filter(|line| line.runners.len() <= most);
        let started = news.left.iter().filter_map(|(rank, _)| view.job(rank.1)?.lease());
        let leases = started.chain(news.slipped.iter().copied());
        let mut nodes = Vec::new();
        for lease in leases.filter_map(|id| view.lease(id)) {
            if let Some((line, runner)) = self.line.as_mut().zip(ranked(view, order, lease.id)) {
                line.put(runner);
            }
            nodes.extend(lease.placement.parts.iter().map(|part| part.node));
        }
        nodes
    }

    /// The last in line, or the last before one that was met.
    pub(super) fn last_before(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
        met: Option<Runner>,
    ) -> Option<Runner> {
        let line = self.line.get_or_insert_with(|| Line::of_all(view, order));
        loop {
            let runner = *match met {
                None => line.runners.last()?,
                Some(met) => line.runners.range(..met).next_back()?,
            };
            match ranked(view, order, runner.1) {
                Some(now) if now == runner => return Some(runner),
                Some(now) => line.put(now),
                None => line.remove(runner),
            }
        }
    }

    /// All in line, last first, by ranks that nobody ranks after by now; some have ended.
    pub(super) fn roughly_last_first(
        &mut self,
        view: &View<'_>,
        order: &dyn Order,
    ) -> impl Iterator<Item = Runner> {
        let line = self.line.get_or_insert_with(|| Line::of_all(view, order));
        line.runners.iter().rev().copied()
    }
}

/// A lease that has not ended, with the rank of its job.
pub(super) fn ranked(view: &View<'_>, order: &dyn Order, id: LeaseId) -> Option<Runner> {
    let job = view.job(view.lease(id)?.job)?;
    Some(((order.key(view, job), job.id), id))
}
