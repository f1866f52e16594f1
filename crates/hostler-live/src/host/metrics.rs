//! Figures for operators: how often, how long, how many. No figure decides anything.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::JobState;

/// Upper bounds of the classes, in microseconds: from a tenth of a millisecond to a minute.
const BOUNDS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 5_000_000, 15_000_000, 60_000_000,
];

/// How often something took how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Number of values up to each bound of [`Histogram::bounds`], not added up; the last one is
    /// beyond all bounds.
    pub counts: [u64; 17],
    /// Sum of all values, in microseconds.
    pub sum_micros: u64,
}

impl Histogram {
    /// Upper bounds of the classes, in microseconds.
    pub fn bounds() -> &'static [u64] {
        &BOUNDS
    }

    /// Counts a value.
    pub fn add(&mut self, value: Duration) {
        let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX);
        self.counts[BOUNDS.partition_point(|bound| *bound < micros)] += 1;
        self.sum_micros = self.sum_micros.saturating_add(micros);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A bound below which at least this share of the values lies, in microseconds.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return BOUNDS.get(at).copied().unwrap_or(u64::MAX);
            }
        }
        u64::MAX
    }
}

/// Counters and histograms of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Commands taken in.
    pub commands: u64,
    /// Jobs taken in.
    pub submitted: u64,
    /// Jobs that ended, by how.
    pub ended: BTreeMap<JobState, u64>,
    /// Start orders given, repeated ones included.
    pub starts: u64,
    /// Rules that policies broke.
    pub violations: u64,
    /// Nodes that were given up as silent.
    pub nodes_given_up: u64,
    /// Suspensions that a node could not carry out.
    pub suspensions_refused: u64,
    /// Bytes of output that nodes had no room for.
    pub output_lost_bytes: u64,
    /// Number of the last record.
    pub records: u64,
    /// Time that steps took, the policy's thinking included.
    pub decisions: Histogram,
    /// Time that commits took.
    pub commits: Histogram,
    /// Time that jobs waited for their first start.
    pub waits: Histogram,
}

impl Figures {
    pub(super) fn ended(&mut self, state: JobState, submitted: u64, started: Option<u64>) {
        *self.ended.entry(state).or_default() += 1;
        if let Some(started) = started {
            self.waits.add(Duration::from_micros(started.saturating_sub(submitted)));
        }
    }
}
