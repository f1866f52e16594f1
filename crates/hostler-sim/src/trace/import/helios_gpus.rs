//! GPUs of each virtual cluster by day, as Helios publishes them: machines that move.
//!
//! A virtual cluster that has fewer GPUs than the day before gives machines away, and one that has
//! more takes them: what runs there stays. Only where all together have fewer does a machine leave.
//! The table does not say how GPUs sit in machines: eight to each, as the source describes its
//! clusters. Nor does it say which machine moves: the last of those who have too many.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;

use super::values::{tally, whole};
use super::wall_clock::parse_day;
use super::{ImportOptions, Imported, separated};
use crate::trace::error::{Faults, Problem};
use crate::trace::limits::NODES_MAX;
use crate::trace::rows::Sink;
use crate::trace::table::{NodeRow, OptU64};
use crate::trace::text::TextId;

/// GPUs of a machine.
pub(super) const GPUS_PER_NODE: u64 = 8;

/// Reads a table of GPUs, a row per day and a column per virtual cluster, as machines.
pub fn read_helios_gpus(
    input: &mut dyn Read,
    file: &str,
    options: &ImportOptions,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, .. } = imported;
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let zone = options.time_zone.unwrap_or_default();
    let mut park = Park::default();
    let (mut rows, mut last_day) = (0, None);
    separated::each_line(input, Some(','), &mut sink, &mut |line, fields, sink| {
        if line == 1 {
            park.clusters = fields.iter().skip(1).map(|name| (*name).to_owned()).collect();
            return true;
        }
        rows += 1;
        let day = parse_day(fields[0], zone);
        let Some(day) = day.filter(|day| last_day.is_none_or(|last| last < *day)) else {
            tally(dropped, "day of a GPU table cannot be read or is out of order");
            return true;
        };
        let counts = counts(&fields[1..]).filter(|counts| counts.len() == park.clusters.len());
        let Some(counts) = counts else {
            tally(dropped, "day of a GPU table has a number that cannot be read");
            return true;
        };
        last_day = Some(day);
        let fits = park.change(day, counts);
        if !fits {
            sink.fault(line, "", b"", Problem::TooManyRows);
        }
        fits
    });
    (0..park.machines.len()).for_each(|machine| park.end(machine, None));
    trace.nodes.extend(park.stays.iter().map(|stay| park.row(stay, &mut sink)));
    imported.rows_read.insert(file.to_owned(), rows);
}

fn counts(fields: &[&str]) -> Option<Vec<u64>> {
    const GPUS_MAX: u64 = NODES_MAX as u64 * GPUS_PER_NODE;
    fields.iter().map(|field| whole(field, GPUS_MAX).ok().flatten()).collect()
}

/// Machines that can be taken, by their GPUs, in the order of their numbers.
type Spare = BTreeMap<u64, VecDeque<usize>>;

/// All machines, where they are and where they were.
#[derive(Default)]
struct Park {
    /// Names of the virtual clusters, by column.
    clusters: Vec<String>,
    /// GPUs of each cluster as of the last day.
    counts: Vec<u64>,
    machines: Vec<Machine>,
    /// Stays that are over, in the order of their ends.
    stays: Vec<Stay>,
    opened: usize,
}

struct Machine {
    gpus: u64,
    /// In which virtual cluster and since when; none while it is away.
    at: Option<(usize, u64)>,
}

struct Stay {
    machine: usize,
    cluster: usize,
    from: u64,
    to: Option<u64>,
}

impl Park {
    /// From `day` on the clusters have so many GPUs. Says no when there would be too many stays.
    fn change(&mut self, day: u64, counts: Vec<u64>) -> bool {
        if counts == self.counts {
            return true;
        }
        let mut wanted: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        let named = counts.iter().enumerate().filter(|(at, _)| self.clusters[*at] != "total");
        for (cluster, gpus) in named {
            wanted.insert((cluster, GPUS_PER_NODE), gpus / GPUS_PER_NODE);
            *wanted.entry((cluster, gpus % GPUS_PER_NODE)).or_default() += 1;
        }
        // Nothing is left over, or it is a machine of its own.
        wanted.retain(|(_, gpus), machines| *gpus > 0 && *machines > 0);
        let (mut moving, mut away) = (Spare::new(), Spare::new());
        for (at, machine) in self.machines.iter().enumerate() {
            let Some((cluster, _)) = machine.at else {
                away.entry(machine.gpus).or_default().push_back(at);
                continue;
            };
            match wanted.get_mut(&(cluster, machine.gpus)).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => moving.entry(machine.gpus).or_default().push_back(at),
            }
        }
        let more = wanted.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if more > (NODES_MAX - self.opened) as u64 {
            return false;
        }
        self.opened += more as usize;
        moving.values().flatten().for_each(|machine| self.end(*machine, Some(day)));
        for ((cluster, gpus), count) in wanted {
            for _ in 0..count {
                // First those that somebody gives away today, then those that left before.
                let moved = moving.get_mut(&gpus).and_then(VecDeque::pop_front);
                let back = || away.get_mut(&gpus).and_then(VecDeque::pop_front);
                let machine = moved.or_else(back).unwrap_or(self.machines.len());
                if machine == self.machines.len() {
                    self.machines.push(Machine { gpus, at: None });
                }
                self.machines[machine].at = Some((cluster, day));
            }
        }
        self.counts = counts;
        true
    }

    /// Ends the stay of a machine; no day = it stays there.
    fn end(&mut self, machine: usize, to: Option<u64>) {
        if let Some((cluster, from)) = self.machines[machine].at.take() {
            self.stays.push(Stay { machine, cluster, from, to });
        }
    }

    fn row(&self, stay: &Stay, sink: &mut Sink<'_>) -> NodeRow {
        let mut intern = |text: &str| {
            sink.text.intern(text).unwrap_or_else(|full| {
                sink.fault(0, "", text.as_bytes(), full.into());
                TextId::EMPTY
            })
        };
        NodeRow {
            node_id: intern(&format!("node-{}", stay.machine + 1)),
            pool: intern(&self.clusters[stay.cluster]),
            gpu_count: self.machines[stay.machine].gpus as u32,
            up_from_s: OptU64::some(stay.from),
            up_to_s: stay.to.into(),
            ..NodeRow::default()
        }
    }
}
