//! Backfilling against brute force: at each question of thousands of small clusters, what was
//! started delays nobody, and whoever waits could not have started without.
//!
//! The other side shares no code with the policies: free resources are counted from the leases, a
//! job is tried on every division of its tasks among the nodes, and the future is a list of ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod calendar;
mod head;
mod room;

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hostler_core::job::{Demand, Gang, JobSpec};
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::random::Random;
use hostler_core::units::Milli;
use hostler_core::view::View;
use hostler_sim::fixture::Fixture;

/// Clusters that each policy is tried on.
const CASES: u64 = 10_000;

/// What is demanded of the answers to one scenario, one after the other.
type Demanded = Box<dyn FnMut(&View<'_>, &Plan<'_>) + Send>;

/// A policy whose answers are looked at.
struct Watched {
    policy: Box<dyn Policy>,
    demanded: Demanded,
}

impl Policy for Watched {
    fn estimates(&self) -> EstimateSource {
        self.policy.estimates()
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        self.policy.decide(view, wake, plan);
        (self.demanded)(view, plan);
    }
}

/// Runs a policy on clusters and jobs by chance.
fn try_through(settings: &str, jobs: Jobs, demanded: fn() -> Demanded) {
    let registry = hostler_policies::builtin();
    let settings: toml::Table = settings.parse().unwrap();
    let build = || -> Box<dyn Policy> {
        let mut own = settings.clone();
        let kind = own.remove("kind").unwrap();
        let policy = registry.build(kind.as_str().unwrap(), &own).unwrap();
        Box::new(Watched { policy, demanded: demanded() })
    };
    for seed in 0..CASES {
        let text = cluster_and_jobs(seed, jobs);
        let mut fixture = Fixture::parse(&text).unwrap();
        fixture.jobs.iter_mut().for_each(|(_, spec)| change_by_name(Arc::make_mut(spec)));
        let jobs = fixture.jobs.len();
        let run = || fixture.run_once(&build).endings.len();
        let tried = catch_unwind(AssertUnwindSafe(run));
        match tried {
            Ok(ended) => assert_eq!(ended, jobs, "a job was left behind:\n{text}"),
            Err(_) => panic!("seed {seed}:\n{text}"),
        }
    }
}

/// What jobs are like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Jobs {
    /// One role, whole GPUs, and somebody says how long it runs.
    Plain,
    /// Of some nobody says how long they run.
    Unknown,
    /// That, and parts of GPUs and second roles.
    Mixed,
    /// All sorts on GPUs of several models, and more of them; they come all at once, or one by one.
    Models,
    /// As these, and what users say is true.
    ExactRoles,
    /// As these, all of them with one role.
    Exact,
}

/// A few nodes, and jobs that are cramped on them. What users say is often wrong.
fn cluster_and_jobs(seed: u64, jobs: Jobs) -> String {
    let mut random = Random::new(seed);
    let mut below = |most: u64| random.bits() % most;
    let true_estimates = matches!(jobs, Jobs::Exact | Jobs::ExactRoles);
    let all_sorts = true_estimates || jobs == Jobs::Models;
    let mut text = String::new();
    nodes(&mut text, all_sorts, &mut below);
    let more = if all_sorts { below(12) } else { 0 };
    let mut at = 0;
    for job in 0..6 + below(6) + more {
        at += below(6);
        let run = 1 + below(40);
        let said = [run, run, run, 1 + below(40)][below(4) as usize];
        let said = if true_estimates { run } else { said };
        let (gpus, cpu, count) = (below(4), 1 + below(3), [1, 1, 1, 2, 3, 4][below(6) as usize]);
        let near = ["", "", "locality node ", "locality rack "][below(4) as usize];
        let (mut name, mut gpus) = ("job", gpus.to_string());
        if jobs != Jobs::Plain && !true_estimates && below(4) == 0 {
            name = "unknown";
        }
        let mixed = jobs == Jobs::Mixed || all_sorts;
        if mixed && below(3) == 0 {
            gpus = ["0.25", "0.3", "0.5", "0.7"][below(4) as usize].to_owned();
        }
        if mixed && jobs != Jobs::Exact && near.is_empty() && below(5) == 0 {
            name = ["roles", "trainers"][below(2) as usize];
        }
        if all_sorts && gpus != "0" && below(4) == 0 {
            gpus += [" model A", " model B"][below(2) as usize];
        }
        write!(text, "job {name}{job} at {at} gpus {gpus} cpu {cpu} count {count} ").unwrap();
        writeln!(text, "{near}for {run} estimate {said}").unwrap();
    }
    text
}

/// With all sorts of nodes: of two models, of which the first is worth more, or without GPUs; often
/// they are all alike.
fn nodes(text: &mut String, all_sorts: bool, below: &mut impl FnMut(u64) -> u64) {
    if !all_sorts {
        for node in 0..1 + below(3) {
            let (gpus, cpu) = (2 + below(4), 4 + below(9));
            writeln!(text, "node n{node} gpus {gpus} cpu {cpu} rack {}", below(2)).unwrap();
        }
        return;
    }
    writeln!(text, "model A mem 16000 tier 1\nmodel B mem 16000 tier 0").unwrap();
    let alike = below(2) == 0;
    let (gpus, cpu) = (1 + below(4), 3 + below(9));
    for node in 0..1 + below(4) {
        let model = ["A", "B"][below(2) as usize];
        let (gpus, cpu) = if alike { (gpus, cpu) } else { (below(5), 3 + below(9)) };
        let with = if gpus == 0 { String::new() } else { format!("model {model}") };
        writeln!(text, "node n{node} gpus {gpus} {with} cpu {cpu} rack {}", below(2)).unwrap();
    }
}

/// Makes a job what its name says, where a fixture has no words for it.
fn change_by_name(spec: &mut JobSpec) {
    if spec.name.starts_with("unknown") {
        spec.user_estimate = None;
    }
    let (gpu, count) = match () {
        () if spec.name.starts_with("roles") => (Milli::ZERO, 2),
        () if spec.name.starts_with("trainers") => (Milli::ONE, 1),
        () => return,
    };
    let demand = Demand { gpu, cpu: Milli(2000), ..spec.gangs[0].demand.clone() };
    let more = Gang { count, demand };
    spec.gangs = spec.gangs.iter().cloned().chain([more]).collect();
}
