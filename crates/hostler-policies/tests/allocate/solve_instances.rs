//! Larger max-min instances over the published table of rates: the objective to five digits.

use hostler_policies::allocate::*;
use hostler_sim::fixture::published_data;
use serde_json::Value;

const TOLERANCE: f64 = 1e-5;
const TYPES: [&str; 3] = ["k80", "p100", "v100"];

/// An instance and what is expected of it without and with pairs.
fn instance(table: &Value, case: &Value) -> Instance {
    let classes = case["classes"].as_array().expect("the file is as its readme says");
    let key = |class: &Value| {
        format!(
            "('{}', {})",
            class["job_type"].as_str().expect("the file is as its readme says"),
            class["scale_factor"]
        )
    };
    let mut jobs = Vec::new();
    let mut pairs = Vec::new();
    for (kind, class) in classes.iter().enumerate() {
        let rate = |gpu: &str| {
            table[gpu][key(class)]["null"].as_f64().expect("the file is as its readme says")
        };
        let row = JobRow {
            rates: TYPES.iter().map(|gpu| rate(gpu)).collect(),
            kind: kind as u32,
            gang: class["scale_factor"].as_u64().expect("the file is as its readme says") as u32,
            ..JobRow::default()
        };
        jobs.extend(vec![
            row;
            class["count"].as_u64().expect("the file is as its readme says") as usize
        ]);
        for (other_kind, other) in classes.iter().enumerate().skip(kind) {
            let entry = |gpu: &&str| {
                let pair = &table[gpu][key(class)][key(other)];
                (pair[0].as_f64().unwrap_or(0.0), pair[1].as_f64().unwrap_or(0.0))
            };
            let rates = TYPES.iter().map(entry).collect();
            pairs.push(PairRow {
                first: kind as u32,
                second: other_kind as u32,
                rates,
                seen: true,
            });
        }
    }
    let workers =
        vec![(case["n"].as_f64().expect("the file is as its readme says") / 4.0).floor(); 3];
    Instance { workers, jobs, pairs, ..Instance::default() }
}

#[test]
fn large_instances_reach_the_known_optimum() {
    let Some(data) = published_data("large_instances_reach_the_known_optimum") else { return };
    let file = std::fs::File::open(data.join("theirs/gavel/simulation_throughputs.json.gz"))
        .expect("the file is as its readme says");
    let table: Value = serde_json::from_reader(flate2::read::GzDecoder::new(file))
        .expect("the file is as its readme says");
    let cases =
        std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
            .join("../../testdata/gavel/solve_instances.json");
    let cases: Value = serde_json::from_str(
        &std::fs::read_to_string(cases).expect("the file is as its readme says"),
    )
    .expect("the file is as its readme says");
    for case in cases["instances"].as_array().expect("the file is as its readme says") {
        let instance = instance(&table, case);
        for (rate_knowledge, field) in
            [(RateKnowledge::Aware, "unpacked"), (RateKnowledge::Packed, "packed")]
        {
            let allocation =
                MaxMin::new(rate_knowledge).allocate(&instance).expect("the instance is sound");
            let expected = case["expected"][field]
                .as_f64()
                .or(case[field].as_f64())
                .expect("the file is as its readme says");
            let found = allocation.objective;
            assert!((found - expected).abs() < TOLERANCE, "{}: {found} {expected}", case["n"]);
            assert!(is_feasible(&instance, &allocation), "{}", case["n"]);
            assert_eq!(allocation.fallback, None, "{}", case["n"]);
        }
    }
}
