//! Who is led inside which job, and by which agent: the daemon's side without sockets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::Arc;

use hostler_core::policy::Policy;
use hostler_core::units::Time;
use hostler_live::host::{
    Answer, Command, Host, HostError, HostHandle, HostThread, Principal, Settings,
};
use hostler_live::job::{JobRequest, JobState};
use hostler_live::person::Person;
use hostler_live::store::Role;
use hostler_live::store::memory::Disk;
use hostler_live::stream::{ABILITY, StreamKind, StreamRequest};
use hostler_live::wire::{FromAgent, LeaseReport, Machine, PROTOCOL, Stage, StreamOrder, ToAgent};
use tokio::sync::mpsc;

fn machine(abilities: &[&str]) -> Machine {
    Machine {
        name: "n1".to_owned(),
        address: String::new(),
        cpu_milli: 8000,
        mem_mib: 1000,
        gpu_model: "V100".to_owned(),
        gpu_mem_mib: 1000,
        gpus: 8,
        rack: 0,
        abilities: abilities.iter().map(|word| (*word).to_owned()).collect(),
        ..Machine::default()
    }
}

/// An agent on which everything runs; passes on which streams it is asked for.
async fn agent(handle: HostHandle, token: u32, can: &[&str]) -> mpsc::Receiver<StreamOrder> {
    let link = handle.connect_agent(token, PROTOCOL, machine(can), Vec::new(), None).await;
    let mut link = link.unwrap();
    let (sender, orders) = mpsc::channel(8);
    tokio::spawn(async move {
        let voice = link.voice();
        while let Some(message) = link.messages.recv().await {
            match message {
                ToAgent::Start(order) => {
                    let report = LeaseReport { lease: order.lease, stage: Stage::Running };
                    voice.said(FromAgent::Report(report)).await.unwrap();
                }
                ToAgent::OpenStream(order) => sender.send(*order).await.unwrap(),
                _ => {}
            }
        }
    });
    orders
}

fn policies(text: &str) -> Result<Box<dyn Policy>, String> {
    hostler_policies::builtin().from_toml(text).map_err(|fault| fault.to_string())
}

fn start() -> (HostHandle, HostThread) {
    let store = Box::new(Disk::default().store());
    let settings = Settings::new("kind = 'fifo'");
    let host = Host::open(store, Arc::new(policies), settings, Time::ZERO).unwrap();
    HostThread::start(host).unwrap()
}

fn open(job: u32, rank: u32) -> Command {
    let what = StreamKind::Attach { known: None };
    Command::OpenStream { job, number: 42, request: StreamRequest { rank, counts: false, what } }
}

fn person(name: &str, uid: u32) -> Person {
    Person { name: name.to_owned(), uid: Some(uid) }
}

async fn running(handle: &HostHandle, by: &Principal) -> u32 {
    let command = vec!["true".to_owned()];
    let request = Box::new(JobRequest { command, ..JobRequest::default() });
    let submit = Command::Submit { request, key: None, tenant: None };
    let Ok(Answer::Submitted { jobs, .. }) = handle.command(by, submit).await else { panic!() };
    let job = jobs[0];
    while handle.job(job).await.unwrap().unwrap().state != JobState::Running {
        tokio::task::yield_now().await;
    }
    job
}

#[tokio::test]
async fn the_agent_of_a_running_job_is_asked_for_those_who_may_end_it() {
    let (handle, thread) = start();
    let admin = Principal::daemon();
    let (token, _) =
        handle.create_token(&admin, Role::Agent, "default", "n1", false, None).await.unwrap();
    let mut orders = agent(handle.clone(), token, &[ABILITY]).await;
    let job = running(&handle, &admin).await;
    let answer = handle.command(&admin, open(job, 0)).await;
    assert_eq!(answer, Ok(Answer::Stream { token }));
    assert_eq!(orders.recv().await.unwrap().number, 42);
    let none = handle.command(&admin, open(job, 5)).await;
    assert!(matches!(none, Err(HostError::WrongState { .. })), "{none:?}");
    let viewer = Principal { role: Role::Viewer, ..admin.clone() };
    let refused = handle.command(&viewer, open(job, 0)).await;
    assert!(matches!(refused, Err(HostError::Forbidden { .. })), "{refused:?}");
    let ada = Principal { role: Role::User, person: Some(person("ada", 1001)), ..admin.clone() };
    let own = running(&handle, &ada).await;
    assert!(handle.command(&ada, open(own, 0)).await.is_ok());
    let bob = Principal { person: Some(person("bob", 1002)), ..ada.clone() };
    let refused = handle.command(&bob, open(own, 0)).await;
    assert!(matches!(refused, Err(HostError::OtherPerson { .. })), "{refused:?}");
    let nobody = Principal { person: None, ..ada.clone() };
    let refused = handle.command(&nobody, open(own, 0)).await;
    assert!(matches!(refused, Err(HostError::OtherPerson { .. })), "{refused:?}");
    let (tenant, role) = ("other".to_owned(), Role::User);
    let stranger = Principal { role, tenant, ..admin.clone() };
    let refused = handle.command(&stranger, open(job, 0)).await;
    assert!(matches!(refused, Err(HostError::Unknown { .. })), "{refused:?}");
    handle.stop().await;
    thread.join().unwrap();
}

#[tokio::test]
async fn an_agent_of_an_earlier_release_is_not_asked() {
    let (handle, thread) = start();
    let admin = Principal::daemon();
    let (token, _) =
        handle.create_token(&admin, Role::Agent, "default", "n1", false, None).await.unwrap();
    let mut orders = agent(handle.clone(), token, &[]).await;
    let job = running(&handle, &admin).await;
    let refused = handle.command(&admin, open(job, 0)).await.unwrap_err();
    assert!(refused.to_string().contains("earlier release"), "{refused}");
    // It learns to, without being another node.
    let mut able = agent(handle.clone(), token, &[ABILITY]).await;
    let job = running(&handle, &admin).await;
    assert_eq!(handle.command(&admin, open(job, 0)).await, Ok(Answer::Stream { token }));
    assert!(able.recv().await.is_some());
    assert!(orders.try_recv().is_err());
    assert_eq!(handle.read(|host| host.nodes().len()).await.unwrap(), 1);
    handle.stop().await;
    thread.join().unwrap();
}
