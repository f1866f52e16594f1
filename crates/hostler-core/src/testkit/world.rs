//! A tiny world: every fact and every decision is written down by the test.

use std::sync::{Arc, Mutex};

use super::facts::{gpu_model, submit};
use super::spec::{asks, nodes};
use super::text::{decided, jobs_of};
use crate::ability::Abilities;
use crate::cluster::{NodeSpec, Power, Tenant};
use crate::decision::{Decision, StopHow};
use crate::engine::{Engine, Recorder};
use crate::event::Event;
use crate::id::{JobId, LeaseId, NodeId, TenantId};
use crate::job::Job;
use crate::placement::{Lease, Placement};
use crate::plan::Plan;
use crate::policy::{Policy, Wake};
use crate::predict::Predict;
use crate::reason::Reason;
use crate::record::Record;
use crate::state::ClusterState;
use crate::units::Time;
use crate::view::View;
use crate::watch::Watch;

/// Something that the test does in the place of a policy.
pub(crate) type Deed = Box<dyn FnOnce(&View<'_>, &mut Plan<'_>) + Send>;

/// What the policy does when it is asked next.
pub(crate) enum Act {
    Start(u32, Placement),
    Preempt(u32),
    Resize(u32, Placement),
    Reject(u32),
    Sleep(u32),
    Do(Deed),
}

impl Act {
    pub(crate) fn new(deed: impl FnOnce(&View<'_>, &mut Plan<'_>) + Send + 'static) -> Act {
        Act::Do(Box::new(deed))
    }
}

#[derive(Default)]
struct Script(Arc<Mutex<Vec<Act>>>);

impl Policy for Script {
    fn decide(&mut self, view: &View<'_>, _wake: Wake, plan: &mut Plan<'_>) {
        let acts = std::mem::take(&mut *self.0.lock().unwrap());
        for act in acts {
            match act {
                Act::Start(job, placement) => {
                    plan.start(JobId(job), placement).unwrap();
                }
                Act::Preempt(lease) => {
                    plan.stop(LeaseId(lease), StopHow::Kill).unwrap();
                }
                Act::Resize(lease, placement) => plan.resize(LeaseId(lease), placement).unwrap(),
                Act::Reject(job) => plan.turn_away(JobId(job), Reason::NoSuchModel).unwrap(),
                Act::Sleep(node) => plan.set_power(NodeId(node), Power::Sleeping).unwrap(),
                Act::Do(deed) => deed(view, plan),
            }
        }
    }
}

/// An engine and the log that it writes.
pub(crate) struct World<Watcher = ()> {
    pub(crate) engine: Engine<Watcher>,
    acts: Arc<Mutex<Vec<Act>>>,
    log: Arc<Mutex<Vec<Record>>>,
}

impl World {
    /// A cluster as [`nodes`] reads it, with a policy that does what the test says.
    pub(crate) fn of(cluster: &str) -> World {
        World::build((), nodes(cluster), 2)
    }

    /// A cluster with a policy of its own.
    pub(crate) fn with_policy(cluster: &str, policy: impl Policy + 'static) -> World {
        World::made((), nodes(cluster), 2, (Box::new(policy), None))
    }

    /// A cluster with a policy and a predictor.
    pub(crate) fn with_predictor(cluster: &str, predict: impl Predict + 'static) -> World {
        let script = Script::default();
        let acts = Arc::clone(&script.0);
        let world = World::made((), nodes(cluster), 2, (Box::new(script), Some(Box::new(predict))));
        World { acts, ..world }
    }
}

impl<Watcher: Watch> World<Watcher> {
    /// Nodes with so many GPUs each, all of model 0.
    pub(crate) fn new(watch: Watcher, gpus: &[u32]) -> World<Watcher> {
        let texts: Vec<String> = gpus.iter().map(u32::to_string).collect();
        World::build(watch, nodes(&texts.join("|")), 1)
    }

    fn build(watch: Watcher, nodes: Vec<NodeSpec>, models: u32) -> World<Watcher> {
        let script = Script::default();
        let acts = Arc::clone(&script.0);
        let world = World::made(watch, nodes, models, (Box::new(script), None));
        World { acts, ..world }
    }

