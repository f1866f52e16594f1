//! What `/metrics` and `policy show` tell of work that is done and of policies that break rules.

use std::time::{Duration, Instant};

use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake};
use hostler_core::view::View;
use hostler_live::api::PolicyText;
use hostler_live::client::{Client, Method};
use hostler_live::host;
use hostler_live::wire::{EndNotes, FromAgent, LeaseReport, Stage, TaskExit, ToAgent};

use crate::daemon::{Daemon, ask, runtime, submit};
use crate::views::join;

const PATIENCE: Duration = Duration::from_secs(30);

hostler_core::settings! {
    struct Config {
        /// Nothing that matters.
        seed: u64 = 0,
    }
}

/// Has a bug that shows when somebody waits.
struct Faulty;

impl Policy for Faulty {
    fn decide(&mut self, view: &View<'_>, _: Wake, _: &mut Plan<'_>) {
        assert!(view.pending().is_empty(), "a policy with a bug");
    }
}

/// A daemon whose policy is not one of ours.
fn with_a_faulty_policy() -> Daemon {
    Daemon::changed(|settings| {
        let build = |_: Config| Ok(Box::new(Faulty) as Box<dyn Policy>);
        let mut registry = hostler_policies::builtin();
        registry.register(PolicyDef::new("faulty", "has a bug", build)).expect("a free name");
        settings.policies =
            std::sync::Arc::new(move |text| registry.from_toml(text).map_err(|e| e.to_string()));
        let fallback = std::mem::take(&mut settings.host.policy);
        settings.host = host::Settings { fallback, ..host::Settings::new("kind = \"faulty\"\n") };
    })
}

/// Asks for the figures until they have this line.
fn figures_with(admin: &mut Client, line: &str) -> String {
    let begun = Instant::now();
    loop {
        let answer = ask(admin, Method::GET, "//metrics", &[], None);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if text.lines().any(|has| has == line) {
            return text;
        }
        assert!(begun.elapsed() < PATIENCE, "no `{line}` in\n{text}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_policy_that_broke_a_rule_is_counted_and_named() {
    let daemon = with_a_faulty_policy();
    let mut admin = daemon.admin();
    let policy: PolicyText = admin.get("/policy").unwrap();
    assert_eq!((&*policy.toml, &policy.violation), ("kind = \"faulty\"\n", &None));
    submit(&mut admin);
    figures_with(&mut admin, "hostler_policy_violations_total 1");
    let policy: PolicyText = admin.get("/policy").unwrap();
    assert!(policy.toml.contains("fifo-backfill"), "{policy:?}");
    assert!(policy.violation.unwrap().starts_with("the policy panicked"));
    assert!(!policy.nobody_decides);
}

#[test]
fn the_figures_of_a_daemon_are_those_of_a_simulation() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let mut link = join(&daemon);
    submit(&mut admin);
    let voice = link.voice();
    runtime().block_on(async {
        let lease = loop {
            match link.messages.recv().await.unwrap() {
                ToAgent::Start(order) => break order.lease,
                _ => continue,
            }
        };
        let exits = vec![TaskExit { rank: 0, code: Some(0), signal: None }];
        let notes = EndNotes::default();
        let ended = Stage::Ended { exits, interrupted: false, gpu_milli: None, notes };
        for stage in [Stage::Running, ended] {
            voice.said(FromAgent::Report(LeaseReport { lease, stage })).await.unwrap();
        }
    });
    let text = figures_with(&mut admin, "hostler_run_jobs_done 1");
    let value = |figure: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(figure));
        line.unwrap_or_else(|| panic!("no `{figure}` in\n{text}")).trim().parse::<f64>().unwrap()
    };
    assert!(value("hostler_run_avg_jct_s ") >= value("hostler_run_avg_wait_s "));
    assert_eq!(value("hostler_run_jobs_failed "), 0.0);
}
