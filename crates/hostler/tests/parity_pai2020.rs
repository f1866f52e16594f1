//! Golden rows of the published PAI simulator, through the program.
//!
//! Rows on inputs of this project always run. Rows on the published inputs run when the folder
//! that `HOSTLER_PARITY_DATA` names is there, and are reported as skipped by name otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;

use hostler_sim::fixture::published_data;

/// Settings, and what each policy gives: mean completion time, mean wait, makespan, instances.
struct Case {
    file: &'static str,
    settings: &'static [&'static str],
    rows: &'static [(&'static str, f64, f64, u64, u64)],
}

const PACK: &[&str] = &["--cluster", "hetero", "--nodes", "pack"];
const BALANCE: &[&str] = &["--cluster", "hetero", "--nodes", "balance"];

const OURS: &[Case] = &[
    Case {
        file: "mix_est_1k.csv.gz",
        settings: &["--gpus", "150", "--arrivals-per-minute", "100"],
        rows: &[
            ("sjf", 11544.57, 4854.09, 342_565, 1000),
            ("sju", 11691.70, 5001.22, 335_920, 1000),
            ("sjg", 11586.51, 4896.03, 344_688, 1000),
            ("sjgg", 11586.51, 4896.03, 344_688, 1000),
            ("fifo", 12329.30, 5638.82, 330_140, 1000),
        ],
    },
    Case {
        file: "mix_gang_1k.csv.gz",
        settings: PACK,
        rows: &[("fifo", 8880.69, 110.43, 305_587, 5879)],
    },
    Case {
        file: "mix_gang_1k.csv.gz",
        settings: BALANCE,
        rows: &[("fifo", 8867.13, 96.86, 305_587, 5879)],
    },
    Case {
        file: "synth_gang_300.csv.gz",
        settings: PACK,
        rows: &[("fifo", 3462.07, 0.00, 164_066, 1813)],
    },
    Case {
        file: "synth_gang_300.csv.gz",
        settings: BALANCE,
        rows: &[("fifo", 3469.42, 7.35, 164_066, 1813)],
    },
    Case {
        file: "synth_gang_600.csv.gz",
        settings: PACK,
        rows: &[("fifo", 2893.32, 147.09, 164_066, 3000)],
    },
    Case {
        file: "synth_gang_600.csv.gz",
        settings: BALANCE,
        rows: &[("fifo", 3111.54, 365.32, 164_066, 3000)],
    },
    Case {
        file: "synth_est_20k.csv.gz",
        settings: &[],
        rows: &[
            ("sjf", 4745.14, 880.39, 607_154, 20_000),
            ("sju", 5559.24, 1694.49, 600_334, 20_000),
            ("sjg", 4722.42, 857.67, 606_965, 20_000),
            ("sjgg", 4738.63, 873.88, 607_013, 20_000),
            ("fifo", 6834.53, 2969.78, 601_054, 20_000),
        ],
    },
];

const THEIRS: &[Case] = &[
    Case {
        file: "pai_real_1990.csv.gz",
        settings: &["--gpus", "100"],
        rows: &[
            ("sjf", 8047.38, 3035.49, 313_548, 1990),
            ("sju", 9463.40, 4451.50, 299_575, 1990),
            ("sjg", 8637.71, 3625.82, 300_376, 1990),
            ("sjgg", 8537.41, 3525.51, 300_644, 1990),
            ("fifo", 15614.28, 10602.39, 289_415, 1990),
        ],
    },
    Case {
        file: "pai_real_1990.csv.gz",
        settings: PACK,
        rows: &[("fifo", 5011.89, 0.00, 288_322, 1990)],
    },
    Case {
        file: "pai_real_1990.csv.gz",
        settings: BALANCE,
        rows: &[("fifo", 5011.92, 0.02, 288_322, 1990)],
    },
];

/// Mean completion times on the published input by size of the pool.
const SWEEP: &[(&str, &str, f64)] = &[
    ("200", "fifo", 8150.31),
    ("200", "sjf", 6020.92),
    ("200", "sjgg", 6119.33),
    ("200", "sjg", 6178.18),
    ("200", "sju", 6416.67),
    ("50", "fifo", 34310.53),
    ("50", "sjf", 12649.53),
    ("50", "sjgg", 14755.70),
    ("50", "sjg", 15289.96),
    ("50", "sju", 17038.50),
];