    fn made(
        watch: Watcher,
        nodes: Vec<NodeSpec>,
        models: u32,
        (policy, predict): (Box<dyn Policy>, Option<Box<dyn Predict>>),
    ) -> World<Watcher> {
        let log: Arc<Mutex<Vec<Record>>> = Arc::default();
        let kept = Arc::clone(&log);
        let recorder: Recorder =
            Box::new(move |record: &Record| kept.lock().unwrap().push(record.clone()));
        let mut engine = Engine::new(policy, watch).with_recorder(recorder);
        if let Some(predict) = predict {
            engine = engine.with_predictor(predict);
        }
        let mut world = World { engine, acts: Arc::default(), log };
        let tenant = |id: u32, name: &str| Event::TenantAdded {
            tenant: TenantId(id),
            spec: Tenant::named(name),
        };
        let mut events: Vec<Event> = (0..models).map(gpu_model).collect();
        events.extend([tenant(0, "red"), tenant(1, "blue")]);
        let nodes = nodes.into_iter().enumerate();
        events.extend(nodes.map(|(id, spec)| Event::NodeUp { node: NodeId(id as u32), spec }));
        world.step(0, events, vec![]);
        world
    }

    /// Facts of the second `at`, then what the policy does about them.
    pub(crate) fn step(&mut self, at: u64, events: Vec<Event>, acts: Vec<Act>) -> Vec<Decision> {
        self.step_at(Time::from_secs(at), events, acts)
    }

    /// The same, to the microsecond. All that the state keeps is checked against its facts.
    pub(crate) fn step_at(
        &mut self,
        at: Time,
        mut events: Vec<Event>,
        acts: Vec<Act>,
    ) -> Vec<Decision> {
        if !acts.is_empty() {
            events.push(Event::RoundEnded);
        }
        *self.acts.lock().unwrap() = acts;
        let decisions = self.engine.step(at, events).unwrap();
        assert!(self.acts.lock().unwrap().is_empty(), "the policy was asked");
        self.check();
        decisions
    }

    /// Facts of a second, and the decisions on them as text.
    pub(crate) fn told(&mut self, at: u64, events: Vec<Event>) -> String {
        decided(&self.step(at, events, vec![]))
    }

    /// Jobs that come together, the first with this number.
    pub(crate) fn submit(&mut self, at: u64, first: u32, specs: &[&str]) {
        let jobs = (first..).zip(specs).map(|(id, text)| submit(id, asks(text))).collect();
        self.step(at, jobs, vec![]);
    }

    /// Starts a job by itself, and has the start confirmed.
    pub(crate) fn run(&mut self, at: u64, job: u32, placement: Placement) -> u32 {
        let lease = self.state().next_lease();
        self.step(at, vec![], vec![Act::Start(job, placement)]);
        self.step(at, vec![Event::Started { lease }], vec![]);
        lease.0
    }

    /// What the policy is to do when it is asked next, by whoever asks.
    pub(crate) fn script(&mut self, acts: Vec<Act>) {
        *self.acts.lock().unwrap() = acts;
    }

    pub(crate) fn state(&self) -> &ClusterState {
        self.engine.state()
    }

    pub(crate) fn watch(&self) -> &Watcher {
        self.engine.watch()
    }

    pub(crate) fn job(&self, id: u32) -> &Job {
        self.state().job(JobId(id)).expect("the job is not over")
    }

    pub(crate) fn lease(&self, id: u32) -> &Lease {
        self.state().lease(LeaseId(id)).expect("the lease has not ended")
    }

    /// A line for each job that is not over.
    pub(crate) fn jobs(&self) -> String {
        jobs_of(self.state())
    }

    /// Everything that was logged so far.
    pub(crate) fn log(&self) -> Vec<Record> {
        self.log.lock().unwrap().clone()
    }

    /// Panics when an index does not follow from the facts, or when saved facts give another state.
    pub(crate) fn check(&self) {
        self.state().audit();
        let mut other = Engine::new(Box::new(Script::default()), ());
        other.restore(self.engine.snapshot());
        other.state().audit();
        assert!(other.state() == self.state(), "saved facts give another state");
    }

    /// Panics when the log does not fold to the state.
    pub(crate) fn check_log(&self) {
        let mut other = Engine::new(Box::new(Script::default()), ());
        self.log().iter().for_each(|record| other.fold(record));
        assert!(other.state() == self.state(), "the log folds to another state");
    }

    pub(crate) fn set_abilities(&mut self, at: u64, change: impl FnOnce(&mut Abilities)) {
        let mut abilities = self.state().abilities();
        change(&mut abilities);
        self.step(at, vec![Event::AbilitiesChanged { abilities }], vec![]);
    }
}
