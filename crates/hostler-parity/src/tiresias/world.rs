//! The world of the original: whole seconds, stops that cost nothing, one speed everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::cluster::{GpuModel, NodeSpec, Tenant};
use hostler_core::decision::Decision;
use hostler_core::event::{Event, Outcome};
use hostler_core::executor::Executor;
use hostler_core::id::{JobId, LeaseId, ModelId, NodeId, TenantId};
use hostler_core::job::{Demand, Gang, JobKind, JobSpec, Locality};
use hostler_core::units::{Mib, Milli, Span, Time};

use super::SECOND;
use super::table::{ClusterShape, TiresiasJob};

/// Memory is counted in tenths of a GB where nodes matter: large jobs ask for such.
const TENTHS: u32 = 10;

/// Progress of one job, in seconds.
#[derive(Clone, Copy, Debug)]
struct Progress {
    submit: u64,
    left: u64,
    duration: u64,
}

/// The world.
pub(super) struct SecondsWorld {
    nodes: Vec<NodeSpec>,
    specs: Vec<Arc<JobSpec>>,
    jobs: Vec<Progress>,
    next_arrival: usize,
    /// Who runs, and since when.
    stays: BTreeMap<LeaseId, (JobId, u64)>,
    ends: BTreeSet<(u64, LeaseId)>,
    /// Answers to decisions, told at the same instant.
    answers: Vec<Event>,
    opened: bool,
    now: u64,
}

impl SecondsWorld {
    /// Jobs in order of submission on a cluster of which only GPUs count, or also its nodes.
    pub(super) fn new(rows: &[TiresiasJob], shape: &ClusterShape, by_node: bool) -> SecondsWorld {
        let progress = |row: &TiresiasJob| Progress {
            submit: row.submit,
            left: row.duration,
            duration: row.duration,
        };
        SecondsWorld {
            nodes: if by_node { nodes(shape) } else { vec![counter(shape)] },
            specs: rows.iter().map(|row| Arc::new(spec(row, shape, by_node))).collect(),
            jobs: rows.iter().map(progress).collect(),
            next_arrival: 0,
            stays: BTreeMap::new(),
            ends: BTreeSet::new(),
            answers: Vec::new(),
            opened: false,
            now: 0,
        }
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
        let mut events = vec![
            Event::ModelAdded { model: ModelId(0), spec: model },
            Event::TenantAdded { tenant: TenantId(0), spec: Tenant::named("all") },
        ];
        for (at, spec) in self.nodes.iter().enumerate() {
            events.push(Event::NodeUp { node: NodeId(at as u32), spec: spec.clone() });
        }
        events
    }

    fn arrival(&self) -> Option<u64> {
        self.jobs.get(self.next_arrival).map(|job| job.submit)
    }

    /// All ends and arrivals of this second.
    fn happens(&mut self, events: &mut Vec<Event>) {
        while let Some((_, lease)) = self.ends.first().filter(|(at, _)| *at == self.now).copied() {
            self.ends.pop_first();
            let (job, _) = self.stays.remove(&lease).expect("who ends has run");
            let done = Span::from_secs(self.jobs[job.index()].duration);
            let (outcome, lost) = (Outcome::Finished, Span::ZERO);
            events.push(Event::Stopped { lease, outcome, done, lost });
        }
        while self.arrival().is_some_and(|at| at <= self.now) {
            let spec = Arc::clone(&self.specs[self.next_arrival]);
            events.push(Event::Submitted { job: JobId(self.next_arrival as u32), spec });
            self.next_arrival += 1;
        }
    }

    /// Takes the GPUs of a stay away; what it did is kept.
    fn stop(&mut self, lease: LeaseId) {
        let Some((job, since)) = self.stays.remove(&lease) else { return };
        let progress = &mut self.jobs[job.index()];
        self.ends.remove(&(since + progress.left, lease));
        progress.left -= self.now - since;
        let done = Span::from_secs(progress.duration - progress.left);
        let (outcome, lost) = (Outcome::Interrupted, Span::ZERO);
        self.answers.push(Event::Stopped { lease, outcome, done, lost });
    }
}

impl Executor for SecondsWorld {
    fn next(&mut self, wake: Option<Time>) -> Option<(Time, Vec<Event>)> {
        let mut events = std::mem::take(&mut self.answers);
        if events.is_empty() {
            if !std::mem::replace(&mut self.opened, true) {
                events = self.opening();
            } else {
                let end = self.ends.first().map(|(at, _)| *at);
                let next = [self.arrival(), end].into_iter().flatten().min()?;
                let wake = wake.map_or(u64::MAX, |at| at.0.div_ceil(SECOND));
                self.now = next.min(wake).max(self.now);
            }
            self.happens(&mut events);
        }
        Some((Time::from_secs(self.now), events))
    }

    fn submit(&mut self, _: Time, decision: &Decision) {
        match decision {
            Decision::Start { lease, job, .. } => {
                self.stays.insert(*lease, (*job, self.now));
                self.ends.insert((self.now + self.jobs[job.index()].left, *lease));
                self.answers.push(Event::Started { lease: *lease });
            }
            Decision::Stop { lease, .. } => self.stop(*lease),
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

/// A node whose memory counts the GPUs of the cluster.
fn counter(shape: &ClusterShape) -> NodeSpec {
    NodeSpec { name: "cluster".into(), mem: Mib(shape.all_gpus()), ..NodeSpec::default() }
}

fn nodes(shape: &ClusterShape) -> Vec<NodeSpec> {
    let node = |rack: u32| NodeSpec {
        name: "node".into(),
        cpu: Milli(shape.cpus.saturating_mul(1000)),
        mem: Mib(shape.mem_gb.saturating_mul(TENTHS)),
        gpu_model: Some(ModelId(0)),
        gpus: shape.gpus,
        rack,
        ..NodeSpec::default()
    };
    let switches = (0..shape.switches).map(node);
    switches.flat_map(|node| std::iter::repeat_n(node, shape.nodes as usize)).collect()
}

/// What a job asks for. Where nodes matter, one that fits a node is one task with all of its GPUs,
/// and a larger one has a task for each.
fn spec(row: &TiresiasJob, shape: &ClusterShape, by_node: bool) -> JobSpec {
    let (count, demand) = match (by_node, row.gpus <= shape.gpus) {
        (false, _) => (1, Demand { mem: Mib(row.gpus), ..Demand::default() }),
        (true, true) => {
            let cpus = if row.gpus == 1 { 2 } else { 6 * row.gpus };
            (1, task(row.gpus, cpus, 5 * TENTHS, Locality::Node))
        }
        (true, false) => (row.gpus, task(1, 6, 11 * TENTHS + row.gpus, Locality::Rack)),
    };
    JobSpec {
        name: row.id.clone(),
        kind: JobKind::Training,
        gangs: Box::new([Gang { count, demand }]),
        user_estimate: Some(Span::from_secs(row.duration)),
        ..JobSpec::default()
    }
}

fn task(gpus: u32, cpus: u32, mem: u32, locality: Locality) -> Demand {
    Demand {
        gpu: Milli(gpus * 1000),
        cpu: Milli(cpus * 1000),
        mem: Mib(mem),
        locality,
        ..Demand::default()
    }
}
