//! Changes as they happen, and figures.

use std::time::Duration;

use hostler_live::client::Method;
use hostler_live::store::Role;
use serde_json::Value;

use crate::daemon::{Daemon, ask, submit};

/// Longest pause that a test waits through; a stream that brings nothing ends there.
const PAUSE: Duration = Duration::from_secs(10);

/// Numbers and jobs of the events up to the given count.
fn events(daemon: &Daemon, token: &str, after: Option<&str>, count: usize) -> Vec<(String, u64)> {
    let (mut seen, mut id) = (Vec::new(), String::new());
    let headers: Vec<(&str, &str)> = after.iter().map(|id| ("last-event-id", *id)).collect();
    let each = |line: &str| {
        if let Some(number) = line.strip_prefix("id:") {
            id = number.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data:") {
            let change: Value = serde_json::from_str(data).expect("changes are JSON");
            seen.extend(change["job"].as_u64().map(|job| (id.clone(), job)));
        }
        seen.len() < count
    };
    daemon.client(token).follow("/events", &headers, PAUSE, each).expect("a stream");
    seen
}

#[test]
fn a_stream_goes_on_where_it_was_left_and_shows_ones_own_jobs_only() {
    let daemon = Daemon::plain();
    let ada = daemon.token(Role::User, "vision", "ada");
    let eve = daemon.token(Role::User, "speech", "eve");
    let first = submit(&mut daemon.client(&ada));
    let other = submit(&mut daemon.client(&eve));
    let last = submit(&mut daemon.client(&ada));
    // From the beginning: every number is larger than zero.
    let all = events(&daemon, &daemon.admin, Some("0"), 3);
    assert_eq!(all.iter().map(|(_, job)| *job as u32).collect::<Vec<_>>(), [first, other, last]);
    let rest = events(&daemon, &ada, Some(&all[0].0), 1);
    assert_eq!(rest, [all[2].clone()]);
    let bad = [("last-event-id", "x")];
    let answer = ask(&mut daemon.client(&ada), Method::GET, "/events", &bad, None);
    assert_eq!(answer.status, 400);
}

#[test]
fn figures_tell_what_goes_on() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    submit(&mut admin);
    let answer = ask(&mut admin, Method::GET, "//metrics", &[], None);
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for line in [
        "hostler_jobs_submitted_total 1",
        "# TYPE hostler_decision_seconds histogram",
        "hostler_gpu_utilisation 0",
        "hostler_agents_connected 0",
    ] {
        assert!(text.lines().any(|has| has == line), "no `{line}` in\n{text}");
    }
    let bucket = "hostler_commit_seconds_bucket{le=\"+Inf\"} ";
    let commits = text.lines().find_map(|line| line.strip_prefix(bucket)).unwrap();
    assert!(commits.parse::<u64>().unwrap() >= 2, "{commits}");
}

#[test]
fn health_needs_no_token() {
    let daemon = Daemon::plain();
    for path in ["//healthz", "//readyz"] {
        let answer = ask(&mut daemon.client("nobody"), Method::GET, path, &[], None);
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"ok\n"[..]), "{path}");
    }
}

#[test]
fn those_who_ask_for_health_do_not_wait_for_the_host() {
    let daemon = Daemon::plain();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let host = daemon.running().host().clone();
    let (busy, is_busy) = std::sync::mpsc::channel();
    let looks = std::thread::spawn(move || {
        let look = host.read(move |_| {
            busy.send(()).unwrap();
            // It ends with the sender.
            let _ = waits.recv();
        });
        crate::daemon::runtime().block_on(look)
    });
    is_busy.recv().unwrap();
    let answer = ask(&mut daemon.client("nobody"), Method::GET, "//readyz", &[], None);
    assert_eq!(answer.status, 200);
    drop(go_on);
    looks.join().unwrap().unwrap();
}
