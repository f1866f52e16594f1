//! The pipeline against a naive pass that looks at every waiting job at every question.
//!
//! The pipeline skips jobs of which it knows that nothing changed for them. Here it is shown that
//! this is exact: on random clusters and workloads both start the same jobs at the same time in
//! the same places.

use std::fmt::Write as _;
use std::sync::Arc;

use hostler_core::admit::EmptyCluster;
use hostler_core::decision::Decision;
use hostler_core::id::JobId;
use hostler_core::job::Job;
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::record::Record;
use hostler_core::stage::place_job;
use hostler_core::units::Time;
use hostler_core::view::View;
use hostler_policies::place::PlaceRule;
use hostler_sim::fixture::Fixture;
use proptest::prelude::*;

use crate::build;

type Key = fn(&Job) -> i64;

/// Tries every waiting job in the order of its rank, each time.
struct Naive {
    key: Key,
    place: PlaceRule,
    blocks: bool,
}

impl Policy for Naive {
    fn estimates(&self) -> EstimateSource {
        EstimateSource::Oracle
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let mut empty_cluster = EmptyCluster::default();
        let place = self.place.build();
        empty_cluster.refresh(view);
        let waiting = view.jobs().filter(|job| view.pending().contains(&job.id));
        let mut line: Vec<&Job> = waiting.collect();
        line.sort_by_key(|job| ((self.key)(job), job.id));
        for job in &line {
            if let Some(reason) = empty_cluster.objection(view, &job.spec, &*place) {
                plan.turn_away(job.id, reason).expect("it waits");
            }
        }
        for job in line {
            if plan.has_job(job.id) {
                continue;
            }
            match place_job(&*place, plan, &job.spec) {
                Ok(placement) => {
                    plan.start(job.id, placement).expect("it fits");
                }
                Err(_) if self.blocks => return,
                Err(_) => {}
            }
        }
    }
}

fn by_submission(_: &Job) -> i64 {
    0
}

fn by_run(job: &Job) -> i64 {
    job.estimate.map_or(i64::MAX, |estimate| estimate.run.0 as i64)
}

fn by_priority(job: &Job) -> i64 {
    -i64::from(job.spec.priority)
}

/// Starts and rejections, in the order of time; those of one instant by job.
fn schedule(records: &[Record]) -> Vec<(Time, JobId, String)> {
    let mut lines = Vec::new();
    for record in records {
        let Record::Output { at, decisions, .. } = record else {
            continue;
        };
        for decision in decisions {
            if let Decision::Start { job, .. } | Decision::Reject { job, .. } = decision {
                lines.push((*at, *job, format!("{decision:?}")));
            }
        }
    }
    lines.sort();
    lines
}

fn node() -> impl Strategy<Value = String> {
    let gpus = prop::sample::select(vec![0u32, 1, 2, 4, 8]);
    let model = prop::sample::select(vec!["A", "B"]);
    let island = prop::sample::select(vec![0u32, 2, 4]);
    (gpus, model, island, 2u32..24, 300u32..1500, 0u32..2).prop_map(
        |(gpus, model, island, cpu, mem, rack)| {
            format!("gpus {gpus} model {model} island {island} cpu {cpu} mem {mem} rack {rack}")
        },
    )
}

/// Few different demands and many amounts of memory, so that jobs share their shape.
fn job() -> impl Strategy<Value = (u32, String)> {
    let gpus = prop::sample::select(vec!["0", "0.3", "0.5", "0.7", "1", "1", "2", "4"]);
    let mem = prop_oneof![Just(0u32), 256u32..384, 512u32..768];
    let model = prop::sample::select(vec!["", "", " model A", " model B"]);
    let near = ["", "", "", " locality node", " locality rack", " locality island"];
    let count = prop_oneof![3 => Just(1u32), 1 => 2u32..6];
    let request = (gpus, count, 1u32..3, mem, model, prop::sample::select(near.to_vec()));
    (0u32..100, 1u32..60, 0u32..3, request).prop_map(|(at, run, priority, request)| {
        let (gpus, count, cpu, mem, model, near) = request;
        let words = format!(
            "gpus {gpus} count {count} cpu {cpu} mem {mem}{model}{near} for {run} \
             priority {priority}"
        );
        (at, words)
    })
}

/// A scenario, and which of its jobs get a second role.
fn scenario() -> impl Strategy<Value = (String, Vec<bool>)> {
    let nodes = prop::collection::vec(node(), 1..6);
    let jobs = prop::collection::vec((job(), prop::bool::weighted(0.1)), 1..40);
    let down = prop::option::of((any::<prop::sample::Index>(), 1u32..100, 1u32..100));
    (nodes, jobs, down).prop_map(|(nodes, mut jobs, down)| {
        jobs.sort_by_key(|((at, _), _)| *at);
        let mut text = String::new();
        for (number, words) in nodes.iter().enumerate() {
            writeln!(text, "node n{number} {words}").expect("writing to a string");
        }
        if let Some((node, at, lasts)) = down {
            let node = node.index(nodes.len());
            writeln!(text, "fault node-down n{node} at {at} for {lasts}").expect("as above");
        }
        for (number, ((at, words), _)) in jobs.iter().enumerate() {
            writeln!(text, "job j{number} at {at} {words}").expect("writing to a string");
        }
        (text, jobs.into_iter().map(|(_, second)| second).collect())
    })
}

fn fixture(text: &str, second_role: &[bool]) -> Fixture {
    let mut fixture = Fixture::parse(text).unwrap_or_else(|error| panic!("{error}"));
    for ((_, spec), second) in fixture.jobs.iter_mut().zip(second_role) {
        if *second {
            let spec = Arc::make_mut(spec);
            let mut server = spec.gangs[0].clone();
            server.count = 1;
            spec.gangs = Box::new([spec.gangs[0].clone(), server]);
        }
    }
    fixture
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn skipping_what_cannot_have_changed_is_exact((text, second_role) in scenario()) {
        let fixture = fixture(&text, &second_role);
        let orders: [(&str, Key, bool); 4] = [
            ("kind = 'fifo'\nhead = 'blocks'", by_submission, true),
            ("kind = 'fifo'\nhead = 'skips'", by_submission, false),
            ("kind = 'sjf'", by_run, false),
            ("kind = 'priority'", by_priority, false),
        ];
        let rules = ["first-fit", "best-fit", "consolidate", "spread"];
        for (at, (policy, key, blocks)) in orders.into_iter().enumerate() {
            let place = PlaceRule::ALL[at];
            let policy = format!("{policy}\nplace = '{}'", rules[at]);
            let indexed = fixture.check(&|| build(&policy));
            let naive = fixture.check(&|| Box::new(Naive { key, place, blocks }));
            let (indexed, naive) = (schedule(&indexed.records), schedule(&naive.records));
            prop_assert_eq!(indexed, naive, "{} differs from the naive pass", policy);
        }
    }
}
