//! How fast jobs are started that all wait already, and what that costs the daemon; how long a
//! start takes; and what it takes to decide while many wait.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Cluster, processes, wait_for};
use crate::lab::{Lab, Wants};
use crate::{PAI, Size};

/// Time between two looks of ours: each costs Slurm some of what is measured.
const LOOK: Duration = Duration::from_millis(250);

pub fn measure(size: &Size) {
    let lab = Lab::start(PAI, &Wants::default());
    // Of one core each. They stay until all are there, so that nothing but starts is measured.
    let array = format!("-t 9 --mem=10 --array=1-{}", size.starts);
    let list = lab.submit(&array, "sleep 300");
    let mut cluster = lab.hostler("fifo", "calls_max = 4\ncomments = false");
    let daemon = cluster.daemon().pid();
    let (begun, before) = (Instant::now(), processes::processor_secs(daemon));
    let first = in_room(&lab);
    let moved = loop {
        std::thread::sleep(LOOK);
        if in_room(&lab) == 0 {
            break begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "jobs are left in the waiting room");
    };
    let after = processes::processor_secs(daemon);
    let run = loop {
        if running(&lab) == size.starts {
            break begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "not all of them run");
        std::thread::sleep(LOOK);
    };
    let each = |secs: f64| secs * 1e3 / first as f64;
    println!(
        "starts: {first} jobs, 4 updates at a time: {:.0} starts/s (goal 50); all run after {:.1} s",
        first as f64 / moved.as_secs_f64(),
        run.as_secs_f64(),
    );
    println!(
        "  processor time for each: daemon {:.1} ms (goal 10), Slurm's commands {:.1} ms",
        each(after.own - before.own),
        each(after.children - before.children),
    );
    lab.text(&["scancel", &list]);
}

/// Time from the decision to the first step of a job, one after the other on an idle cluster.
pub fn latency(size: &Size) {
    let lab = Lab::start(PAI, &Wants::default());
    let cluster = lab.hostler("fifo", "");
    let mut all = Vec::new();
    for number in 0..size.latencies {
        let file = lab.path("notes").join(format!("begun{number}"));
        let script = format!("date +%s.%N > {}", file.display());
        let job = lab.submit("-t 1 --mem=10 --gres=gpu:t4:1", &script);
        let (begun, decided) = wait_for("the job to be over", || {
            let text = std::fs::read_to_string(&file).ok()?;
            Some((text.trim().parse::<f64>().ok()?, decided_at(&cluster, &job)?))
        });
        all.push(begun - decided);
    }
    all.sort_by(f64::total_cmp);
    println!(
        "latency: decision to first step {:.2} s in the middle, {:.2} s at most, of {} (goal 1.5 s)",
        all[all.len() / 2],
        all[all.len() - 1],
        all.len()
    );
}

/// When the start of a job that is over was decided.
fn decided_at(cluster: &Cluster, job: &str) -> Option<f64> {
    let page: Value = serde_json::from_str(&cluster.text(&["history", "--json"])).unwrap();
    let jobs = page.as_array().or(page["jobs"].as_array()).cloned().unwrap_or_default();
    jobs.iter().find(|known| known["engine_id"] == job)?["started"].as_f64()
}

/// What a decision takes while many jobs wait that do not fit.
pub fn decisions(size: &Size) {
    let lab = Lab::start(PAI, &Wants::default());
    // They hold what the others want.
    let held = lab.submit_to("high", "-N4 -t 60 --mem=10 --gres=gpu:v100:8", "sleep 600");
    lab.until(&held, "RUNNING");
    let array = format!("-t 9 --mem=10 --gres=gpu:v100:8 --array=1-{}", size.waiting);
    let list = lab.submit(&array, "true");
    let cluster = lab.hostler("fifo:head=skips", "comments = false");
    wait_for("all jobs to wait", || {
        (figure(&cluster, "queue_depth") >= size.waiting as f64).then_some(())
    });
    let taken = |name: &str| figure(&cluster, &format!("decision_seconds_{name}"));
    let (secs, count) = (taken("sum"), taken("count"));
    // Each has somebody start, and is a reason to look at those who wait.
    for _ in 0..size.latencies {
        let job = lab.submit("-t 1 --mem=10 --gres=gpu:t4:1", "true");
        lab.until(&job, "COMPLETED");
    }
    let (secs, count) = (taken("sum") - secs, taken("count") - count);
    println!(
        "decisions: {} jobs wait, {count} decisions, {:.2} ms each (goal 50 ms)",
        size.waiting,
        secs * 1e3 / count.max(1.0)
    );
    lab.text(&["scancel", &list, &held]);
}

/// A figure of the daemon's.
fn figure(cluster: &Cluster, name: &str) -> f64 {
    let text = metrics(cluster);
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let value = lines.find(|(key, _)| *key == format!("hostler_{name}"));
    value.map_or(0.0, |(_, value)| value.parse().unwrap())
}

fn metrics(cluster: &Cluster) -> String {
    let access = cluster.access();
    let address = (access.server.host.as_str(), access.server.port);
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         connection: close\r\n\r\n",
        access.token.trim()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

fn in_room(lab: &Lab) -> usize {
    let words = ["squeue", "-h", "-r", "-a", "-p", "ext", "-t", "PD", "-o", "%i"];
    lab.text(&words).lines().count()
}

fn running(lab: &Lab) -> usize {
    let words = ["squeue", "-h", "-r", "-a", "-t", "R", "-o", "%i"];
    lab.text(&words).lines().count()
}
