//! Backfilling against brute force: at each question of thousands of small clusters, what was
//! started delays nobody, and whoever waits could not have started without.
//!
//! The other side shares no code with the policies: free resources are counted from the leases, a
//! job is tried on every division of its tasks among the nodes, and the future is a list of ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod head;
mod room;

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::random::Random;
use hostler_core::view::View;
use hostler_sim::fixture::Fixture;

/// Clusters that each policy is tried on.
const CASES: u64 = 10_000;

/// What is demanded of an answer.
type Demanded = fn(&View<'_>, &Plan<'_>);

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
fn try_through(settings: &str, demanded: Demanded) {
    let registry = hostler_policies::builtin();
    let settings: toml::Table = settings.parse().unwrap();
    let build = || -> Box<dyn Policy> {
        let mut own = settings.clone();
        let kind = own.remove("kind").unwrap();
        let policy = registry.build(kind.as_str().unwrap(), &own).unwrap();
        Box::new(Watched { policy, demanded })
    };
    for seed in 0..CASES {
        let text = cluster_and_jobs(seed);
        let fixture = Fixture::parse(&text).unwrap();
        let jobs = fixture.jobs.len();
        let run = || fixture.run_once(&build).endings.len();
        let tried = catch_unwind(AssertUnwindSafe(run));
        match tried {
            Ok(ended) => assert_eq!(ended, jobs, "a job was left behind:\n{text}"),
            Err(_) => panic!("seed {seed}:\n{text}"),
        }
    }
}

/// A few nodes, and jobs that are cramped on them. What users say is often wrong.
fn cluster_and_jobs(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut below = |most: u64| random.bits() % most;
    let nodes = 1 + below(3);
    let mut text = String::new();
    for node in 0..nodes {
        let (gpus, cpu) = (2 + below(4), 4 + below(9));
        writeln!(text, "node n{node} gpus {gpus} cpu {cpu} rack {}", below(2)).unwrap();
    }
    let mut at = 0;
    for job in 0..6 + below(6) {
        at += below(6);
        let run = 1 + below(40);
        let said = [run, run, run, 1 + below(40)][below(4) as usize];
        let (gpus, cpu, count) = (below(4), 1 + below(3), [1, 1, 1, 2, 3, 4][below(6) as usize]);
        let near = ["", "", "locality node ", "locality rack "][below(4) as usize];
        write!(text, "job j{job} at {at} gpus {gpus} cpu {cpu} count {count} ").unwrap();
        writeln!(text, "{near}for {run} estimate {said}").unwrap();
    }
    text
}
