//! How much of the cluster the best job of a queue could get: what is free, what is being freed,
//! and what those hold that rank after it.
//!
//! As long as that is too little, there is no use in a search for victims. It is counted once for
//! each queue, node by node, and again on the nodes where something ended or began, if that matters
//! to who waits ([`Stir`]). In between it may become less without notice, as running jobs rise past
//! the one that waits; never more. So a job that is turned away by it would have found nobody.
//!
//! Jobs of a queue ask for the same but for some memory. What is too little for one is too little
//! for those that rank after it and ask for no less: a queue has a few such limits.

use std::collections::{BTreeMap, BTreeSet};

use super::backlog::Rank;
use super::runners::Runners;
use super::stirs::Stir;
use super::touched::{Place, Touched, give_back, on_node};
use crate::capacity::{Capacity, Overlay, Walk};
use crate::id::{LeaseId, NodeId};
use crate::job::{Demand, JobSpec, Locality};
use crate::limits::{FURTHER_RUNNERS_MAX, LIMITS_PER_QUEUE_MAX, REACH_COUNTS_MAX, REACH_NODES_MAX};
use crate::placement::Part;
use crate::stage::Order;
use crate::units::Mib;
use crate::view::View;

/// A queue of jobs with one role: the number of its shape, and tasks in a job.
pub(super) type QueueId = (usize, u32);

/// What each queue could get. All of it is a bound that follows from the state.
#[derive(Default)]
pub(super) struct Reach {
    queues: BTreeMap<QueueId, Vec<QueueReach>>,
    /// Memory for nodes without those who give way; what is in it means nothing.
    without: Overlay,
}

/// What jobs could get at most that rank no better than a key and ask for no less.
#[derive(Clone)]
struct QueueReach {
    key: i64,
    wanted: Wanted,
    by_node: Vec<u32>,
    total: u64,
    /// Whether it was counted at the question before, beside jobs that were about to start: who
    /// ranks before one of them was not given its room.
    is_new: bool,
}

/// A job may find room.
struct Enough;

/// What a job asks for.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) demand: Demand,
    pub(super) count: u32,
}

impl Wanted {
    /// Whether all tasks go to one node.
    fn is_of_one_node(&self) -> bool {
        match self.demand.locality {
            Locality::Node | Locality::Island => true,
            Locality::Any | Locality::Apart | Locality::Rack => false,
        }
    }

    /// What a node with so many slots is worth; the worth of all nodes together must be `enough`.
    fn worth(&self, slots: u32) -> u32 {
        if self.is_of_one_node() { u32::from(slots >= self.count) } else { slots }
    }

    /// Whether a node would hold a task of it, if nobody else was there.
    fn may_go_to(&self, now: &Now<'_, '_>, node: NodeId) -> bool {
        now.free.would_hold(node, &self.demand)
    }

    fn enough(&self) -> u64 {
        if self.is_of_one_node() { 1 } else { u64::from(self.count) }
    }
}

/// A job that looks for a place.
pub(super) struct Looking<'a> {
    pub(super) rank: Rank,
    /// Where it waits; none for jobs with several roles, and where nothing is remembered.
    pub(super) queue: Option<QueueId>,
    pub(super) spec: &'a JobSpec,
}

/// The state and what a pass did to it so far.
pub(super) struct Now<'a, 'v> {
    pub(super) view: &'a View<'v>,
    pub(super) order: &'a dyn Order,
    pub(super) free: &'a Capacity,
    /// Leases that housekeeping or the pass told to stop.
    pub(super) stopped: &'a BTreeSet<LeaseId>,
}

impl Now<'_, '_> {
    fn is_stopping(&self, id: LeaseId) -> bool {
        let told = self.view.lease(id).is_some_and(|lease| lease.stop.is_some());
        told || self.stopped.contains(&id)
    }
}

