//! Policies that break rules: the daemon goes on without them.

use std::sync::Arc;

use expect_test::expect;
use hostler_core::placement::{Part, Placement};
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake};
use hostler_core::reason::Reason;
use hostler_core::registry::Registry;
use hostler_core::solve::Solve;
use hostler_core::target::Solution;
use hostler_core::units::{Mib, Milli, Time};
use hostler_core::view::View;
use hostler_live::host::{Host, PolicyBuilder, Settings};
use hostler_live::store::memory::Disk;

use crate::story::check;

hostler_core::settings! {
    struct Config {
        /// Nothing that matters.
        seed: u64 = 0,
    }
}

/// What a policy does wrong.
type Wrong = fn(&View<'_>, &mut Plan<'_>);

struct Rogue(Wrong);

impl Policy for Rogue {
    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        self.0(view, plan);
    }
}

fn panics(view: &View<'_>, plan: &mut Plan<'_>) {
    for lease in view.leases() {
        plan.lift(lease.id).unwrap();
    }
    assert!(view.pending().is_empty(), "a policy with a bug");
}

/// Starts jobs on a node without the GPUs that they asked for.
fn starts_without_gpus(view: &View<'_>, plan: &mut Plan<'_>) {
    for (node, job) in view.nodes().iter().zip(view.pending()) {
        let (cpu, mem, slices) = (Milli(1000), Mib(0), Vec::new());
        let part = Part { gang: 0, node: node.id, tasks: 1, cpu, mem, slices };
        plan.start(*job, Placement { parts: vec![part] }).unwrap();
    }
}

fn turns_away_for_nothing(view: &View<'_>, plan: &mut Plan<'_>) {
    for job in view.pending() {
        plan.turn_away(*job, Reason::NotThisRound).unwrap();
    }
}

/// Asks a solver that panics.
struct BadSolver;

impl Policy for BadSolver {
    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        if view.solve_asked().is_none() {
            plan.solve();
        }
    }

    fn solver(&self) -> Option<Box<dyn Solve>> {
        Some(Box::new(BadSolver))
    }
}

impl Solve for BadSolver {
    fn solve(&mut self, _: &View<'_>) -> Solution {
        panic!("a solver with a bug")
    }
}

/// Adds policies that break rules.
pub(super) fn register_rogues(registry: &mut Registry) {
    let rogues: [(&str, Wrong); 3] = [
        ("rogue-panic", panics),
        ("rogue-start", starts_without_gpus),
        ("rogue-away", turns_away_for_nothing),
    ];
    for (kind, wrong) in rogues {
        let build = move |_: Config| Ok(Box::new(Rogue(wrong)) as Box<dyn Policy>);
        registry.register(PolicyDef::new(kind, "breaks a rule", build)).unwrap();
    }
    let build = |_: Config| Ok(Box::new(BadSolver) as Box<dyn Policy>);
    registry.register(PolicyDef::new("rogue-solve", "has a bad solver", build)).unwrap();
    let build = |_: Config| -> Result<Box<dyn Policy>, String> { panic!("a bug in its making") };
    registry.register(PolicyDef::new("rogue-made", "cannot be made", build)).unwrap();
}

#[test]
fn a_policy_that_breaks_a_rule_gives_way_and_nothing_is_lost() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        1 policy rogue-start
        2 n1 0 running
        3 submit gpus=1
        3 deciding
        4 policy rogue-panic
        5 submit gpus=1
        5 deciding
        6 restart
        6 deciding
        7 join n1 1 0 running
        8 policy rogue-away
        9 jobs
        9 deciding
        10 n1 0 ended 0
        11 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 policy rogue-start
                done
            2 n1 0 running
            3 submit gpus=1
                submitted [2]
            3 deciding
                kind = "fifo-backfill" estimate = "user"; 1 violations, Some("job2: a part on node0 does not match the demand (`kind = 'rogue-start'`)")
            4 policy rogue-panic
                done
            5 submit gpus=1
                submitted [3]
            5 deciding
                kind = "fifo-backfill" estimate = "user"; 2 violations, Some("the policy panicked (`kind = 'rogue-panic'`)")
            6 restart
            6 deciding
                kind = "fifo-backfill" estimate = "user"; 0 violations, Some("the policy panicked (`kind = 'rogue-panic'`)")
            7 join n1 1 0 running
            8 policy rogue-away
                done
            9 jobs
                1 running, on n1
                2 queued: needs 1 GPU; none is free
                3 queued: needs 1 GPU; none is free
            9 deciding
                kind = "fifo-backfill" estimate = "user"; 1 violations, Some("job2 is turned away for what may pass (`kind = 'rogue-away'`)")
            10 n1 0 ended 0
                to n1: forget lease0
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            11 jobs
                2 starting, on n1
                3 queued: needs 1 GPU; none is free
        "#]],
    );
}

#[test]
fn a_solver_that_panics_and_a_policy_that_cannot_be_made_do_no_harm() {
    check(
        "
        0 join n1 1
        1 policy rogue-made
        1 deciding
        2 policy rogue-solve
        3 submit gpus=1
        4 solved
        5 deciding
        6 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 policy rogue-made
                the policy panicked when it was made
            1 deciding
                kind = "fifo-backfill" estimate = "user"; 0 violations, None
            2 policy rogue-solve
                done
                solve 1
            3 submit gpus=1
                submitted [1]
            4 solved
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            5 deciding
                kind = "fifo-backfill" estimate = "user"; 1 violations, Some("the policy panicked (`kind = 'rogue-solve'`)")
            6 jobs
                1 starting, on n1
        "#]],
    );
}

#[test]
fn a_fallback_that_is_no_policy_is_refused_at_the_start() {
    let registry = hostler_policies::builtin();
    let builder = move |text: &str| registry.from_toml(text).map_err(|fault| fault.to_string());
    let builder: PolicyBuilder = Arc::new(builder);
    let truth = "kind = 'sjf'\nestimate = 'oracle'";
    for (fallback, fault) in [("kind = 'nonsense'", "unknown policy"), (truth, "estimate")] {
        let settings = Settings { fallback: fallback.to_owned(), ..Settings::new("kind = 'fifo'") };
        let store = Box::new(Disk::default().store());
        let opened = Host::open(store, Arc::clone(&builder), settings, Time::ZERO);
        let told = opened.err().expect("it is refused").to_string();
        assert!(told.contains(fault), "{told}");
    }
}
