//! Queue length and use of the GPUs over time, in a bounded number of points. For pictures.

use serde::Serialize;

use super::fleet::Fleet;
use super::grid::Grid;
use super::saved::Shares;
use super::steps::Steps;
use crate::cluster::Node;
use crate::id::NodeId;
use crate::job::Job;
use crate::limits::SERIES_BUCKETS_MAX;
use crate::placement::Lease;
use crate::state::ClusterState;
use crate::units::Time;
use crate::watch::Watch;

/// What happened over time, from the first submission on.
#[derive(Clone, Debug)]
pub struct Series {
    grid: Grid,
    /// What comes later is not looked at.
    until: Time,
    waiting: Steps,
    capacity: Steps,
    allocated: Steps,
    started: Steps,
    saved: Steps,
    shares: Shares,
    fleet: Fleet,
}

/// Exact means over equal spans of time; the last may be cut short.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesPoints {
    /// Length of each span.
    pub width_s: f64,
    /// Where each span begins.
    pub times_s: Vec<f64>,
    /// Jobs without resources.
    pub queue: Vec<f64>,
    /// Booked part of the GPUs that are up.
    pub allocated: Vec<f64>,
    /// Part of the GPUs that are up and booked by stays whose start was confirmed.
    pub used: Vec<f64>,
    /// Devices that sharing saved.
    pub saved: Vec<f64>,
}

impl Default for Series {
    fn default() -> Series {
        let grid = Grid::new(SERIES_BUCKETS_MAX);
        Series {
            grid,
            until: Time::NEVER,
            waiting: Steps::new(&grid),
            capacity: Steps::new(&grid),
            allocated: Steps::new(&grid),
            started: Steps::new(&grid),
            saved: Steps::new(&grid),
            shares: Shares::default(),
            fleet: Fleet::default(),
        }
    }
}

impl Series {
    /// The series from now on of a cluster that is at work already.
    pub fn joining(state: &ClusterState) -> Series {
        let mut series = Series::default();
        series.grid.open(state.now());
        for node in state.nodes() {
            series.refresh(state.now(), state, node.id);
        }
        let waiting = state.job_count() as i64 - state.lease_count() as i64;
        series.waiting.step(&series.grid, state.now(), waiting);
        for lease in state.leases() {
            let saved = series.shares.began(&lease.placement).saved;
            series.saved_changed(state.now(), saved as i64);
        }
        series
    }

    /// A series that ends at `until`, however long the run goes on: a few jobs of many days would
    /// otherwise leave one point for the hours in which most happens.
    pub fn ending(until: Time) -> Series {
        Series { until, ..Series::default() }
    }

    /// The series up to now.
    pub fn points(&self, state: &ClusterState) -> SeriesPoints {
        let mut series = self.clone();
        let now = state.now().min(self.until);
        series.cover(now);
        for lease in state.leases() {
            series.add_started(state, lease, None);
        }
        let Some(_) = series.grid.origin() else {
            return SeriesPoints::default();
        };
        let grid = &series.grid;
        let capacity = series.capacity.integrals(grid, now);
        let allocated = shares(&series.allocated.integrals(grid, now), &capacity);
        let started = shares(&series.started.integrals(grid, now), &capacity);
        // A stay on a node that is down is booked and started, but uses nothing that is there.
        let used = started.iter().zip(&allocated);
        let used = used.map(|(started, allocated)| started.min(*allocated));
        let waiting = series.waiting.integrals(grid, now).into_iter();
        let length = |bucket: usize| grid.start(bucket + 1).min(now).since(grid.start(bucket));
        let mean = |(bucket, sum): (usize, i128)| sum as f64 / length(bucket).0 as f64;
        let queue = waiting.enumerate().map(mean);
        let saved = series.saved.integrals(grid, now).into_iter().enumerate().map(mean);
        SeriesPoints {
            width_s: grid.width().secs_f64(),
            times_s: (0..grid.filled(now)).map(|bucket| grid.start(bucket).secs_f64()).collect(),
            queue: queue.collect(),
            saved: saved.collect(),
            used: used.collect(),
            allocated,
        }
    }