impl Reach {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.queues.clear();
    }

    /// Counts nodes again on which something ended or began, for those to whom it matters. `lives`
    /// tells whether a queue still asks for this.
    pub(super) fn follow(
        &mut self,
        now: &Now<'_, '_>,
        (stirs, runners): (&[Stir], &Runners),
        lives: impl Fn(QueueId, &Wanted) -> bool,
    ) {
        if stirs.len() > REACH_NODES_MAX {
            return self.clear();
        }
        self.queues.retain(|id, limits| limits.first().is_some_and(|one| lives(*id, &one.wanted)));
        if stirs.is_empty() {
            return;
        }
        let mut queues: Vec<&mut QueueReach> = self.queues.values_mut().flatten().collect();
        queues.sort_unstable_by_key(|reach| reach.key);
        for stir in stirs {
            let node = &stir.node;
            // What a node can never hold is worth nothing to it, whoever leaves; what is worth
            // nothing cannot become less.
            let concerned = |reach: &&mut &mut QueueReach| {
                let loses = stir.loses && (reach.is_new || reach.worth(*node) > 0);
                (stir.helps(reach.key) || loses) && reach.wanted.may_go_to(now, *node)
            };
            let mut concerned = queues.iter_mut().rev().filter(concerned).peekable();
            if concerned.peek().is_none() {
                continue;
            }
            let mut held = on_node(now, *node, runners);
            held.sort_unstable();
            self.without.clear();
            for reach in concerned {
                while let Some(leaves) = held.pop_if(|held| held.gives_way_to(reach.key)) {
                    give_back(&mut self.without, now, leaves.lease, *node);
                }
                reach.count(*node, &self.without, now);
            }
        }
        queues.iter_mut().for_each(|reach| reach.is_new = false);
    }

    /// The least memory that is too much for a job and those behind it in its queue, beside what
    /// this pass did on some nodes: there `later` is what will be free. None when the job may find
    /// room.
    pub(super) fn too_much(
        &mut self,
        looking: &Looking<'_>,
        now: &Now<'_, '_>,
        later: Option<&Capacity>,
        (touched, runners): (&mut Touched, &Runners),
    ) -> Option<Mib> {
        let limits = self.queues.get(&looking.queue?)?;
        let mem = looking.spec.gangs[0].demand.mem;
        let mine = limits.iter().filter(|one| one.key <= looking.rank.0);
        let mut mine = mine.filter(|one| one.wanted.demand.mem <= mem);
        let without = &mut self.without;
        let limit =
            mine.find(|one| one.is_lost_beside((without, now), later, (touched, runners)))?;
        Some(limit.wanted.demand.mem)
    }

    /// Counts what a job could get, and remembers for its queue if that is too little. `least` is
    /// what all of the queue ask for.
    pub(super) fn is_lost(
        &mut self,
        looking: &Looking<'_>,
        least: Option<&Demand>,
        now: &Now<'_, '_>,
        runners: &mut Runners,
    ) -> bool {
        let [gang] = &*looking.spec.gangs else { return false };
        let (count, key) = (gang.count, looking.rank.0);
        let wanted = |demand: &Demand| Wanted { demand: demand.clone(), count };
        let least = least.filter(|least| looking.queue.is_some() && least.mem < gang.demand.mem);
        // What is too little for those that ask for the least is too little for this one.
        let all = least.map(|least| self.count(wanted(least), key, now, runners));
        let counted = match all {
            Some(Ok(all)) => Ok(all),
            Some(Err(Enough)) | None => self.count(wanted(&gang.demand), key, now, runners),
        };
        let Ok((own, met)) = counted else { return false };
        let Some(queue) = looking.queue else { return true };
        let best = met.map(|met| self.count_further(own.clone(), met, now, runners));
        self.remember(queue, own, best);
        true
    }

    fn remember(&mut self, queue: QueueId, own: QueueReach, best: Option<QueueReach>) {
        let limits: usize = self.queues.values().map(Vec::len).sum();
        if limits * own.by_node.len() > REACH_COUNTS_MAX {
            self.clear();
        }
        let limits = self.queues.entry(queue).or_default();
        let found: Vec<QueueReach> = [Some(own), best].into_iter().flatten().collect();
        limits.retain(|one| !found.iter().any(|limit| limit.covers(one)));
        limits.truncate(LIMITS_PER_QUEUE_MAX - found.len());
        limits.extend(found);
    }

    /// Counts what somebody with a key could get, if that is too little; also tells how many rank
    /// after it. Where keys grow without a word, that is not known, but the best key of which the
    /// same is true.
    fn count(
        &mut self,
        wanted: Wanted,
        key: i64,
        now: &Now<'_, '_>,
        runners: &mut Runners,
    ) -> Result<(QueueReach, Option<usize>), Enough> {
        self.without.clear();
        // Whatever is not in the index has no room for a task as it is.
        let mut nodes = Vec::new();
        now.free.visit(Walk::Tightest, &wanted.demand, |node| {
            nodes.push(node);
            false
        });
        let stopping = now.view.by_alarm().filter(|lease| lease.stop.is_some());
        let stopping = stopping.chain(now.stopped.iter().filter_map(|id| now.view.lease(*id)));
        let mut gone = BTreeSet::new();
        for lease in stopping.filter(|lease| gone.insert(lease.id)) {
            for part in &lease.placement.parts {
                self.without.release(now.free, part);
                nodes.push(part.node);
            }
        }
        let by_node = vec![0; now.view.nodes().len()];
        let mut reach = QueueReach { key, wanted, by_node, total: 0, is_new: true };
        nodes.into_iter().for_each(|node| reach.count(node, &self.without, now));
        let mut met = 0;
        let drifting = runners.drifting_after(key, (now.view, now.order));
        let mut next = |met: usize| match &drifting {
            Some((all, _)) => all.get(met).copied(),
            None => runners.last_but(met, key, (now.view, now.order)).map(|(_, id)| id),
        };
        while let Some(id) = next(met) {
            if !reach.is_lost() {
                return Err(Enough);
            }
            met += 1;
            let lease = now.view.lease(id).filter(|_| !now.is_stopping(id));
            for part in lease.into_iter().flat_map(|lease| &lease.placement.parts) {
                reach.give_back(part, &mut self.without, now);
            }
        }
        let met = drifting.is_none().then_some(met);
        reach.key = drifting.map_or(key, |(_, best)| best);
        if reach.is_lost() { Ok((reach, met)) } else { Err(Enough) }
    }

    /// Goes on from what is too little for somebody: the best key for which it is still too little,
    /// and what that one could get. Looks at a bounded number of running jobs.
    fn count_further(
        &mut self,
        mut reach: QueueReach,
        met: usize,
        now: &Now<'_, '_>,
        runners: &mut Runners,
    ) -> QueueReach {
        for at in met..met + FURTHER_RUNNERS_MAX {
            let next = runners.last_but(at, i64::MIN, (now.view, now.order));
            let Some((rank, id)) = next else { break };
            // Whoever is not looked at yet ranks no later than this.
            reach.key = rank.0;
            let Some(lease) = now.view.lease(id).filter(|_| !now.is_stopping(id)) else { continue };
            let before = reach.total;
            let parts = || lease.placement.parts.iter();
            let worths: Vec<u32> = parts().map(|part| reach.worth(part.node)).collect();
            parts().for_each(|part| reach.give_back(part, &mut self.without, now));
            if !reach.is_lost() {
                let nodes = parts().map(|part| part.node.index());
                nodes.zip(worths).for_each(|(node, worth)| reach.by_node[node] = worth);
                reach.total = before;
                break;
            }
        }
        reach
    }
}

