//! Throughput tables from both formats, and what profiles make of them.

use std::fmt::Write as _;
use std::path::PathBuf;

use expect_test::expect;
use hostler_core::cluster::GpuModel;
use hostler_core::id::{ModelId, ProfileKey};
use hostler_core::units::Mib;
use serde_json::Value;

use super::super::error::{Faults, TraceError};
use super::super::throughputs::{
    Throughputs, read_gavel_throughputs, read_pair_table, read_throughput_table, read_throughputs,
};
use super::{Scratch, told};
use crate::fixture::published_data;

const ALONE: &str = "workload,gpu_model,gpus,spread,steps_per_sec\n\
                     resnet,V100,1,0,8\nresnet,V100,2,0,14.5\nresnet,V100,2,1,7.25\n\
                     resnet,K80,1,0,2\nresnet,K80,2,0,0\nlm,V100,1,0,3\nlm,K80,1,0,0.001\n";
const PAIRS: &str = "workload,other,gpu_model,steps_per_sec,other_steps_per_sec\n\
                     resnet,lm,V100,6,2\nlm,lm,K80,0,0\n";

fn csv(alone: &str, pairs: &str) -> Result<Throughputs, TraceError> {
    let (mut tables, mut faults) = (Throughputs::default(), Faults::default());
    read_throughput_table(&mut alone.as_bytes(), "throughputs.csv", &mut tables, &mut faults);
    read_pair_table(&mut pairs.as_bytes(), "pairs.csv", &mut tables, &mut faults);
    faults.or(tables)
}

fn json(text: &str) -> Result<Throughputs, TraceError> {
    let (mut tables, mut faults) = (Throughputs::default(), Faults::default());
    read_gavel_throughputs(&mut text.as_bytes(), "t.json", &mut tables, &mut faults);
    faults.or(tables)
}

pub(super) fn models(names: &[&str]) -> Vec<GpuModel> {
    let model = |name: &&str| GpuModel {
        name: (*name).into(),
        mem: Mib(1),
        tier: 0,
        mig_slices: 0,
        idle_watts: 0,
        busy_watts: 0,
    };
    names.iter().map(model).collect()
}

/// Speeds by workload, model and gang; pairs below them.
fn listed(tables: &Throughputs, cluster: &[&str]) -> String {
    let mut text = String::new();
    for (profile, name) in tables.profiles(&models(cluster)).iter().zip(tables.workloads()) {
        for (run, pace) in profile.measured.alone() {
            let spread = if run.1 { "spread " } else { "" };
            let model = cluster[run.0.index()];
            let _ = writeln!(text, "{name} {spread}{}x{model}: {}", run.2, pace.steps_per_sec());
        }
        for (run, _) in profile.measured.pairs() {
            let other = &tables.workloads()[run.0.0 as usize];
            let (own, others) = profile.pair_rates(run.0, run.1, run.2).unwrap();
            let model = cluster[run.1.index()];
            let _ = writeln!(text, "{name} + {other} {}x{model}: {own} {others}", run.2);
        }
    }
    text
}

