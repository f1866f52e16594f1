//! What is shown of jobs: since when, how far, and what not to everybody.

use hostler_live::api::{Enrolled, Explanation, JobPage, MadeToken, NewToken};
use hostler_live::client::Method;
use hostler_live::host::{AgentLink, hash_of};
use hostler_live::job::{JobState, JobView};
use hostler_live::store::Role;
use hostler_live::wire::{FromAgent, LeaseReport, Machine, PROTOCOL, Stage, ToAgent};
use serde_json::{Value, json};

use crate::daemon::{Daemon, ask, job, runtime, submit};

/// A node with one GPU; its agent does what the test says.
pub fn join(daemon: &Daemon) -> AgentLink {
    let (role, name) = (Role::Agent, "n1".to_owned());
    let new = NewToken { role, name, tenant: None, new_tenant: false, unix_user: None };
    let once: MadeToken = daemon.admin().post("/tokens", &new).expect("the daemon works");
    let node = json!({ "node": "n1", "hash": hash_of("own") });
    let own: Enrolled =
        daemon.client(&once.token).post("/agents/enrol", &node).expect("the daemon works");
    let machine = Machine {
        name: "n1".to_owned(),
        version: String::new(),
        address: String::new(),
        cpu_milli: 4000,
        mem_mib: 1000,
        gpu_model: "V100".to_owned(),
        gpu_mem_mib: 1000,
        gpus: 1,
        rack: 0,
        ..Machine::default()
    };
    let host = daemon.running().host();
    runtime()
        .block_on(host.connect_agent(own.id, PROTOCOL, machine, Vec::new(), None))
        .expect("the daemon works")
}

#[test]
fn lists_show_no_environment() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let mut request = job();
    request["env"] = json!({ "API_KEY": "secret" });
    let made: Value = admin.post("/jobs", &request).unwrap();
    let path = format!("/jobs/{}", made["first"]);
    let page: JobPage = admin.get("/jobs").unwrap();
    assert_eq!(page.jobs[0].request.env.len(), 0);
    let shown: JobView = admin.get(&path).unwrap();
    assert_eq!(shown.request.env["API_KEY"], "secret");
    assert_eq!(shown.request.command, page.jobs[0].request.command);
    let _: JobView = admin.post(&format!("{path}/cancel"), &()).unwrap();
    let page: JobPage = admin.get("/history").unwrap();
    assert_eq!((page.jobs.len(), page.jobs[0].request.env.len()), (1, 0));
    let shown: JobView = admin.get(&path).unwrap();
    assert_eq!(shown.request.env["API_KEY"], "secret");
}

#[test]
fn a_job_is_explained_since_it_stands_where_it_stands() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let _link = join(&daemon);
    let _first = submit(&mut admin);
    let second = submit(&mut admin);
    let explain = format!("/jobs/{second}/explain");
    let waits: Explanation = admin.get(&explain).unwrap();
    assert_eq!(waits.state, JobState::Queued);
    let held: JobView = admin.post(&format!("/jobs/{second}/hold"), &()).unwrap();
    assert_eq!(held.state, JobState::Held);
    let now_held: Explanation = admin.get(&explain).unwrap();
    assert!(now_held.since > waits.since, "{} {}", now_held.since, waits.since);
}

#[test]
fn a_job_that_got_further_is_not_called_unchanged() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let mut link = join(&daemon);
    let path = format!("/jobs/{}", submit(&mut admin));
    let voice = link.voice();
    runtime().block_on(async {
        let lease = loop {
            match link.messages.recv().await.unwrap() {
                ToAgent::Start(order) => break order.lease,
                _ => continue,
            }
        };
        let report = LeaseReport { lease, stage: Stage::Running };
        voice.said(FromAgent::Report(report)).await.unwrap();
        let progress = FromAgent::Progress { lease, step: 1, total: None, saved: false };
        voice.said(progress).await.unwrap();
    });
    let shown = |etag: &str| {
        let known = [("if-none-match", etag)];
        ask(&mut daemon.admin(), Method::GET, &path, &known, None)
    };
    let before = shown("none");
    let view: JobView = serde_json::from_slice(&before.body).unwrap();
    assert_eq!((view.state, view.steps_done), (JobState::Running, Some(1)));
    let etag = before.etag.unwrap();
    assert_eq!(shown(&etag).status, 304);
    let lease = hostler_core::id::LeaseId(0);
    let progress = FromAgent::Progress { lease, step: 2, total: None, saved: false };
    runtime().block_on(voice.said(progress)).unwrap();
    let after = shown(&etag);
    assert_eq!(after.status, 200);
    let view: JobView = serde_json::from_slice(&after.body).unwrap();
    assert_eq!(view.steps_done, Some(2));
    // A change is for the version of the job, however far it is.
    let known = [("if-match", etag.as_str())];
    let cancel = format!("{path}/cancel");
    assert_eq!(ask(&mut admin, Method::POST, &cancel, &known, None).status, 200);
}
