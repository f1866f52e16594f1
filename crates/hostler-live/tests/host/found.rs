//! A driver that finds nodes and jobs by itself, as one of another cluster manager would.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use hostler_core::ability::Abilities;
use hostler_core::decision::StopHow;
use hostler_core::event::{Event, Outcome};
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::units::{Span, Time};
use hostler_live::driver::{Driver, NodeStatus, OutputRead, StreamOpen, Word};
use hostler_live::host::{
    Command, Desk, Effect, Experience, FoundJob, Host, HostError, Input, JobFilter, Principal,
    Settings,
};
use hostler_live::job::{JobRequest, JobState};
use hostler_live::store::memory::Disk;
use hostler_live::store::{HistoryFilter, JobOrigin, Reader};
use hostler_live::wire::Machine;

/// The other cluster manager: it outlives the daemon.
#[derive(Clone, Default)]
struct Manager(Arc<Mutex<Cluster>>);

#[derive(Default)]
struct Cluster {
    nodes: Vec<Machine>,
    jobs: BTreeMap<String, There>,
    /// Starts and stops that it was asked for, in order.
    orders: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum There {
    Waiting,
    Running(LeaseId),
    Ended(Outcome),
}

impl Manager {
    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.0.lock().unwrap()
    }

    fn put(&self, job: &str, there: There) {
        self.cluster().jobs.insert(job.to_owned(), there);
    }
}

/// Looks at everything on every tick and has no memory at all. Its manager cannot fail between an
/// order and the commit, so that orders need not wait as effects.
struct Finder(Manager);

impl Finder {
    fn found(&self, desk: &mut Desk, by: &str, there: There) {
        let request =
            JobRequest { name: format!("job of {by}"), gpus: 1.0, ..JobRequest::default() };
        let (tenant, user) = ("physics".to_owned(), "ada".to_owned());
        let found = desk
            .find_job(FoundJob {
                by: by.to_owned(),
                tenant,
                user,
                request,
                submitted: None,
                array: None,
            })
            .unwrap();
        let Some(job) = found else {
            if !matches!(there, There::Ended(_)) {
                self.0.put(by, There::Ended(Outcome::Interrupted));
            }
            return;
        };
        let lease = desk.state().job(job).unwrap().lease();
        match (there, lease) {
            (There::Waiting, None) => {}
            // The daemon was killed before the order left.
            (There::Waiting, Some(lease)) => self.order(by, lease),
            (There::Running(lease), _) => desk.fact(Event::Started { lease }),
            (There::Ended(outcome), Some(lease)) => {
                let known = desk.state().lease(lease).unwrap();
                let checkpoint = desk.state().job(job).unwrap().spec.checkpoint;
                let done = known.believed_done(checkpoint, desk.now());
                let stopped = Event::Stopped { lease, outcome, done, lost: Span::ZERO };
                desk.fact(stopped.clone());
                // Told twice is told once.
                desk.fact(stopped);
            }
            (There::Ended(_), None) => desk.fact(Event::Cancelled { job }),
        }
    }

    fn order(&self, by: &str, lease: LeaseId) {
        self.0.cluster().orders.push(format!("start {by} {lease:?}"));
        self.0.put(by, There::Running(lease));
    }
}

fn called(desk: &Desk, lease: LeaseId) -> String {
    let job = desk.state().lease(lease).unwrap().job;
    desk.job_row(job).unwrap().origin.found().unwrap().to_owned()
}

impl Driver for Finder {
    fn abilities(&self) -> Abilities {
        Abilities { resize: false, power: false, repartition: false, ..Abilities::default() }
    }

    fn restore(&mut self, _: &mut Desk) {}

    fn runs(&self, _: &JobOrigin) -> bool {
        true
    }

    fn hear(&mut self, _: &mut Desk, _: Word) {}

    fn start(&mut self, desk: &mut Desk, lease: LeaseId) {
        self.order(&called(desk, lease), lease);
    }

    fn stop(&mut self, desk: &mut Desk, lease: LeaseId, _: StopHow) {
        let by = called(desk, lease);
        self.0.cluster().orders.push(format!("stop {by} {lease:?}"));
        self.0.put(&by, There::Ended(Outcome::Interrupted));
    }

    fn forget(&mut self, _: &mut Desk, lease: LeaseId) {
        self.0.cluster().orders.push(format!("forget {lease:?}"));
    }

    fn tick(&mut self, desk: &mut Desk) {
        let (nodes, jobs) = {
            let cluster = self.0.cluster();
            (cluster.nodes.clone(), cluster.jobs.clone())
        };
        for machine in nodes {
            if desk.node_row(&machine.name).is_none() {
                desk.check_machine(&machine).unwrap();
                desk.add_node(machine, None);
            }
        }
        jobs.iter().for_each(|(by, there)| self.found(desk, by, *there));
    }

    fn drain(&mut self, desk: &mut Desk, node: NodeId) {
        let name = &desk.state().node(node).spec.name;
        let draining = desk.node_row(name).unwrap().draining;
        desk.fact(Event::NodeDrain { node, draining });
    }