#[test]
fn tables_of_speeds_and_pairs_become_profiles_of_a_cluster() {
    // The cluster spells its models otherwise, has another order, and one more.
    let tables = csv(ALONE, PAIRS).unwrap();
    expect![[r#"
        resnet 1xk80: 2
        resnet 2xk80: 0
        resnet 1xv100: 8
        resnet 2xv100: 14.5
        resnet spread 2xv100: 7.25
        resnet + lm 1xv100: 6 2
        lm 1xk80: 0.001
        lm 1xv100: 3
        lm + resnet 1xv100: 2 6
        lm + lm 1xk80: 0 0
    "#]]
    .assert_eq(&listed(&tables, &["k80", "t4", "v100"]));
}

#[test]
fn bad_rows_are_told_with_file_line_column_and_value() {
    let alone = "workload,gpu_model,gpus,spread,steps_per_sec\n,V100,1,0,1\na,V100,0,0,1\n\
                 a,V100,1,2,1\na,V100,1,0,-1\nb,V100,1,0,1e7\nc,V100,1,0,nan\nd,V100,1,0,\n\
                 e,V100,1,0,1\nE,v100,1,0,1\n";
    let pairs = "workload,other,gpu_model,steps_per_sec,other_steps_per_sec\ne,zz,V100,1,1\n";
    expect![[r#"
        throughputs.csv:2: column `workload`: value is empty
        throughputs.csv:3: column `gpus`: less than 1: `0`
        throughputs.csv:4: column `spread`: unknown value; known: 0, 1: `2`
        throughputs.csv:5: column `steps_per_sec`: negative: `-1`
        throughputs.csv:6: column `steps_per_sec`: larger than 1000000: `1e7`
        throughputs.csv:7: column `steps_per_sec`: not a number: `nan`
        throughputs.csv:8: column `steps_per_sec`: value is empty
        throughputs.csv:10: column `workload`: the same run is there already: `E`
        pairs.csv:2: column `other`: no such workload in `throughputs.csv`: `zz`
    "#]]
    .assert_eq(&told(csv(alone, pairs)));
    expect![[r#"
        throughputs.csv:1: unknown column; known: workload, gpu_model, steps_per_sec, gpus, spread: `speed`
        throughputs.csv:1: column `steps_per_sec`: column is missing
        pairs.csv: the file is empty; expected a header line
    "#]]
    .assert_eq(&told(csv("workload,gpu_model,speed\n", "")));
}

#[test]
fn the_json_of_gavel_holds_gangs_spread_gangs_and_pairs() {
    let text = r#"{
        "v100": {"('a (batch 1)', 1)": {"null": 8.0, "('b', 1)": [6.0, 2.0]},
                 "('a (batch 1)', 2)": {"null": 15, "('b', 2)": [0.0, 0.0]},
                 "('b', 1)": {"null": 3.5}},
        "v100_unconsolidated": {"('a (batch 1)', 2)": {"null": 9.5, "('b', 2)": [1, 1]}},
        "k80": {"('b', 1)": {"null": 0.0}}}"#;
    expect![[r#"
        a (batch 1) 1xV100: 8
        a (batch 1) 2xV100: 15
        a (batch 1) spread 2xV100: 9.5
        a (batch 1) + b 1xV100: 6 2
        b 1xV100: 3.5
        b 1xK80: 0
        b + a (batch 1) 1xV100: 2 6
    "#]]
    .assert_eq(&listed(&json(text).unwrap(), &["V100", "K80"]));
}

#[test]
fn json_that_is_no_table_is_told_with_its_line() {
    let faults = [
        "[1]",
        "{\"v100\":\n{\"a\": {}}}",
        "{\"v100\":\n{\"('a', 0)\": {}}}",
        "{\"v100\": {\"('a', 1)\":\n{\"null\": -1.0}}}",
        "{\"v100\": {\"('a', 1)\": {\"null\": 1,\n\"null\": 1}}}",
        "{\"v100\": {\"('a', 1)\": {\"('b', 2)\": [1, 1]}}}",
        "{\"v100\": {\"('a', 1)\": {\"('b', 1)\": [1, 1, 1]}}}",
        "{\"v100\": {",
    ];
    let told: String = faults.iter().map(|text| told(json(text))).collect();
    expect![[r#"
        t.json:1: cannot read on: invalid type: sequence, expected worker types with their workloads
        t.json:2: cannot read on: `a` is no workload like `('name', 1)`
        t.json:2: cannot read on: `(\'a\', 0)` is no workload like `('name', 1)`
        t.json:2: cannot read on: -1: a speed is a number of steps per second from 0 to a million
        t.json:2: cannot read on: the speed alone is there twice
        t.json:1: cannot read on: pair `(\'b\', 2)` with a workload on 1 GPUs
        t.json:1: cannot read on: trailing characters
        t.json:1: cannot read on: EOF while parsing an object
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_table_is_found_by_its_name_packed_or_in_a_folder() {
    let scratch = Scratch::new();
    let file = scratch.write("speeds.csv", ALONE);
    assert_eq!(read_throughputs(&file).unwrap().rows(), (7, 0));
    scratch.write("throughputs.csv", ALONE);
    scratch.write("pairs.csv", PAIRS);
    // One pair told from one side becomes two.
    assert_eq!(read_throughputs(scratch.0.path()).unwrap().rows(), (7, 3));
    let packed = zstd::encode_all(&b"{\"v100\": {\"('a', 1)\": {\"null\": 1}}}"[..], 0).unwrap();
    let file = scratch.write("t.json.zst", packed);
    assert_eq!(read_throughputs(&file).unwrap().rows(), (1, 0));
}

fn own_table() -> PathBuf {
    super::testdata("../gavel/own_throughputs.json")
}

/// Every number of a JSON table against what profiles say: the largest relative difference.
fn largest_error(path: &std::path::Path, cluster: &[&str]) -> f64 {
    let tables = read_throughputs(path).unwrap();
    let profiles = tables.profiles(&models(cluster));
    let mut bytes = Vec::new();
    match path.extension().is_some_and(|extension| extension == "gz") {
        true => {
            let file = std::fs::File::open(path).unwrap();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut bytes)
                .unwrap();
        }
        false => bytes = std::fs::read(path).unwrap(),
    }
    let mut worst: f64 = 0.0;
    let mut compare = |expected: &Value, found: f64| {
        let expected = expected.as_f64().unwrap();
        worst = worst.max((found - expected).abs() / expected.max(1e-9));
    };
    let split = |key: &str| {
        let (name, gpus) = key[2..key.len() - 1].rsplit_once("', ").unwrap();
        (tables.key(name).unwrap(), gpus.parse::<u32>().unwrap())
    };
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    for (kind, workloads) in value.as_object().unwrap() {
        let name = kind.strip_suffix("_unconsolidated").unwrap_or(kind);
        let spread = name.len() < kind.len();
        let model = cluster.iter().position(|known| known.eq_ignore_ascii_case(name)).unwrap();
        let model = ModelId(model as u32);
        for (key, speeds) in workloads.as_object().unwrap() {
            let (ProfileKey(workload), gpus) = split(key);
            let profile = &profiles[workload as usize];
            for (other, speed) in speeds.as_object().unwrap() {
                if other == "null" {
                    compare(speed, profile.steps_per_sec(model, gpus, spread));
                } else if !spread {
                    let pair = profile.pair_rates(split(other).0, model, gpus).unwrap();
                    compare(&speed[0], pair.0);
                    compare(&speed[1], pair.1);
                }
            }
        }
    }
    worst
}

#[test]
fn every_number_of_a_table_comes_back_out_of_the_profiles() {
    let error = largest_error(&own_table(), &["P100", "K80", "V100"]);
    assert!(error < 1e-9, "{error}");
}

#[test]
fn the_published_table_has_the_figures_it_is_known_for() {
    let Some(folder) = published_data("the_published_table_has_the_figures_it_is_known_for") else {
        return;
    };
    let path = folder.join("theirs/gavel/simulation_throughputs.json.gz");
    let cluster = ["V100", "P100", "K80"];
    let tables = read_throughputs(&path).unwrap();
    let profiles = tables.profiles(&models(&cluster));
    let mut text = format!("{} workloads\n", profiles.len());
    let key = tables.key("Recommendation (batch size 512)").unwrap();
    for (at, name) in cluster.iter().enumerate() {
        let model = ModelId(at as u32);
        let speed = profiles[key.0 as usize].steps_per_sec(model, 1, false);
        let mut spread = Vec::new();
        for profile in &profiles {
            for (run, pace) in profile.measured.alone() {
                let close = profile.steps_per_sec(model, run.2, false);
                if run.0 == model && run.1 && run.2 > 1 && close > 0.0 {
                    spread.push(pace.steps_per_sec() / close);
                }
            }
        }
        let mean = spread.iter().sum::<f64>() / spread.len().max(1) as f64;
        let _ = writeln!(text, "{name}: recommendation {speed:.1}, spread gangs keep {mean:.2}");
    }
    expect![[r#"
        26 workloads
        V100: recommendation 23.3, spread gangs keep 0.54
        P100: recommendation 48.9, spread gangs keep 0.70
        K80: recommendation 32.9, spread gangs keep 0.99
    "#]]
    .assert_eq(&text);
    let error = largest_error(&path, &cluster);
    println!("largest relative error of a speed: {error:.1e}");
    assert!(error < 1e-6, "{error}");
}
