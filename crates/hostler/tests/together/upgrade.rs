//! An agent of the release before with this daemon: it joins, runs jobs, and outlives the daemon's
//! replacement. It is played from its recorded messages, and understands the recorded ones only.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use hostler_live::api::{Enrolled, Enrolment, MadeToken, NewToken};
use hostler_live::client::{Access, Client};
use hostler_live::host::hash_of;
use hostler_live::store::Role;
use hostler_live::wire::{AGENT_PATH, PROTOCOL, PROTOCOL_OLDEST};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Message, WebSocket};

use crate::harness::{Cluster, processes, wait_for};

const SAID: &str = include_str!("../../../../testdata/wire/agent-1.jsonl");
const UNDERSTOOD: &str = include_str!("../../../../testdata/wire/daemon-1.jsonl");
const SECRET: &str = "the secret of an old agent";

fn recorded(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An agent of protocol 1.
struct Old {
    socket: WebSocket<TcpStream>,
}

impl Old {
    /// Lets a secret speak for the node.
    fn enrol(cluster: &Cluster) {
        let name = "old".to_owned();
        let new = NewToken {
            role: Role::Agent,
            name: name.clone(),
            tenant: None,
            new_tenant: false,
            unix_user: None,
        };
        let made: MadeToken = cluster.client().post("/tokens", &new).unwrap();
        let access = Access::new(&cluster.access().server.to_string(), &made.token, None).unwrap();
        let enrolment = Enrolment { node: name, hash: hash_of(SECRET) };
        let _: Enrolled = Client::new(access).unwrap().post("/agents/enrol", &enrolment).unwrap();
    }

    /// Connects and says hello with what it holds.
    fn connect(cluster: &Cluster, held: Value) -> Old {
        let mut old = Old::open(cluster);
        let mut hello = recorded(SAID).remove(0);
        hello["held"] = held;
        old.send(hello);
        old.hear("welcome");
        old.say("beat", |_| true, 0);
        old.hear("beat-seen");
        old
    }

    /// Connects.
    fn open(cluster: &Cluster) -> Old {
        let server = cluster.access().server.to_string();
        let address = server.trim_start_matches("http://");
        let mut request = format!("ws://{address}{AGENT_PATH}").into_client_request().unwrap();
        let bearer = format!("Bearer {SECRET}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        Old { socket }
    }

    fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).unwrap();
    }

    /// Says the first recorded message of this kind that fits, about a lease.
    fn say(&mut self, kind: &str, fits: impl Fn(&Value) -> bool, number: u64) {
        let mut all = recorded(SAID).into_iter();
        let found = all.find(|message| message["say"] == kind && fits(message));
        let mut message = found.unwrap_or_else(|| panic!("no {kind} is recorded"));
        for of in ["lease", "request"] {
            if message.get(of).is_some() {
                message[of] = number.into();
            }
        }
        self.send(message);
    }

    fn report(&mut self, stage: &str, lease: u64) {
        self.say("report", |message| message["stage"]["is"] == stage, lease);
    }

    /// The next message of this kind. All that come must be such as the agent knows.
    fn hear(&mut self, kind: &str) -> Value {
        wait_for(kind, || self.next().filter(|message| message["say"] == kind))
    }

    /// The next message, if one comes soon.
    fn next(&mut self) -> Option<Value> {
        let text = match self.socket.read() {
            Ok(Message::Text(text)) => text,
            Ok(_) => return None,
            Err(tungstenite::Error::Io(fault)) if fault.kind() == ErrorKind::WouldBlock => {
                return None;
            }
            Err(fault) => panic!("the connection broke: {fault}"),
        };
        let message: Value = serde_json::from_str(&text).unwrap();
        let mut known = recorded(UNDERSTOOD).into_iter();
        let known = known.find(|known| known["say"] == message["say"]);
        let known = known.unwrap_or_else(|| panic!("an old agent does not know {message}"));
        check_known(&message, &known, "");
        Some(message)
    }
}

/// Whether a message has no field, and no kind of value, that was not there.
fn check_known(message: &Value, known: &Value, place: &str) {
    match (message, known) {
        (Value::Object(fields), Value::Object(_)) if place.ends_with("/env") => {
            assert!(fields.values().all(Value::is_string), "{place}: {message}");
        }
        (Value::Object(fields), Value::Object(known)) => {
            for (name, value) in fields {
                let place = format!("{place}/{name}");
                let known = known.get(name).unwrap_or_else(|| panic!("{place} is not known"));
                check_known(value, known, &place);
            }
        }
        (Value::Array(items), Value::Array(known)) => {
            for item in items.iter().filter(|_| !known.is_empty()) {
                check_known(item, &known[0], place);
            }
        }
        // What may be left out is a number where it is not.
        (Value::Null | Value::Number(_), Value::Null | Value::Number(_))
        | (Value::String(_), Value::String(_))
        | (Value::Bool(_), Value::Bool(_)) => {}
        _ => panic!("{place}: {message} where there was {known}"),
    }
}

