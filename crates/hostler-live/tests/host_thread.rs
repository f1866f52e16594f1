//! The host on its thread, over SQLite: many at once, a stop in between, and a store that fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_core::plan::Plan;
use hostler_core::policy::{Cadence, Policy, Wake};
use hostler_core::solve::Solve;
use hostler_core::target::Solution;
use hostler_core::units::Time;
use hostler_core::view::View;
use hostler_live::host::{
    Answer, Command, Experience, Host, HostError, HostHandle, HostThread, JobFilter, Principal,
    Settings, hash_of,
};
use hostler_live::job::{JobRequest, JobState};
use hostler_live::server::rate::Rate;
use hostler_live::server::{self, Certificate};
use hostler_live::store::memory::{Disk, Failure};
use hostler_live::store::{self, HistoryFilter, Role, Store, StoreError};
use hostler_live::wire::{
    EndNotes, FromAgent, LeaseReport, Machine, PROTOCOL, Stage, TaskExit, ToAgent,
};

/// Longer than anything here takes, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn policies(text: &str) -> Result<Box<dyn Policy>, String> {
    hostler_policies::builtin().from_toml(text).map_err(|fault| fault.to_string())
}

fn start(store: Box<dyn Store>) -> (HostHandle, HostThread) {
    let host = Host::open(
        store,
        Arc::new(policies),
        Settings::new("kind = \"fifo-backfill\"\nestimate = \"user\"\n"),
        Time::ZERO,
    )
    .unwrap();
    HostThread::start(host).unwrap()
}

fn submit() -> Command {
    let command = vec!["true".to_owned()];
    let request = Box::new(JobRequest { command, gpus: 1.0, ..JobRequest::default() });
    Command::Submit { request, key: None, tenant: None }
}

fn machine() -> Machine {
    Machine {
        name: "n1".to_owned(),
        version: String::new(),
        address: String::new(),
        cpu_milli: 1000,
        mem_mib: 1000,
        gpu_model: "V100".to_owned(),
        gpu_mem_mib: 1000,
        gpus: 8,
        rack: 0,
        ..Machine::default()
    }
}

/// An agent whose every task ends well at once.
async fn agent(handle: HostHandle, token: u32) {
    let link = handle.connect_agent(token, PROTOCOL, machine(), Vec::new(), None).await;
    let mut link = link.unwrap();
    let voice = link.voice();
    while let Some(message) = link.messages.recv().await {
        if let ToAgent::Start(order) = message {
            let exits = vec![TaskExit { rank: 0, code: Some(0), signal: None }];
            let stage = Stage::Ended {
                exits,
                interrupted: false,
                gpu_milli: None,
                notes: EndNotes::default(),
            };
            let report = FromAgent::Report(LeaseReport { lease: order.lease, stage });
            if voice.said(report).await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn jobs_of_many_callers_run_and_are_in_the_history_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (handle, thread) = start(store::open(folder.path(), None).unwrap());
    let daemon = Principal::daemon();
    let (_, secret) =
        handle.create_token(&daemon, Role::Agent, "default", "n1", true, None).await.unwrap();
    let (by, one_time) = handle.authenticate(secret.reveal()).unwrap();
    assert!(one_time && by.role == Role::Agent);
    let token = handle.enrol(&by, "n1", &hash_of("own")).await.unwrap();
    assert_eq!(handle.authenticate(secret.reveal()), None, "a one-time token is spent");
    let mut changes = handle.changes(None);
    tokio::spawn(agent(handle.clone(), token));
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let handle = handle.clone();
            tokio::spawn(async move { handle.command(&Principal::daemon(), submit()).await })
        })
        .collect();
    let mut numbers = Vec::new();
    for caller in callers {
        let Ok(Answer::Submitted { jobs, .. }) = caller.await.unwrap() else { panic!() };
        numbers.extend(jobs);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=100).collect::<Vec<u32>>());
    loop {
        let filter = JobFilter { limit: 1, ..JobFilter::default() };
        if handle.read(move |host| host.jobs(&filter).is_empty()).await.unwrap() {
            break;
        }
        changes.coming.recv().await.unwrap();
    }
    handle.stop().await;
    thread.join().unwrap();
    assert!(matches!(handle.command(&daemon, submit()).await, Err(HostError::Stopped { .. })));
    drop(handle);

    let (handle, thread) = start(store::open(folder.path(), None).unwrap());
    let finished = Some(JobState::Finished);
    let filter = HistoryFilter { state: finished, limit: 1000, ..HistoryFilter::default() };
    assert_eq!(handle.history(filter).await.unwrap().len(), 100);
    assert_eq!(handle.job(7).await.unwrap().unwrap().exit_code, Some(0));
    let answer = handle.command(&daemon, submit()).await.unwrap();
    assert_eq!(answer, Answer::Submitted { jobs: vec![101], again: false });
    handle.stop().await;
    thread.join().unwrap();
}

