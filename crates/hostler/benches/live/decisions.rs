//! Decisions of a large cluster: 50,000 jobs wait, 5,000 nodes are connected and speak the
//! protocol of agents. Jobs end and are submitted all the while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use hostler_core::id::LeaseId;
use hostler_live::api::{Accepted, Enrolled, MadeToken};
use hostler_live::host::hash_of;
use hostler_live::wire::{
    AGENT_PATH, EndNotes, FromAgent, LeaseReport, Machine, PROTOCOL, Stage, TaskExit, ToAgent,
};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::daemon::Daemon;
use crate::http::Http;
use crate::{PATIENCE, Size, load, until};

/// Jobs that end in a second, over all nodes.
const ENDS_PER_SECOND: u32 = 50;

/// Seconds between beats of one node.
const BEAT_SECS: u64 = 5;

pub async fn measure(size: &Size) {
    let nodes = size.nodes;
    let policy = std::env::var("HOSTLER_BENCH_POLICY");
    let policy =
        policy.unwrap_or_else(|_| "kind = \"fifo-backfill\"\nestimate = \"user\"\n".to_owned());
    let daemon = Daemon::start("decisions", &policy);
    let mut client = daemon.client().await;
    let (ended, running) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (ends, mut ready) = mpsc::unbounded_channel();
    connect(&daemon, nodes, &ends, &ended, &running).await;
    until(&mut client, "agents_connected", f64::from(nodes)).await;
    println!("decisions: {nodes} nodes are connected, memory {:.0} MiB", daemon.memory_mib().0);
    fill(&mut client, size).await;
    let begun = Instant::now();
    while running.load(Ordering::Relaxed) < u64::from(nodes) {
        assert!(begun.elapsed() < PATIENCE, "not all nodes run a job after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (load, before) = (load(), client.text("GET", "/metrics", "").await);
    let (waiting, spent) = (client.figure("queue_depth").await, daemon.processor_secs().0);
    let begun = Instant::now();
    let mut turn = 0;
    while begun.elapsed() < Duration::from_secs(size.decision_secs) {
        turn += 1;
        tokio::time::sleep_until((begun + Duration::from_secs(1) * turn / ENDS_PER_SECOND).into())
            .await;
        if let Ok(end) = ready.try_recv() {
            let end: mpsc::UnboundedSender<()> = end;
            let _ = end.send(());
        }
        let job = shape(turn);
        let _: Accepted = client.post("/jobs", &format!("{{{job}}}")).await;
    }
    let wall = begun.elapsed().as_secs_f64();
    let after = client.text("GET", "/metrics", "").await;
    let spent = daemon.processor_secs().0 - spent;
    let (now, most) = daemon.memory_mib();
    println!(
        "decisions: {nodes} nodes, {waiting} jobs wait, {} jobs ended in {wall:.0} s",
        ended.load(Ordering::Relaxed),
    );
    for (name, goal) in [("decision_seconds", " (goal 10 ms)"), ("commit_seconds", "")] {
        let classes = Classes::between(&before, &after, name);
        println!(
            "  {name}: {} in all, p50 {:.2} ms, p99 {:.2} ms{goal}, worst below {} ms",
            classes.count(),
            classes.quantile(0.5) * 1e3,
            classes.quantile(0.99) * 1e3,
            classes.quantile(1.0) * 1e3,
        );
    }
    println!(
        "  memory of the daemon {now:.0} MiB, most {most:.0} MiB (goal 300 MiB); processor {:.0} % \
         of one; load before {load}",
        spent / wall * 100.0
    );
}

/// Jobs of several shapes, so that they do not all wait for the same thing.
fn shape(number: u32) -> String {
    let (gpus, cpus) = ([8, 4, 8, 2, 8, 1][number as usize % 6], 1 + number % 4);
    let estimate = 600 + number % 7 * 900;
    format!(
        r#""command":["python","train.py"],"gpus":{gpus},"cpus":{cpus},"estimate_secs":{estimate}"#
    )
}

/// Fills all nodes, and then the queue.
async fn fill(client: &mut Http, size: &Size) {
    let whole = format!(
        r#"{{"command":["python"],"gpus":8,"cpus":8,"estimate_secs":3600,"array":{}}}"#,
        size.nodes
    );
    let _: Accepted = client.post("/jobs", &whole).await;
    for number in 0..size.waiting_thousands {
        let _: Accepted =
            client.post("/jobs", &format!(r#"{{{},"array":1000}}"#, shape(number))).await;
    }
}

type Ends = mpsc::UnboundedSender<mpsc::UnboundedSender<()>>;

/// Enrols and connects all nodes.
async fn connect(
    daemon: &Daemon,
    nodes: u32,
    ends: &Ends,
    ended: &Arc<AtomicU64>,
    running: &Arc<AtomicU64>,
) {
    let mut callers = Vec::new();
    for first in 0..50 {
        let (address, mut admin) = (daemon.address.clone(), daemon.client().await);
        let (ends, ended, running) = (ends.clone(), ended.clone(), running.clone());
        callers.push(tokio::spawn(async move {
            for number in (first..nodes).step_by(50) {
                let name = format!("node-{number:04}");
                let body = format!(r#"{{"role":"agent","name":"{name}"}}"#);
                let made: MadeToken = admin.post("/tokens", &body).await;
                let mut agent = Http::connect(&address, &made.token).await;
                let own = format!("the secret of {name}");
                let body = format!(r#"{{"node":"{name}","hash":"{}"}}"#, hash_of(&own));
                let _: Enrolled = agent.post("/agents/enrol", &body).await;
                let node = Node {
                    machine: machine(name, number),
                    ends: ends.clone(),
                    ended: ended.clone(),
                    running: running.clone(),
                };
                let stream = TcpStream::connect(&address).await.expect("the daemon listens");
                tokio::spawn(node.live(address.clone(), own, stream));
            }
        }));
    }
    for caller in callers {
        caller.await.expect("a caller does not fail");
    }
}

fn machine(name: String, number: u32) -> Machine {
    let models = ["V100", "A100", "H100"];
    Machine {
        name,
        version: String::new(),
        address: "127.0.0.1".to_owned(),
        cpu_milli: 64_000,
        mem_mib: 512 << 10,
        gpu_model: models[number as usize % models.len()].to_owned(),
        gpu_mem_mib: 32 << 10,
        gpus: 8,
        rack: number / 32,
        ..Machine::default()
    }
}

/// A node without a machine: says what an agent would say, and ends jobs when it is told to.
struct Node {
    machine: Machine,
    ends: Ends,
    ended: Arc<AtomicU64>,
    running: Arc<AtomicU64>,
}

impl Node {
    async fn live(self, address: String, token: String, stream: TcpStream) {
        let url = format!("ws://{address}{AGENT_PATH}");
        let mut request = url.into_client_request().expect("an address");
        let bearer = format!("Bearer {token}").parse().expect("tokens are plain text");
        request.headers_mut().insert("authorization", bearer);
        let config = WebSocketConfig::default().read_buffer_size(4096);
        let socket = tokio_tungstenite::client_async_with_config(request, stream, Some(config));
        let (mut socket, _) = socket.await.expect("the daemon takes agents");
        let hello = FromAgent::Hello {
            protocol: PROTOCOL,
            machine: Box::new(self.machine.clone()),
            held: vec![],
            last_job: None,
        };
        socket.send(words(&hello)).await.expect("the daemon reads");
        let (tell, mut told) = mpsc::unbounded_channel::<LeaseId>();
        let pause = Duration::from_secs(BEAT_SECS);
        let mut beats = tokio::time::interval_at((Instant::now() + pause).into(), pause);
        let mut number = 0;
        loop {
            let said = tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => self.hear(&text, &tell),
                    Some(Ok(_)) => None,
                    Some(Err(_)) | None => return,
                },
                Some(lease) = told.recv() => {
                    self.ended.fetch_add(1, Ordering::Relaxed);
                    let exits = vec![TaskExit { rank: 0, code: Some(0), signal: None }];
                    let stage = Stage::Ended { exits, interrupted: false, gpu_milli: None, notes: EndNotes::default() };
                    Some(FromAgent::Report(LeaseReport { lease, stage }))
                }
                _ = beats.tick() => {
                    number += 1;
                    Some(FromAgent::Beat { number, gpu_use: Vec::new(), unable: None })
                }
            };
            if let Some(said) = said
                && socket.send(words(&said)).await.is_err()
            {
                return;
            }
        }
    }

    /// What is said to what the daemon says.
    fn hear(&self, text: &str, tell: &mpsc::UnboundedSender<LeaseId>) -> Option<FromAgent> {
        let message = serde_json::from_str(text).expect("the daemon speaks the protocol");
        let ToAgent::Start(order) = message else { return None };
        self.running.fetch_add(1, Ordering::Relaxed);
        let (lease, tell) = (order.lease, tell.clone());
        let (end, mut may_end) = mpsc::unbounded_channel();
        let _ = self.ends.send(end);
        tokio::spawn(async move {
            if may_end.recv().await.is_some() {
                let _ = tell.send(lease);
            }
        });
        Some(FromAgent::Report(LeaseReport { lease, stage: Stage::Running }))
    }
}

fn words(message: &FromAgent) -> Message {
    Message::text(serde_json::to_string(message).expect("messages are plain data"))
}

/// Counts by upper bound, of what happened between two pages of figures.
struct Classes(Vec<(f64, f64)>);

impl Classes {
    fn between(before: &str, after: &str, name: &str) -> Classes {
        let (before, after) = (Classes::read(before, name), Classes::read(after, name));
        let classes = before.iter().zip(&after).map(|(old, new)| (new.0, new.1 - old.1));
        Classes(classes.collect())
    }

    fn read(page: &str, name: &str) -> Vec<(f64, f64)> {
        let head = format!("hostler_{name}_bucket{{le=\"");
        let lines = page.lines().filter_map(|line| line.strip_prefix(&head)?.split_once("\"} "));
        let number = |text: &str| text.parse().unwrap_or(f64::INFINITY);
        lines.map(|(bound, count)| (number(bound), number(count))).collect()
    }

    fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |class| class.1)
    }

    /// In seconds; inside a class, values are taken to be spread evenly.
    fn quantile(&self, share: f64) -> f64 {
        let wanted = self.count() * share;
        let (mut below, mut floor) = (0.0, 0.0);
        for (bound, count) in &self.0 {
            if *count >= wanted {
                let part = (wanted - below) / (count - below).max(1.0);
                return if bound.is_finite() { floor + (bound - floor) * part } else { *bound };
            }
            (below, floor) = (*count, *bound);
        }
        0.0
    }
}