#[test]
fn an_agent_of_the_release_before_runs_jobs_over_a_new_daemon() {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    Old::enrol(&cluster);
    let mut old = Old::connect(&cluster, json!([]));
    let shown = cluster.text(&["nodes"]);
    assert!(shown.contains("old has an agent of an earlier release"), "{shown}");
    // A whole job, with its progress and output.
    std::fs::write(cluster.folder().join("job.sh"), "#!/bin/sh\n#SBATCH -G 1\ntrue\n").unwrap();
    let job = cluster.submit(&["job.sh"]);
    let order = old.hear("start");
    assert_eq!(
        (&order["job"], &order["script"]),
        (&job.into(), &"#!/bin/sh\n#SBATCH -G 1\ntrue\n".into())
    );
    let lease = order["lease"].as_u64().unwrap();
    old.report("starting", lease);
    old.report("running", lease);
    cluster.until(job, "running");
    old.say("progress", |_| true, lease);
    wait_for("its progress", || (cluster.job(job)["steps_done"] == 10).then_some(()));
    let output = cluster.folder().join("output");
    let mut logs = cluster.spawn(&["logs", &job.to_string()], &output);
    while !logs.has_ended() {
        let Some(asked) = old.next() else { continue };
        assert_eq!(asked["say"], "read-output");
        // From the beginning, or behind what is there.
        let first = asked["stream"] == "stdout" && asked["offset"] == 0;
        let offset = if first { 0 } else { 18 };
        let request = asked["request"].as_u64().unwrap();
        old.say("output", |message| message["offset"] == offset, request);
    }
    assert_eq!(logs.exit_code(), Some(0));
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "hello from before\n");
    // The daemon is replaced while the job runs; the agent says what it holds.
    cluster.stop_daemon();
    cluster.serve();
    let held = json!([{ "lease": lease, "stage": { "is": "running" } }]);
    let mut old = Old::connect(&cluster, held);
    assert_eq!(cluster.job(job)["state"], "running");
    old.say("report", |message| message["stage"]["interrupted"] == false, lease);
    assert_eq!(old.hear("forget")["lease"], lease);
    let ended = cluster.until(job, "finished");
    assert_eq!((&ended["exit_code"], &ended["restarts"]), (&0.into(), &0.into()));
    // One that is cancelled.
    let job = cluster.submit(&["--gpus", "4", "--", "sleep", "600"]);
    let lease = old.hear("start")["lease"].as_u64().unwrap();
    old.report("running", lease);
    cluster.until(job, "running");
    cluster.text(&["cancel", &job.to_string()]);
    assert_eq!(old.hear("stop")["how"], "kill");
    old.say("report", |message| message["stage"]["interrupted"] == true, lease);
    cluster.until(job, "cancelled");
    assert_eq!(old.hear("forget")["lease"], lease);
}

#[test]
fn agents_ahead_of_the_daemon_or_too_far_behind_are_refused_with_what_to_do() {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    Old::enrol(&cluster);
    for (protocol, advice) in
        [(PROTOCOL + 1, "upgrade the daemon first"), (PROTOCOL_OLDEST - 1, "upgrade the agent")]
    {
        let mut agent = Old::open(&cluster);
        let mut hello = recorded(SAID).remove(0);
        hello["protocol"] = protocol.into();
        agent.send(hello);
        let refused = agent.hear("refused");
        assert!(refused["fault"].as_str().unwrap().contains(advice), "{refused}");
        assert_eq!(refused["retry"], false);
    }
    assert!(cluster.nodes().is_empty());
}

#[test]
fn a_job_runs_on_while_the_daemon_is_replaced() {
    let mut cluster = Cluster::start(&[], &["2xV100"]);
    let go = cluster.notes().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    let began = cluster.until(job, "running")["started"].clone();
    let shims = processes::shims(cluster.folder());
    cluster.stop_daemon();
    cluster.serve();
    cluster.kill_daemon();
    cluster.serve();
    cluster.until_up();
    assert_eq!(processes::shims(cluster.folder()), shims, "its processes are the same");
    let node = &cluster.nodes()[0];
    assert_eq!(node["version"], env!("CARGO_PKG_VERSION"), "{node}");
    assert!(!cluster.text(&["nodes"]).contains("earlier release"));
    std::fs::write(&go, "").unwrap();
    let ended = cluster.until(job, "finished");
    assert_eq!((&ended["started"], &ended["restarts"]), (&began, &0.into()));
}