#[tokio::test]
async fn a_store_that_fails_stops_the_daemon_and_loses_nothing_acknowledged() {
    let disk = Disk::default();
    let (handle, thread) = start(Box::new(disk.store()));
    let daemon = Principal::daemon();
    handle.command(&daemon, submit()).await.unwrap();
    disk.fail_next(Some(Failure::Before));
    let fault = handle.command(&daemon, submit()).await.unwrap_err();
    assert!(matches!(fault, HostError::Store(_)), "{fault:?}");
    assert!(matches!(thread.join(), Err(HostError::Store(_))));
    let after = handle.command(&daemon, submit()).await.unwrap_err();
    assert!(matches!(after, HostError::Store(_)), "{after:?}");

    let (handle, thread) = start(Box::new(disk.store()));
    assert!(handle.job(1).await.unwrap().is_some());
    assert_eq!(handle.job(2).await.unwrap(), None);
    handle.stop().await;
    thread.join().unwrap();
}

#[tokio::test]
async fn an_idle_daemon_that_is_not_the_only_writer_any_more_stops() {
    let disk = Disk::default();
    let (handle, thread) = start(Box::new(disk.store()));
    let mut fault = handle.fault();
    disk.take_over();
    let told = tokio::time::timeout(PATIENCE, fault.wait_for(Option::is_some)).await;
    let told = told.expect("it is told in time").unwrap().clone();
    assert!(matches!(told, Some(HostError::Store(StoreError::Lost { .. }))), "{told:?}");
    assert!(matches!(thread.join(), Err(HostError::Store(_))));
}

/// A policy whose solver waits until it may answer, and panics when nobody lets it.
struct Slow {
    policy: Box<dyn Policy>,
    gate: Gate,
}

type Gate = Arc<Mutex<Receiver<()>>>;

struct SlowSolver {
    solver: Box<dyn Solve>,
    gate: Gate,
}

impl Policy for Slow {
    fn cadence(&self) -> Cadence {
        self.policy.cadence()
    }

    fn solver(&self) -> Option<Box<dyn Solve>> {
        let (solver, gate) = (self.policy.solver()?, Arc::clone(&self.gate));
        Some(Box::new(SlowSolver { solver, gate }))
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        self.policy.decide(view, wake, plan);
    }
}

impl Solve for SlowSolver {
    fn solve(&mut self, view: &View<'_>) -> Solution {
        self.gate.lock().unwrap().recv().expect("somebody lets it answer");
        self.solver.solve(view)
    }
}

/// A host whose solver waits, and what lets it answer once.
fn start_slow() -> (HostHandle, HostThread, Sender<()>) {
    let (open, gate) = channel();
    let gate = Arc::new(Mutex::new(gate));
    let builder = move |text: &str| -> Result<Box<dyn Policy>, String> {
        let policy = policies(text)?;
        Ok(Box::new(Slow { policy, gate: Arc::clone(&gate) }))
    };
    let settings = Settings::new("kind = 'max-min-fairness'");
    let store = Box::new(Disk::default().store());
    let host = Host::open(store, Arc::new(builder), settings, Time::ZERO).unwrap();
    let (handle, thread) = HostThread::start(host).unwrap();
    (handle, thread, open)
}