    fn revoked(&mut self, _: &mut Desk, _: u32) {}

    fn read_output(&mut self, _: &mut Desk, read: OutputRead) -> Result<(), HostError> {
        Err(HostError::Silent { node: read.node })
    }

    fn open_stream(&mut self, _: &mut Desk, open: StreamOpen) -> Result<u32, HostError> {
        Err(HostError::Silent { node: open.node })
    }

    fn node(&self, _: &Desk, _: NodeId) -> NodeStatus {
        NodeStatus { connected: true, ..NodeStatus::default() }
    }

    fn connected(&self) -> usize {
        1
    }
}

fn open(manager: &Manager, disk: &Disk, now: u64) -> Host {
    let builder =
        |text: &str| hostler_policies::builtin().from_toml(text).map_err(|fault| fault.to_string());
    let (driver, store) = (Box::new(Finder(manager.clone())), Box::new(disk.store()));
    let settings = Settings::new("kind = 'fifo'");
    let (experience, now) = (Experience::default(), Time::from_secs(now));
    Host::open_with(driver, store, Arc::new(builder), settings, experience, now).unwrap()
}

fn look(host: &mut Host, now: u64) {
    host.handle(Time::from_secs(now), vec![Input::Tick]).unwrap();
    host.state().audit();
}

fn states(host: &Host) -> Vec<(u32, String, JobState)> {
    let jobs = host.jobs(&JobFilter { limit: 10, ..JobFilter::default() });
    jobs.into_iter().map(|job| (job.id, job.name, job.state)).collect()
}

fn machine(name: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        version: String::new(),
        address: String::new(),
        cpu_milli: 8_000,
        mem_mib: 1_000,
        gpu_model: "V100".to_owned(),
        gpu_mem_mib: 16_000,
        gpus: 1,
        rack: 0,
        ..Machine::default()
    }
}

#[test]
fn a_job_that_was_found_is_one_like_all_others_and_survives_restarts() {
    let (manager, disk) = (Manager::default(), Disk::default());
    let mut host = open(&manager, &disk, 0);
    manager.cluster().nodes.push(machine("n1"));
    manager.put("a", There::Waiting);
    manager.put("b", There::Waiting);
    look(&mut host, 1);
    look(&mut host, 2);
    assert_eq!((host.node("n1").unwrap().health.as_str(), host.nodes().len()), ("up", 1));
    let found = |id, state| (id, format!("job of {}", ["a", "b"][id as usize - 1]), state);
    assert_eq!(states(&host), [found(1, JobState::Running), found(2, JobState::Queued)]);
    assert_eq!(host.job(1).unwrap().tenant, "physics");

    drop(host);
    let mut host = open(&manager, &disk, 3);
    assert_eq!(states(&host), [found(1, JobState::Running), found(2, JobState::Queued)]);
    manager.put("a", There::Ended(Outcome::Finished));
    look(&mut host, 4);
    look(&mut host, 5);
    assert_eq!(states(&host), [found(2, JobState::Running)]);
    let over = disk.store().history(&HistoryFilter { limit: 10, ..HistoryFilter::default() });
    let over = over.unwrap();
    assert_eq!(
        (over[0].state, over[0].facts.nodes.clone()),
        (JobState::Finished, vec!["n1".to_owned()])
    );
    assert_eq!(over[0].origin, JobOrigin::Found { by: "a".to_owned() });

    // The manager still lists the one that is over: it is not entered again.
    drop(host);
    let mut host = open(&manager, &disk, 6);
    look(&mut host, 7);
    assert_eq!(states(&host), [found(2, JobState::Running)]);
    assert!(open(&manager, &disk, 7).state() == host.state(), "memory and store differ");
    let orders = ["start a lease0", "forget lease0", "start b lease1"];
    assert_eq!(manager.cluster().orders, orders);
}

#[test]
fn a_job_that_was_found_is_stopped_once_and_ended_there_when_it_is_over_here() {
    let (manager, disk) = (Manager::default(), Disk::default());
    let mut host = open(&manager, &disk, 0);
    manager.cluster().nodes.push(machine("n1"));
    manager.put("a", There::Waiting);
    manager.put("b", There::Waiting);
    look(&mut host, 1);
    let mut cancel = |now, job| {
        let command = Box::new(Command::Cancel { job, version: None });
        let input = Input::Command { slot: 1, by: Principal::daemon(), command };
        let effects = host.handle(Time::from_secs(now), vec![input]).unwrap();
        effects.into_iter().any(|effect| matches!(effect, Effect::Reply(1, Ok(_))))
    };
    assert!(cancel(2, 2), "it waits and is over at once");
    assert!(cancel(2, 1), "it is being stopped");
    assert!(cancel(2, 1) || host.state().job(JobId(1)).is_none(), "once more changes nothing");
    look(&mut host, 3);
    look(&mut host, 4);
    assert_eq!(states(&host), []);
    let cluster = manager.cluster();
    assert!(cluster.jobs.values().all(|there| *there == There::Ended(Outcome::Interrupted)));
    assert_eq!(cluster.orders, ["start a lease0", "stop a lease0", "forget lease0"]);
}
