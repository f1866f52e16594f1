//! Every policy on every instance of `vectors.json`: objective, and shares that keep the rules.

use std::path::Path;

use hostler_policies::allocate::*;
use hostler_policies::lp::Solver;
use serde_json::Value;

const TOLERANCE: f64 = 1e-4;

fn load(name: &str) -> Value {
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata/gavel")
        .join(name);
    serde_json::from_str(&std::fs::read_to_string(path).expect("the file is as its readme says"))
        .expect("the file is as its readme says")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().map_or(Vec::new(), |list| {
        list.iter().map(|x| x.as_f64().expect("the file is as its readme says")).collect()
    })
}

fn instance(case: &Value) -> Instance {
    let rows = case["throughputs"].as_array().expect("the file is as its readme says");
    let field = |name: &str, job: usize, default: f64| case[name][job].as_f64().unwrap_or(default);
    let mut entity_of = vec![None; rows.len()];
    for (entity, members) in case["entities"].as_array().into_iter().flatten().enumerate() {
        numbers(members).iter().for_each(|&job| entity_of[job as usize] = Some(entity as u32));
    }
    let job = |(job, row): (usize, &Value)| JobRow {
        rates: numbers(row),
        kind: job as u32,
        gang: field("scale_factors", job, 1.0) as u32,
        weight: field("priority_weights", job, 1.0),
        steps_left: field("num_steps_remaining", job, 1.0),
        age_secs: field("times_since_start", job, 0.0),
        entity: entity_of[job],
        ..JobRow::default()
    };
    let pair = |row: &Value| PairRow {
        first: row["jobs"][0].as_u64().expect("the file is as its readme says") as u32,
        second: row["jobs"][1].as_u64().expect("the file is as its readme says") as u32,
        rates: row["throughputs"]
            .as_array()
            .expect("the file is as its readme says")
            .iter()
            .map(|pair| {
                numbers(pair)[..]
                    .try_into()
                    .map(|[one, two]: [f64; 2]| (one, two))
                    .expect("the file is as its readme says")
            })
            .collect(),
        seen: true,
    };
    let entity = |(at, policy): (usize, &Value)| Entity {
        weight: case["entity_weights"][at].as_f64().expect("the file is as its readme says"),
        inner: if policy == "fairness" { Inner::Fairness } else { Inner::Fifo },
    };
    Instance {
        workers: numbers(&case["num_workers"]),
        prices: numbers(&case["instance_costs"]),
        jobs: rows.iter().enumerate().map(job).collect(),
        pairs: case["pairs"].as_array().into_iter().flatten().map(pair).collect(),
        entities: case["entity_policies"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
            .map(entity)
            .collect(),
    }
}

/// The policy of that name, and where its expected objective stands.
fn policy(name: &str) -> (Box<dyn Allocate>, &'static str) {
    use RateKnowledge::{Agnostic, Aware, Packed};
    let sum = SumThroughput::default();
    match name {
        "isolated" => (Box::new(Isolated), "X"),
        "proportional" => (Box::new(Proportional), "X"),
        "max_min_fairness" => (Box::new(MaxMin::new(Agnostic)), "objective"),
        "max_min_fairness_perf" => (Box::new(MaxMin::new(Aware)), "objective"),
        "max_min_fairness_packed" => (Box::new(MaxMin::new(Packed)), "objective"),
        "max_min_fairness_water_filling_perf" => {
            (Box::new(WaterFilling { rate_knowledge: Aware }), "normalized_throughput")
        }
        "finish_time_fairness_perf" => {
            (Box::new(FinishTime { rate_knowledge: Aware, weighted: false }), "objective_rho")
        }
        "min_total_duration_perf" => {
            (Box::new(Makespan { rate_knowledge: Aware }), "objective_T_seconds")
        }
        "max_sum_throughput_perf" => (Box::new(sum), "objective"),
        "max_sum_throughput_normalized_by_cost_perf" => {
            (Box::new(SumThroughput { priced: true, ..sum }), "objective")
        }
        "nash_welfare_geo_mean" => (Box::new(StrategyProof), "objective"),
        "sjf_lecture" => (Box::new(Shortest), "objective_seconds"),
        "fifo_perf" => (Box::new(FifoPerf { tie_order: vec![2, 1, 0] }), "assignment"),
        "allox" => (Box::new(Allox::default()), "assignment_cost"),
        other => panic!("no policy for `{other}`"),
    }
}

fn close(name: &str, found: f64, expected: f64) {
    let off = (found - expected).abs() / expected.abs().max(1.0);
    assert!(off < TOLERANCE, "{name}: found {found}, expected {expected}");
}

fn check(name: &str, instance: &Instance, policy_name: &str, expected: &Value) {
    let (mut policy, field) = policy(policy_name);
    let allocation = policy.allocate(instance).expect("the instance is sound");
    let name = format!("{name}/{policy_name}");
    assert_eq!(allocation.fallback, None, "{name}");
    // A yardstick, not a schedule.
    if policy_name != "proportional" {
        let worst = violation(instance, &allocation);
        assert!(is_feasible(instance, &allocation), "{name}: broken by {worst}");
    }
    match field {
        "X" => {
            for (row, expected) in allocation
                .shares
                .iter()
                .zip(expected["X"].as_array().expect("the file is as its readme says"))
            {
                row.iter()
                    .zip(numbers(expected))
                    .for_each(|(x, expected)| close(&name, *x, expected));
            }
        }
        "normalized_throughput" => {
            let normal = proportional_rates(instance);
            let expected = numbers(&expected[field]);
            assert_eq!(expected.len(), instance.jobs.len(), "{name}");
            for (job, row) in instance.jobs.iter().enumerate() {
                let rate: f64 =
                    row.rates.iter().zip(&allocation.shares[job]).map(|(t, x)| t * x).sum();
                // The last level may leave more to some than they are owed.
                close(&format!("{name}, job {job}"), rate / normal[job], expected[job]);
            }
        }
        "assignment" => {
            for (job, gpu) in expected[field].as_object().expect("the file is as its readme says") {
                let row = &allocation.shares
                    [job.parse::<usize>().expect("the file is as its readme says")];
                assert_eq!(
                    row[gpu.as_u64().expect("the file is as its readme says") as usize],
                    1.0,
                    "{name}: job {job}"
                );
            }
        }
        field => close(
            &name,
            allocation.objective,
            expected[field].as_f64().expect("the file is as its readme says"),
        ),
    }
}

#[test]
fn every_policy_reaches_the_known_optimum() {
    let file = load("vectors.json");
    let mut checked = 0;
    for case in file["instances"].as_array().expect("the file is as its readme says") {
        let instance = instance(case);
        for (policy, expected) in
            case["expected"].as_object().expect("the file is as its readme says")
        {
            check(
                case["name"].as_str().expect("the file is as its readme says"),
                &instance,
                policy,
                expected,
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 93, "policies times instances in the file");
}

#[test]
fn a_corner_is_as_good_as_the_middle() {
    let file = load("vectors.json");
    for case in file["instances"].as_array().expect("the file is as its readme says") {
        let instance = instance(case);
        let Some(expected) = case["expected"]["max_min_fairness_perf"]["objective"].as_f64() else {
            continue;
        };
        let mut policy = MaxMin {
            rate_knowledge: RateKnowledge::Aware,
            programmes: Grouped { solver: Solver::Simplex },
        };
        let allocation = policy.allocate(&instance).expect("the instance is sound");
        close(
            case["name"].as_str().expect("the file is as its readme says"),
            allocation.objective,
            expected,
        );
        assert!(is_feasible(&instance, &allocation));
    }
}