async fn with_agent(handle: &HostHandle) {
    let daemon = Principal::daemon();
    let made = handle.create_token(&daemon, Role::Agent, "default", "n1", false, None).await;
    tokio::spawn(agent(handle.clone(), made.unwrap().0));
    while handle.read(|host| host.nodes().is_empty()).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn everybody_is_served_while_a_solver_works() {
    let (handle, thread, open) = start_slow();
    with_agent(&handle).await;
    let (mut changes, daemon) = (handle.changes(None), Principal::daemon());
    for _ in 0..3 {
        let submitted = handle.command(&daemon, submit());
        tokio::time::timeout(PATIENCE, submitted).await.expect("nobody waits").unwrap();
    }
    let looked = handle.read(|host| (host.state().solve_asked(), host.state().solves().0)).await;
    let (asked, solves) = looked.unwrap();
    assert!(asked.is_some() && solves == 0, "the solver is at work: {asked:?}, {solves} solves");
    (0..100).for_each(|_| open.send(()).unwrap());
    while handle.read(|host| host.state().solves().0 == 0).await.unwrap() {
        let change = tokio::time::timeout(PATIENCE, changes.coming.recv()).await;
        change.expect("a solution starts jobs in time").unwrap();
    }
    handle.stop().await;
    thread.join().unwrap();
}

#[tokio::test]
async fn a_solver_that_panics_leaves_the_daemon_alive() {
    let (handle, thread, open) = start_slow();
    with_agent(&handle).await;
    drop(open);
    let daemon = Principal::daemon();
    handle.command(&daemon, submit()).await.unwrap();
    let nobody = |host: &Host| host.policy_fault().is_some_and(|broke| broke.nobody_decides);
    let told = async {
        while !handle.read(nobody).await.unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("it is told in time");
    // Another one decides as soon as a person says so.
    let settings = "kind = 'fifo'".to_owned();
    handle.command(&daemon, Command::SetPolicy { settings }).await.unwrap();
    let started = async {
        while handle.read(|host| !host.state().pending().is_empty()).await.unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, started).await.expect("the job starts");
    assert!(!handle.read(nobody).await.unwrap());
    handle.stop().await;
    thread.join().unwrap();
}

#[tokio::test]
async fn a_panic_on_its_thread_is_told_to_everybody_who_waits() {
    let (handle, thread) = start(Box::new(Disk::default().store()));
    let mut fault = handle.fault();
    let asked = handle.read(|_| panic!("a part of the host is broken")).await;
    assert!(asked.is_err());
    let told = tokio::time::timeout(PATIENCE, fault.wait_for(Option::is_some)).await;
    let told = told.expect("it is told in time").unwrap().clone();
    assert!(told.unwrap().to_string().contains("panicked"));
    let after = handle.command(&Principal::daemon(), submit()).await.unwrap_err();
    assert!(after.to_string().contains("panicked"), "{after}");
    assert!(matches!(thread.join(), Err(HostError::Stopped { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_whose_host_panics_ends_with_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let settings = server::Settings {
        engine: server::Engine::Agents,
        experience: Experience::default(),
        data: folder.path().to_owned(),
        store: None,
        new_store: false,
        snapshot_every: None,
        notices: server::notices::Settings::default(),
        listen: ([127, 0, 0, 1], 0).into(),
        local: None,
        certificate: Certificate::None,
        rate: Rate { per_second: 10.0, burst: 10.0 },
        host: Settings::new("kind = \"fifo-backfill\"\nestimate = \"user\"\n"),
        policies: Arc::new(policies),
    };
    let running = server::start(settings).await.unwrap();
    let handle = running.host().clone();
    let ended = tokio::spawn(running.until_told_to_stop());
    assert!(handle.read(|_| panic!("a part of the host is broken")).await.is_err());
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("it ends in time");
    assert!(ended.unwrap().unwrap_err().to_string().contains("panicked"));
}
