//! Windows inside the state: which nodes are kept for what, and who has to leave.
//!
//! What a node is kept for follows from the windows and the time. It changes when a window begins
//! or ends, and a few times before: whenever stays of another length would not be over in time.

use std::collections::BTreeMap;

use super::{Change, ClusterState};
use crate::decision::StopWhy;
use crate::id::{JobId, NodeId, WindowId};
use crate::job::Job;
use crate::reason::Reason;
use crate::units::{Span, Time};
use crate::window::{Kept, StayBound, Window};

/// The windows that are not over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WindowBook {
    pub(super) windows: BTreeMap<WindowId, Window>,
    /// When a node is kept for something else, or for another room.
    pub(super) changes_at: Option<Time>,
}

impl ClusterState {
    /// The windows that are not over, by number.
    pub fn windows(&self) -> impl Iterator<Item = (WindowId, &Window)> {
        self.windows.windows.iter().map(|(id, window)| (*id, window))
    }

    /// A window that is not over.
    pub fn window(&self, id: WindowId) -> Option<&Window> {
        self.windows.windows.get(&id)
    }

    pub(crate) fn next_window_change(&self) -> Option<Time> {
        self.windows.changes_at
    }

    pub(super) fn window_set(&mut self, id: WindowId, window: &Window) {
        self.windows.windows.insert(id, window.clone());
        self.keep_nodes();
    }

    pub(super) fn window_ended(&mut self, id: WindowId) {
        if self.windows.windows.remove(&id).is_none() {
            self.stale_events += 1;
        }
        self.keep_nodes();
    }

    /// Puts windows back that were saved: what nodes are kept for was saved with them.
    pub(super) fn restore_windows(&mut self, windows: Vec<(WindowId, Window)>) {
        self.windows.windows = windows.into_iter().collect();
        self.windows.changes_at = self.next_change();
    }

    /// Looks at the windows if it is time to; whether it was.
    pub(super) fn pass_windows(&mut self) -> bool {
        let due = self.windows.changes_at.is_some_and(|at| at <= self.now);
        if due {
            self.keep_nodes();
        }
        due
    }

    /// Says of every node what it is kept for now: the window that comes first.
    fn keep_nodes(&mut self) {
        self.note_change();
        let now = self.now;
        self.windows.windows.retain(|_, window| window.until > now);
        let kept = self.kept_nodes();
        for at in 0..self.nodes.len() {
            let id = NodeId(at as u32);
            let next = kept.get(&id).copied();
            if self.nodes[at].kept != next {
                self.nodes[at].kept = next;
                self.capacity.set_kept(id, next);
                // More may fit than before, for some.
                self.journal.push(Change::Freed(id));
            }
        }
        self.windows.changes_at = self.next_change();
        self.evict();
        self.let_inside();
        let outside = |id: &JobId| self.job(*id).is_some_and(|job| self.is_outside(job));
        let outside: Vec<JobId> = self.pending.iter().copied().filter(outside).collect();
        outside.into_iter().for_each(|id| self.hold_outside(id));
    }

    /// Whether a window has begun and is not over.
    pub(super) fn is_inside(&self, id: WindowId) -> bool {
        self.window(id).is_some_and(|window| window.from <= self.now && window.until > self.now)
    }

    fn kept_nodes(&self) -> BTreeMap<NodeId, Kept> {
        let mut by_begin: Vec<(Time, WindowId)> =
            self.windows().map(|(id, window)| (window.from, id)).collect();
        by_begin.sort_unstable();
        let mut kept = BTreeMap::new();
        for (from, id) in by_begin {
            let (begun, room) = (from <= self.now, StayBound::within(from.since(self.now)));
            for node in &self.windows.windows[&id].nodes {
                kept.entry(*node).or_insert(Kept { window: id, begun, room });
            }
        }
        kept
    }

    fn next_change(&self) -> Option<Time> {
        let now = self.now;
        let times = self.windows().map(|(_, window)| {
            let left = window.from.since(now);
            if left == Span::ZERO {
                return window.until;
            }
            match StayBound::within(left) {
                StayBound::NONE => window.from,
                // A moment later stays of this length are too long.
                stay => Time(window.from.0 - stay.span().0 + 1),
            }
        });
        times.filter(|at| *at != Time::NEVER).min()
    }

    /// Whoever runs on a node that is wanted now has to leave, and what waits in its memory is
    /// lost: it could not go on before the window is over, and takes room from those it is for.
    pub(super) fn evict(&mut self) {
        let begun = self.windows().filter(|(_, window)| window.evicts && window.from <= self.now);
        let nodes = begun.flat_map(|(id, window)| window.nodes.iter().map(move |node| (id, *node)));
        let (mut leaving, mut lost) = (Vec::new(), Vec::new());
        for (window, node) in nodes {
            // Where another window goes on, those whom it is for stay; not beyond a deadline.
            let first = self.node(node).kept.is_some_and(|kept| kept.window == window);
            let endless = self.windows.windows[&window].until == Time::NEVER;
            let invited =
                |job: &Job| job.spec.gangs.iter().all(|gang| gang.demand.window == Some(window));
            for lease in self.node(node).leases.iter().filter(|_| first || endless) {
                let lease = self.lease(*lease).expect("a node names live leases");
                let job = self.job(lease.job).expect("a lease belongs to a job");
                if !invited(job) && lease.stop.is_none() {
                    leaving.push(lease.id);
                }
            }
            let parked = self.node(node).parked.iter().filter(|_| first || endless);
            let parked = parked.filter_map(|job| self.job(*job));
            // Whoever still leaves its GPUs is looked at when it has.
            let waiting = parked.filter(|job| job.lease().is_none() && !invited(job));
            lost.extend(waiting.map(|job| job.id));
        }
        for lease in leaving {
            self.must_stop.entry(lease).or_insert(StopWhy::Evicted);
        }
        lost.into_iter().for_each(|job| self.lose_parked(job, Reason::Evicted));
    }
}
