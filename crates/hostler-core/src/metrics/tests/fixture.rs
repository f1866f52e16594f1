//! A tiny world for tests: every fact and every decision is written down by the test.

use std::sync::{Arc, Mutex};

use crate::cluster::{GpuModel, NodeSpec, Power, Share, Tenant};
use crate::decision::{StopHow, StopWhy};
use crate::engine::Engine;
use crate::event::{Event, Outcome};
use crate::id::{DeviceId, JobId, LeaseId, ModelId, NodeId, TenantId};
use crate::job::{Checkpoint, Demand, Gang, JobKind, JobSpec, Role, Sharing};
use crate::placement::{Part, Placement, Slice};
use crate::plan::Plan;
use crate::policy::{Policy, Wake};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::units::{Mib, Milli, Span, Time};
use crate::view::View;
use crate::watch::Watch;

/// What the policy does when it is asked next.
pub(super) enum Act {
    Start(u32, Placement),
    Preempt(u32),
    Resize(u32, Placement),
    Reject(u32),
    Sleep(u32),
}

#[derive(Default)]
struct Script(Arc<Mutex<Vec<Act>>>);

impl Policy for Script {
    fn decide(&mut self, _view: &View<'_>, _wake: Wake, plan: &mut Plan<'_>) {
        for act in self.0.lock().unwrap().drain(..) {
            match act {
                Act::Start(job, placement) => {
                    plan.start(JobId(job), placement).unwrap();
                }
                Act::Preempt(lease) => {
                    plan.stop(LeaseId(lease), StopHow::Kill, StopWhy::Preempted).unwrap()
                }
                Act::Resize(lease, placement) => plan.resize(LeaseId(lease), placement).unwrap(),
                Act::Reject(job) => plan.turn_away(JobId(job), Reason::NoSuchModel).unwrap(),
                Act::Sleep(node) => plan.set_power(NodeId(node), Power::Sleeping).unwrap(),
            }
        }
    }
}

pub(super) struct World<Watcher> {
    engine: Engine<Watcher>,
    acts: Arc<Mutex<Vec<Act>>>,
    now: Time,
}

impl<Watcher: Watch> World<Watcher> {
    /// Nodes of 200 W with so many GPUs of 100 W idle and 500 W busy, and 100 cores each.
    pub(super) fn new(watch: Watcher, nodes: &[u32]) -> World<Watcher> {
        let script = Script::default();
        let acts = Arc::clone(&script.0);
        let engine = Engine::new(Box::new(script), watch);
        let now = Time::ZERO;
        let mut world = World { engine, acts, now };
        let tenant = |id: u32, name: &str| Event::TenantAdded {
            tenant: TenantId(id),
            spec: Tenant::named(name),
        };
        let mut events = vec![gpu_model(), tenant(0, "red"), tenant(1, "blue")];
        let nodes = nodes.iter().enumerate();
        events.extend(nodes.map(|(id, gpus)| node_up(id as u32, *gpus)));
        world.step(0, events, vec![]);
        world
    }

    /// Facts of the second `at`, then what the policy does about them.
    pub(super) fn step(&mut self, at: u64, mut events: Vec<Event>, acts: Vec<Act>) {
        self.now = Time::from_secs(at);
        if !acts.is_empty() {
            events.push(Event::RoundEnded);
        }
        *self.acts.lock().unwrap() = acts;
        self.engine.step(self.now, events).unwrap();
        assert!(self.acts.lock().unwrap().is_empty(), "the policy was asked");
    }

    pub(super) fn state(&self) -> &ClusterState {
        self.engine.state()
    }

    pub(super) fn watch(&self) -> &Watcher {
        self.engine.watch()
    }
}

fn gpu_model() -> Event {
    Event::ModelAdded {
        model: ModelId(0),
        spec: GpuModel {
            name: "h200".into(),
            mem: Mib(1000),
            tier: 0,
            mig_slices: 0,
            idle_watts: 100,
            busy_watts: 500,
        },
    }
}

pub(super) fn node_up(id: u32, gpus: u32) -> Event {
    Event::NodeUp {
        node: NodeId(id),
        spec: NodeSpec {
            name: format!("n{id}").into(),
            cpu: Milli(100_000),
            mem: Mib(1000),
            gpu_model: (gpus > 0).then_some(ModelId(0)),
            gpus,
            island_gpus: 0,
            rack: 0,
            base_watts: 200,
        },
    }
}

/// A training job of one task.
pub(super) fn job(name: &str, gpu: u32) -> JobSpec {
    JobSpec {
        name: name.into(),
        tenant: TenantId(0),
        group: None,
        kind: JobKind::Training,
        gangs: [gang(1, gpu)].into(),
        priority: 0,
        deadline: None,
        time_limit: None,
        user_estimate: None,
        elastic: None,
        checkpoint: Checkpoint::default(),
        sharing: Sharing::Never,
        profile: None,
        work: None,
        ..JobSpec::default()
    }
}

pub(super) fn gang(count: u32, gpu: u32) -> Gang {
    Gang {
        role: Role::Worker,
        count,
        demand: Demand { gpu: Milli(gpu), cpu: Milli(1000), ..Demand::default() },
    }
}

pub(super) fn submit(id: u32, spec: JobSpec) -> Event {
    Event::Submitted { job: JobId(id), spec: Arc::new(spec) }
}

pub(super) fn started(lease: u32) -> Event {
    Event::Started { lease: LeaseId(lease) }
}

pub(super) fn finished(lease: u32, done: u64) -> Event {
    stopped(lease, Outcome::Finished, done, 0)
}

pub(super) fn stopped(lease: u32, outcome: Outcome, done: u64, lost: u64) -> Event {
    Event::Stopped {
        lease: LeaseId(lease),
        outcome,
        done: Span::from_secs(done),
        lost: Span::from_secs(lost),
    }
}

/// Whole devices of one node for one task.
pub(super) fn whole(node: u32, devices: &[u32]) -> Placement {
    place(node, 1, devices.iter().map(|id| (*id, Share::Whole)))
}

/// A part of one device.
pub(super) fn fraction(node: u32, device: u32, compute: u32) -> Placement {
    let (compute, mem) = (Milli(compute), Mib(compute));
    place(node, 1, [(device, Share::Fraction { compute, mem })])
}

/// Tasks without GPU.
pub(super) fn cpu(node: u32, tasks: u32) -> Placement {
    place(node, tasks, [])
}

fn place(node: u32, tasks: u32, shares: impl IntoIterator<Item = (u32, Share)>) -> Placement {
    let slice = |(device, share)| Slice { device: DeviceId(device), share };
    let part = Part {
        gang: 0,
        node: NodeId(node),
        tasks,
        cpu: Milli(1000 * tasks),
        mem: Mib(0),
        slices: shares.into_iter().map(slice).collect(),
    };
    Placement { parts: vec![part] }
}