fn run(file: &Path, policy: &str, settings: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["parity", "pai2020", "--json", "--policy", policy, "--trace"])
        .arg(file)
        .args(settings)
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{policy} on {}: {told}", file.display());
    serde_json::from_slice(&output.stdout).expect("the program prints JSON")
}

/// Within the two digits that the original prints.
fn assert_close(what: &str, got: &serde_json::Value, expected: f64) {
    let got = got.as_f64().expect("a number");
    assert!((got - expected).abs() <= 0.01, "{what}: {got}, expected {expected}");
}

fn check(folder: &Path, cases: &[Case]) {
    for case in cases {
        for (policy, jct, wait, makespan, done) in case.rows {
            let name = format!("{} {:?} {policy}", case.file, case.settings);
            let result = run(&folder.join(case.file), policy, case.settings);
            assert_close(&name, &result["avg_jct_s"], *jct);
            assert_close(&name, &result["avg_wait_s"], *wait);
            assert_eq!(result["makespan_s"], *makespan, "{name}");
            assert_eq!(result["done"], *done, "{name}");
        }
    }
}

#[test]
fn every_row_on_our_inputs_is_met() {
    check(
        &Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
            .join("../../testdata/pai2020"),
        OURS,
    );
}

#[test]
fn every_row_on_the_published_inputs_is_met() {
    let Some(data) = published_data("every_row_on_the_published_inputs_is_met") else { return };
    let folder = data.join("theirs/pai/sim");
    check(&folder, THEIRS);
    for (gpus, policy, jct) in SWEEP {
        let result = run(&folder.join("pai_real_1990.csv.gz"), policy, &["--gpus", gpus]);
        assert_close(&format!("{policy} on {gpus} GPUs"), &result["avg_jct_s"], *jct);
    }
}

/// Writes a table for one test.
fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder for tests can be written to");
    path
}

/// A V100 node with 2 GPUs and 30.72 CPUs taken is used to 28.5 per cent, which the original's
/// arithmetic rounds down: as much as the other V100 nodes, so job 2 joins job 0 there, and job 3
/// finds 6 GPUs together only when job 2 is done.
#[test]
fn half_a_per_cent_is_rounded_as_in_the_original() {
    let text = "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user\n\
                0,1,0,30.72,2,V100,1000,u\n1,47,0,5.28,4.04,V100,1000,u\n\
                2,1,0,1,1,V100,500,u\n3,1,0,1,6,V100,100,u\n";
    let result = run(&written("half-per-cent.csv", text), "fifo", BALANCE);
    assert_close("mean completion", &result["avg_jct_s"], (48.0 * 1000.0 + 500.0 + 600.0) / 50.0);
    assert_close("mean wait", &result["avg_wait_s"], 500.0 / 50.0);
}

/// What is not asked for is not needed: jobs 0 and 2 fill the GPU, one after the other, and job 1
/// needs none.
#[test]
fn an_empty_or_missing_request_is_none() {
    let text = "job_id,submit_time,num_cpu,num_gpu,duration\n\
                0,0,,1,100\n1,0,1,,100\n2,0,,1,100\n";
    let result = run(&written("empty-request.csv", text), "fifo", &["--gpus", "1"]);
    assert_close("mean completion", &result["avg_jct_s"], (100.0 + 100.0 + 200.0) / 3.0);
    let text = "job_id,submit_time,num_gpu,duration\n0,0,1,100\n1,0,1,100\n";
    let result = run(&written("no-request.csv", text), "fifo", &["--gpus", "1"]);
    assert_close("mean completion", &result["avg_jct_s"], 150.0);
}

#[test]
fn a_job_that_fits_no_node_is_named() {
    let text = "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user\n\
                7,1,0,1,9,V100,10,u\n8,1,0,1,1,V100,10,u\n";
    let file = written("no-node.csv", text);
    let output = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["parity", "pai2020", "--policy", "fifo", "--cluster", "hetero", "--trace"])
        .arg(&file)
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("1 jobs can never run on this cluster, among them 7"), "{told}");
}