    fn cover(&mut self, at: Time) {
        while self.grid.is_short(at) {
            let Series { waiting, capacity, allocated, started, saved, .. } = self;
            for steps in [waiting, capacity, allocated, started, saved] {
                steps.merge(&self.grid);
            }
            self.grid.widen();
        }
    }

    fn waiting_changed(&mut self, at: Time, delta: i64) {
        let at = at.min(self.until);
        self.cover(at);
        self.waiting.step(&self.grid, at, delta);
    }

    fn saved_changed(&mut self, at: Time, delta: i64) {
        if delta != 0 {
            let at = at.min(self.until);
            self.cover(at);
            self.saved.step(&self.grid, at, delta);
        }
    }

    fn refresh(&mut self, at: Time, state: &ClusterState, id: NodeId) {
        let at = at.min(self.until);
        let (before, now) = self.fleet.refresh(state, id);
        let moved = |steps: &mut Steps, before: u32, now: u32| {
            if before != now {
                steps.step(&self.grid, at, i64::from(now) - i64::from(before));
            }
        };
        moved(&mut self.capacity, before.capacity, now.capacity);
        moved(&mut self.allocated, before.allocated, now.allocated);
    }

    fn refresh_parts(&mut self, at: Time, state: &ClusterState, lease: &Lease) {
        self.cover(at.min(self.until));
        for part in &lease.placement.parts {
            self.refresh(at, state, part.node);
        }
    }

    fn stay_began(&mut self, at: Time, state: &ClusterState, lease: &Lease) {
        self.refresh_parts(at, state, lease);
        let saved = self.shares.began(&lease.placement).saved;
        self.saved_changed(at, saved as i64);
    }

    fn stay_ended(&mut self, at: Time, state: &ClusterState, lease: &Lease) {
        self.refresh_parts(at, state, lease);
        self.add_started(state, lease, Some(at));
        let saved = self.shares.ended(&lease.placement).saved;
        self.saved_changed(at, -(saved as i64));
    }

    /// Counts a stay from its confirmed start to `end`, if that has come.
    fn add_started(&mut self, state: &ClusterState, lease: &Lease, end: Option<Time>) {
        let Some(started) = lease.started else {
            return;
        };
        let parts = lease.placement.parts.iter();
        let compute: i64 = parts.map(|part| i64::from(state.gpu_of(part).0)).sum();
        let began = started.max(lease.since).min(self.until);
        self.started.step(&self.grid, began, compute);
        if let Some(end) = end {
            self.started.step(&self.grid, end.min(self.until), -compute);
        }
    }
}

impl Watch for Series {
    fn submitted(&mut self, at: Time, _job: &Job) {
        self.grid.open(at);
        self.waiting_changed(at, 1);
    }

    fn began(&mut self, at: Time, state: &ClusterState, _job: &Job, lease: &Lease) {
        self.stay_began(at, state, lease);
        self.waiting_changed(at, -1);
    }

    fn ended(&mut self, at: Time, state: &ClusterState, _job: &Job, lease: &Lease) {
        self.stay_ended(at, state, lease);
        self.waiting_changed(at, 1);
    }

    fn moved(&mut self, at: Time, state: &ClusterState, _job: &Job, from: &Lease, to: &Lease) {
        self.stay_ended(at, state, from);
        self.stay_began(at, state, to);
    }

    fn retired(&mut self, at: Time, _state: &ClusterState, _job: &Job) {
        self.waiting_changed(at, -1);
    }

    fn node_changed(&mut self, at: Time, state: &ClusterState, node: &Node) {
        self.cover(at.min(self.until));
        self.refresh(at, state, node.id);
    }
}

fn shares(parts: &[i128], wholes: &[i128]) -> Vec<f64> {
    let share = |(part, whole): (&i128, &i128)| match whole {
        0 => 0.0,
        whole => *part as f64 / *whole as f64,
    };
    parts.iter().zip(wholes).map(share).collect()
}
