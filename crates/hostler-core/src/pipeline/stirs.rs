//! What happened on nodes since the last pass, and to whom it matters: for what a queue could get
//! ([`Reach`](super::reach::Reach)), all counts of a node need not be made again whenever something
//! ends, begins or ranks after what it did there.
//!
//! Who waits counted those as gone that rank after it. So it gains nothing when they go, and by
//! one that ranks later from now on only if that ranked no later before. Who was told to stop is
//! gone for everybody from then on. By a start nobody gains.

use std::collections::BTreeSet;

use super::backlog::BacklogChanges;
use super::reach::Now;
use super::runners::{Runners, Slip, started};
use crate::id::{LeaseId, NodeId};
use crate::placement::Lease;

/// A node on which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stir {
    pub(super) node: NodeId,
    /// Who waits with a key from here on may gain..
    from: i64,
    /// ..up to here.
    to: i64,
    /// Whether something began there: all may lose.
    pub(super) loses: bool,
}

impl Stir {
    fn gain(node: NodeId, from: i64, to: i64) -> Stir {
        Stir { node, from, to, loses: false }
    }

    fn loss(node: NodeId) -> Stir {
        Stir { node, from: i64::MAX, to: i64::MIN, loses: true }
    }

    /// Whether who waits with a key may gain.
    pub(super) fn helps(&self, key: i64) -> bool {
        (self.from..=self.to).contains(&key)
    }

    /// Whether anybody may gain.
    fn helps_any(&self) -> bool {
        self.from <= self.to
    }

    /// Two things that happened on one node.
    fn add(&mut self, other: &Stir) {
        if other.helps_any() {
            self.from = self.from.min(other.from);
            self.to = self.to.max(other.to);
        }
        self.loses |= other.loses;
    }
}

/// Who was told to stop: nobody gains when that one goes.
#[derive(Default)]
pub(super) struct Stirs {
    gone: BTreeSet<LeaseId>,
}

impl Stirs {
    /// What happened since the last pass, each node once.
    pub(super) fn follow(
        &mut self,
        now: &Now<'_, '_>,
        (news, slips): (&BacklogChanges, &[Slip]),
        runners: &mut Runners,
    ) -> Vec<Stir> {
        let mut stirs = Vec::new();
        stirs.extend(news.opened.iter().map(|node| Stir::gain(*node, i64::MIN, i64::MAX)));
        for (node, lease) in &news.vacated {
            if !self.gone.contains(lease) {
                let from = runners.noted(now.order, *lease).unwrap_or(i64::MIN);
                stirs.push(Stir::gain(*node, from, i64::MAX));
            } else if now.view.keeps_suspended() {
                // It may have left some memory less than it held.
                stirs.push(Stir::loss(*node));
            }
        }
        news.vacated.iter().for_each(|(_, lease)| _ = self.gone.remove(lease));
        let mut all = |lease: &Lease, stir: &dyn Fn(NodeId) -> Stir| {
            stirs.extend(lease.placement.parts.iter().map(|part| stir(part.node)));
        };
        for slip in slips {
            let Some(lease) = now.view.lease(slip.lease) else { continue };
            if lease.stop.is_none() {
                // It may have been told to go on.
                self.gone.remove(&slip.lease);
            }
            let from = slip.before.unwrap_or(i64::MIN);
            if from < slip.now && !self.gone.contains(&slip.lease) {
                all(lease, &|node| Stir::gain(node, from, slip.now - 1));
            }
        }
        started(now.view, news).for_each(|lease| all(lease, &Stir::loss));
        // Who is told to stop gives way to everybody from then on.
        let told = news.rescheduled.iter().filter_map(|id| now.view.lease(*id));
        for lease in told.filter(|lease| lease.stop.is_some()) {
            runners.tell(lease.id);
            if self.gone.insert(lease.id) {
                let seen = runners.seen(now.view, now.order, lease.id);
                let from = seen.map_or(i64::MIN, |seen| seen.key);
                all(lease, &|node| Stir::gain(node, from, i64::MAX));
            }
        }
        for lease in now.stopped.iter().filter_map(|id| now.view.lease(*id)) {
            all(lease, &|node| Stir::gain(node, i64::MIN, i64::MAX));
        }
        stirs.sort_unstable_by_key(|stir| stir.node);
        stirs.dedup_by(|next, first| {
            let same = next.node == first.node;
            if same {
                first.add(next);
            }
            same
        });
        stirs
    }
}
