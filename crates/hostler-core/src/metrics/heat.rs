//! How full each machine was over time. For pictures; memory is bounded by the number of nodes.

use super::grid::Grid;
use crate::cluster::{Health, Node};
use crate::id::NodeId;
use crate::job::Job;
use crate::limits::HEAT_BUCKETS_MAX;
use crate::placement::Lease;
use crate::state::ClusterState;
use crate::units::{Span, Time};
use crate::watch::Watch;

/// The fullness of each node over time, from the first submission on.
#[derive(Clone, Debug)]
pub struct Heat {
    grid: Grid,
    /// What comes later is not looked at.
    until: Time,
    nodes: Vec<NodeHeat>,
    /// Booked time of each node and bucket, in microseconds of the whole node.
    booked: Vec<f32>,
}

#[derive(Clone, Debug)]
struct NodeHeat {
    since: Time,
    level: f32,
    is_down: bool,
    /// Time out of service in each bucket; most nodes never are.
    down: Option<Box<[f32]>>,
}

/// A picture of machines by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatMap {
    /// Where the first column begins.
    pub start: Time,
    /// Length of each column.
    pub width: Span,
    /// Number of columns.
    pub columns: usize,
    /// Row by row, one per node: per cent that were booked while the node was up, or
    /// [`HeatMap::DOWN`].
    pub cells: Vec<u8>,
}

impl HeatMap {
    /// A node that was down for more than half of the column.
    pub const DOWN: u8 = 255;

    /// The cells of one node.
    pub fn row(&self, node: NodeId) -> &[u8] {
        let first = node.index() * self.columns;
        &self.cells[first..first + self.columns]
    }
}

impl Default for Heat {
    fn default() -> Heat {
        let grid = Grid::new(HEAT_BUCKETS_MAX);
        Heat { grid, until: Time::NEVER, nodes: Vec::new(), booked: Vec::new() }
    }
}

impl Heat {
    /// The map from now on of a cluster that is at work already.
    pub fn joining(state: &ClusterState) -> Heat {
        let mut heat = Heat::default();
        heat.grid.open(state.now());
        for node in state.nodes() {
            heat.touch(state.now(), state, node);
        }
        heat
    }

    /// A map that ends at `until`, however long the run goes on.
    pub fn ending(until: Time) -> Heat {
        Heat { until, ..Heat::default() }
    }

    /// The map up to now.
    pub fn map(&self, state: &ClusterState) -> HeatMap {
        let Some(start) = self.grid.origin() else {
            return HeatMap::default();
        };
        let now = state.now().min(self.until);
        let mut heat = self.clone();
        heat.cover(now);
        let columns = heat.grid.filled(now);
        let mut cells = Vec::with_capacity(heat.nodes.len() * columns);
        for node in 0..heat.nodes.len() {
            heat.settle(node, now);
            cells.extend((0..columns).map(|column| heat.cell(node, column, now)));
        }
        HeatMap { start, width: heat.grid.width(), columns, cells }
    }

    fn cell(&self, node: usize, column: usize, now: Time) -> u8 {
        let start = self.grid.start(column);
        let length = self.grid.start(column + 1).min(now).since(start).0 as f32;
        let down = self.nodes[node].down.as_ref().map_or(0.0, |down| down[column]);
        if down * 2.0 > length {
            return HeatMap::DOWN;
        }
        let booked = self.booked[node * self.grid.count() + column];
        (booked * 100.0 / (length - down)).round().min(100.0) as u8
    }

    fn cover(&mut self, at: Time) {
        let count = self.grid.count();
        while self.grid.is_short(at) {
            for row in self.booked.chunks_exact_mut(count) {
                merge(row);
            }
            for node in &mut self.nodes {
                if let Some(down) = &mut node.down {
                    merge(down);
                }
            }
            self.grid.widen();
        }
    }

    /// Adds what a node was since its last change.
    fn settle(&mut self, node: usize, at: Time) {
        let Some(origin) = self.grid.origin() else {
            return;
        };
        let count = self.grid.count();
        let heat = &mut self.nodes[node];
        let mut from = heat.since.max(origin);
        heat.since = at;
        let (row, level) = if heat.is_down {
            let down = heat.down.get_or_insert_with(|| vec![0.0; count].into());
            (&mut down[..], 1.0)
        } else {
            let first = node * count;
            (&mut self.booked[first..first + count], heat.level)
        };
        if level == 0.0 {
            return;
        }
        while from < at {
            let bucket = self.grid.bucket(from);
            let to = self.grid.start(bucket + 1).min(at);
            row[bucket] += to.since(from).0 as f32 * level;
            from = to;
        }
    }

    fn touch(&mut self, at: Time, state: &ClusterState, node: &Node) {
        let at = at.min(self.until);
        self.cover(at);
        let index = node.id.index();
        while self.nodes.len() <= index {
            // A node that joins late was not there before.
            self.nodes.push(NodeHeat {
                since: self.grid.origin().unwrap_or(at),
                level: 0.0,
                is_down: true,
                down: None,
            });
            self.booked.resize(self.nodes.len() * self.grid.count(), 0.0);
        }
        self.settle(index, at);
        self.nodes[index].level = fullness(state, node);
        self.nodes[index].is_down = node.health == Health::Down;
    }

    fn touch_parts(&mut self, at: Time, state: &ClusterState, lease: &Lease) {
        for part in &lease.placement.parts {
            self.touch(at, state, state.node(part.node));
        }
    }
}

impl Watch for Heat {
    fn submitted(&mut self, at: Time, _job: &Job) {
        self.grid.open(at);
    }

    fn began(&mut self, at: Time, state: &ClusterState, _job: &Job, lease: &Lease) {
        self.touch_parts(at, state, lease);
    }

    fn ended(&mut self, at: Time, state: &ClusterState, _job: &Job, lease: &Lease) {
        self.touch_parts(at, state, lease);
    }

    fn moved(&mut self, at: Time, state: &ClusterState, _job: &Job, from: &Lease, to: &Lease) {
        self.touch_parts(at, state, from);
        self.touch_parts(at, state, to);
    }

    fn node_changed(&mut self, at: Time, state: &ClusterState, node: &Node) {
        self.touch(at, state, node);
    }
}

/// Booked part of a node's GPUs, or of its CPU when it has none.
fn fullness(state: &ClusterState, node: &Node) -> f32 {
    let capacity = state.capacity();
    let (free, all) = match node.spec.gpus {
        0 => (capacity.node(node.id).cpu.0, node.spec.cpu.0),
        gpus => (capacity.gpu_free(node.id).0, gpus * 1000),
    };
    if all == 0 { 0.0 } else { (all - free) as f32 / all as f32 }
}

fn merge(row: &mut [f32]) {
    let half = row.len() / 2;
    for pair in 0..half {
        row[pair] = row[2 * pair] + row[2 * pair + 1];
    }
    row[half..].fill(0.0);
}
