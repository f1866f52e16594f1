//! The host on its thread, over SQLite: many at once, a stop in between, and a store that fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::Arc;

use hostler_core::units::Time;
use hostler_live::host::{
    Answer, Command, Host, HostError, HostHandle, HostThread, JobFilter, Principal, Settings,
};
use hostler_live::job::{JobRequest, JobState};
use hostler_live::store::memory::{Disk, Failure};
use hostler_live::store::{self, HistoryFilter, Role, Store};
use hostler_live::wire::{FromAgent, LeaseReport, Machine, PROTOCOL, Stage, TaskExit, ToAgent};

fn start(store: Box<dyn Store>) -> (HostHandle, HostThread) {
    let builder = |text: &str| hostler_policies::from_toml(text).map_err(|fault| fault.to_string());
    let host = Host::open(store, Arc::new(builder), Settings::default(), Time::ZERO).unwrap();
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
        address: String::new(),
        cpu_milli: 1000,
        mem_mib: 1000,
        gpu_model: "V100".to_owned(),
        gpu_mem_mib: 1000,
        gpus: 8,
        rack: 0,
    }
}

/// An agent whose every task ends well at once.
async fn agent(handle: HostHandle, token: u32) {
    let link = handle.connect_agent(token, PROTOCOL, machine(), Vec::new()).await;
    let mut link = link.unwrap();
    let voice = link.voice();
    while let Some(message) = link.messages.recv().await {
        if let ToAgent::Start(order) = message {
            let exits = vec![TaskExit { rank: 0, code: Some(0), signal: None }];
            let stage = Stage::Ended { exits, interrupted: false };
            let report = FromAgent::Report(LeaseReport { lease: order.lease, stage });
            if voice.said(report).await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn jobs_of_many_callers_run_and_are_in_the_history_after_a_restart() {
    let folder = std::env::temp_dir().join(format!("hostler-thread-{}", std::process::id()));
    let (handle, thread) = start(store::open(&folder, None).unwrap());
    let daemon = Principal::daemon();
    let (_, secret) =
        handle.create_token(&daemon, Role::Agent, "default", "any", true).await.unwrap();
    let (by, one_time) = handle.authenticate(secret.reveal()).unwrap();
    assert!(one_time && by.role == Role::Agent);
    let (token, _) = handle.enrol(&by, "n1").await.unwrap();
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

    let (handle, thread) = start(store::open(&folder, None).unwrap());
    let finished = Some(JobState::Finished);
    let filter = HistoryFilter { state: finished, limit: 1000, ..HistoryFilter::default() };
    assert_eq!(handle.history(filter).await.unwrap().len(), 100);
    assert_eq!(handle.job(7).await.unwrap().unwrap().exit_code, Some(0));
    let answer = handle.command(&daemon, submit()).await.unwrap();
    assert_eq!(answer, Answer::Submitted { jobs: vec![101], again: false });
    handle.stop().await;
    thread.join().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
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