impl QueueReach {
    fn is_lost(&self) -> bool {
        self.total < self.wanted.enough()
    }

    /// Whether whoever is lost by another limit is lost by this one too.
    fn covers(&self, other: &QueueReach) -> bool {
        self.key <= other.key && self.wanted.demand.mem <= other.wanted.demand.mem
    }

    /// Whether it is too little beside what a pass did on some nodes.
    fn is_lost_beside(
        &self,
        (without, now): (&mut Overlay, &Now<'_, '_>),
        later: Option<&Capacity>,
        (touched, runners): (&mut Touched, &Runners),
    ) -> bool {
        // What a pass does makes a node worth less, but for those that it stops: to who ranks
        // before these they were as good as gone.
        let gains = |from: Option<i64>| from.is_some_and(|from| from <= self.key);
        if self.is_lost() && !gains(touched.stopped_from) {
            return true;
        }
        let enough = self.wanted.enough();
        let at_stake = |node: &NodeId| u64::from(self.worth(*node));
        // It is enough, even if nothing is left where the pass did something.
        if self.total - touched.nodes.keys().map(at_stake).sum::<u64>() >= enough {
            return false;
        }
        let beside = Now { free: later.unwrap_or(now.free), ..*now };
        let mut total = self.total;
        for more in [true, false] {
            for (node, place) in &mut touched.nodes {
                let concerned = gains(place.stops_from) == more && (more || self.worth(*node) > 0);
                if !concerned || !self.wanted.may_go_to(now, *node) {
                    continue;
                }
                place.hold(*node, (now, runners));
                let worth = self.worth_beside(place, *node, without, (&beside, later.is_some()));
                total = total + u64::from(worth) - u64::from(self.worth(*node));
                if !more && total < enough {
                    return true;
                }
            }
            if total < enough {
                return true;
            }
        }
        false
    }

    /// What a node is worth beside what a pass did there; where that is to be counted `later`, what
    /// is being freed is free.
    fn worth_beside(
        &self,
        place: &Place,
        node: NodeId,
        without: &mut Overlay,
        (beside, later): (&Now<'_, '_>, bool),
    ) -> u32 {
        without.clear();
        for held in &place.held {
            if held.gives_way_to(self.key) && !(later && held.stopping) {
                give_back(without, beside, held.lease, node);
            }
        }
        let Wanted { demand, count } = &self.wanted;
        self.wanted.worth(without.slots(beside.free, node, demand, *count))
    }

    fn worth(&self, node: NodeId) -> u32 {
        if self.total == 0 {
            return 0;
        }
        self.by_node.get(node.index()).copied().unwrap_or(0)
    }

    /// Counts a node again without a part that is given back, if that is of use there.
    fn give_back(&mut self, part: &Part, without: &mut Overlay, now: &Now<'_, '_>) {
        if self.wanted.may_go_to(now, part.node) {
            without.release(now.free, part);
            self.count(part.node, without, now);
        }
    }

    /// Counts a node again.
    fn count(&mut self, node: NodeId, without: &Overlay, now: &Now<'_, '_>) {
        let Wanted { demand, count } = &self.wanted;
        let worth = self.wanted.worth(without.slots(now.free, node, demand, *count));
        if worth == 0 && self.total == 0 {
            return;
        }
        if self.by_node.len() <= node.index() {
            // A node has joined since.
            self.by_node.resize(now.view.nodes().len().max(node.index() + 1), 0);
        }
        let before = std::mem::replace(&mut self.by_node[node.index()], worth);
        self.total = self.total + u64::from(worth) - u64::from(before);
    }
}
