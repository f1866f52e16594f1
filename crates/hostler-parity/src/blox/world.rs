//! The world of the original: rounds, and nothing in between.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use hostler_core::cluster::{GpuModel, NodeSpec, Tenant};
use hostler_core::decision::Decision;
use hostler_core::event::{Event, Outcome};
use hostler_core::executor::Executor;
use hostler_core::id::{JobId, LeaseId, ModelId, NodeId, TenantId};
use hostler_core::job::{Demand, Gang, JobKind, JobSpec};
use hostler_core::units::{Mib, Milli, Span, Time};

use super::table::BloxJob;
use super::{GPUS_PER_NODE, ROUND_SECS};

/// The world.
pub(super) struct RoundWorld {
    rows: Vec<BloxJob>,
    nodes: u32,
    tracked: RangeInclusive<usize>,
    /// Tracked jobs that have not ended.
    left: usize,
    next_arrival: usize,
    /// Time that each job ran.
    ran: Vec<u64>,
    /// When each job ended.
    ends: Vec<Option<u64>>,
    stays: BTreeMap<LeaseId, JobId>,
    /// Answers to decisions, told at the same instant.
    answers: Vec<Event>,
    opened: bool,
    now: u64,
    suspensions: u64,
}

impl RoundWorld {
    pub(super) fn new(rows: &[BloxJob], gpus: u32, tracked: RangeInclusive<usize>) -> RoundWorld {
        RoundWorld {
            rows: rows.to_vec(),
            nodes: gpus / GPUS_PER_NODE,
            left: tracked.clone().count().min(rows.len()),
            tracked,
            next_arrival: 0,
            ran: vec![0; rows.len()],
            ends: vec![None; rows.len()],
            stays: BTreeMap::new(),
            answers: Vec::new(),
            opened: false,
            now: 0,
            suspensions: 0,
        }
    }

    /// Seconds from arrival to end of some jobs that ended.
    pub(super) fn times(&self, jobs: RangeInclusive<usize>) -> Vec<u64> {
        let time = |job: usize| Some(self.ends[job]? - self.rows[job].arrival);
        jobs.filter(|job| *job < self.rows.len()).filter_map(time).collect()
    }

    /// Tracked jobs that have not ended.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Rounds before the one in which it was found that all have ended.
    pub(super) fn rounds(&self) -> u64 {
        self.now / ROUND_SECS
    }

    pub(super) fn suspensions(&self) -> u64 {
        self.suspensions
    }

    /// The catalogue and the nodes, as facts.
    fn opening(&self) -> Vec<Event> {
        let model = GpuModel {
            name: "GPU".into(),
            mem: Mib(0),
            tier: 0,
            mig_slices: 0,
            idle_watts: 0,
            busy_watts: 0,
        };
        let node = NodeSpec {
            name: "node".into(),
            gpu_model: Some(ModelId(0)),
            gpus: GPUS_PER_NODE,
            ..NodeSpec::default()
        };
        let mut events = vec![
            Event::ModelAdded { model: ModelId(0), spec: model },
            Event::TenantAdded { tenant: TenantId(0), spec: Tenant::named("all") },
        ];
        let up = |at: u32| Event::NodeUp { node: NodeId(at), spec: node.clone() };
        events.extend((0..self.nodes).map(up));
        events
    }

    /// When the next job enters.
    fn next_entry(&self) -> Option<u64> {
        let row = self.rows.get(self.next_arrival)?;
        Some(row.arrival.next_multiple_of(ROUND_SECS))
    }

    /// Everybody ran for a round; who has run long enough ends now.
    fn end_round(&mut self, events: &mut Vec<Event>) {
        let mut over = Vec::new();
        for (lease, job) in &self.stays {
            let ran = &mut self.ran[job.index()];
            *ran += ROUND_SECS;
            if *ran >= self.rows[job.index()].duration {
                over.push((*lease, *job));
            }
        }
        for (lease, job) in over {
            self.stays.remove(&lease);
            self.ends[job.index()] = Some(self.now);
            self.left -= usize::from(self.tracked.contains(&job.index()));
            let done = Span::from_secs(self.ran[job.index()]);
            let (outcome, lost) = (Outcome::Finished, Span::ZERO);
            events.push(Event::Stopped { lease, outcome, done, lost });
        }
    }

    fn admit(&mut self, events: &mut Vec<Event>) {
        while self.next_entry().is_some_and(|at| at <= self.now) {
            let spec = Arc::new(spec(&self.rows[self.next_arrival]));
            events.push(Event::Submitted { job: JobId(self.next_arrival as u32), spec });
            self.next_arrival += 1;
        }
    }
}

impl Executor for RoundWorld {
    fn next(&mut self, _: Option<Time>) -> Option<(Time, Vec<Event>)> {
        let mut events = std::mem::take(&mut self.answers);
        if !events.is_empty() {
            return Some((Time::from_secs(self.now), events));
        }
        if !std::mem::replace(&mut self.opened, true) {
            events = self.opening();
        } else {
            let next = self.now + ROUND_SECS;
            // Nothing happens while nobody runs and nobody comes.
            self.now = if self.stays.is_empty() { self.next_entry()?.max(next) } else { next };
            self.end_round(&mut events);
            if self.left == 0 {
                return None;
            }
        }
        self.admit(&mut events);
        events.push(Event::RoundEnded);
        Some((Time::from_secs(self.now), events))
    }

    fn submit(&mut self, _: Time, decision: &Decision) {
        match decision {
            Decision::Start { lease, job, .. } => {
                self.stays.insert(*lease, *job);
                self.answers.push(Event::Started { lease: *lease });
            }
            Decision::Stop { lease, .. } => {
                let Some(job) = self.stays.remove(lease) else { return };
                self.suspensions += 1;
                let done = Span::from_secs(self.ran[job.index()]);
                let (outcome, lost) = (Outcome::Interrupted, Span::ZERO);
                self.answers.push(Event::Stopped { lease: *lease, outcome, done, lost });
            }
            Decision::Reject { .. }
            | Decision::SetAside { .. }
            | Decision::Resize { .. }
            | Decision::BeginRound
            | Decision::WeighPast { .. }
            | Decision::Repartition { .. }
            | Decision::SetPower { .. }
            | Decision::Hold { .. }
            | Decision::Solve { .. }
            | Decision::Turns { .. }
            | Decision::WakeAt { .. } => {}
        }
    }
}

fn spec(row: &BloxJob) -> JobSpec {
    let demand = Demand { gpu: Milli(1000), ..Demand::default() };
    JobSpec {
        kind: JobKind::Training,
        gangs: Box::new([Gang { count: row.gpus, demand }]),
        ..JobSpec::default()
    }
}
