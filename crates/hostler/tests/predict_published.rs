//! How well predictors do on published traces: floors under the figures of `docs/predict.md`.
//!
//! Run when the folder that `HOSTLER_PARITY_DATA` names is there, and reported as skipped
//! otherwise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;
use std::process::Command;

use hostler_sim::fixture::published_data;
use serde_json::Value;

/// A trace, the machines that it is judged on, and the least share of jobs (in per cent) whose
/// estimate is off by less than a quarter. `gap` is the least part (in per cent) of what true run
/// times would gain over the order of submission.
struct Floor {
    file: &'static str,
    settings: &'static [&'static str],
    within_quarter: f64,
    gap: Option<f64>,
}

/// The shares are those of the best columns chosen by hand, with the median of the last twenty. On
/// the last trace users are not known, and little is gained by any order.
const FLOORS: &[Floor] = &[
    Floor {
        file: "pai/sim/pai_real_1990.csv.gz",
        settings: &["--any-gpu", "--cluster", "1x6"],
        within_quarter: 24.0,
        gap: Some(70.0),
    },
    Floor {
        file: "pai/openb",
        settings: &["--any-gpu", "--cluster", "1x8"],
        within_quarter: 20.0,
        gap: Some(70.0),
    },
    Floor {
        file: "philly/philly_82k.csv.gz",
        settings: &["--cluster", "32x8"],
        within_quarter: 44.0,
        gap: Some(70.0),
    },
    Floor {
        file: "pai/sim/philly_le4h_20k.csv.gz",
        settings: &["--any-gpu", "--cluster", "5x8"],
        within_quarter: 68.0,
        gap: None,
    },
];

fn hostler(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hostler")).args(arguments).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {words}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a predictor that learns online was found to be worth.
fn judged(trace: &Path, model: &str, settings: &[&str]) -> Value {
    let trace = trace.to_str().unwrap();
    let arguments = ["predict", "eval", "--trace", trace, "--model", model, "--json"];
    let judgement: Value = hostler(&[&arguments, settings].concat()).parse().unwrap();
    let results = judgement["results"].as_array().unwrap();
    let online = results.iter().find(|row| row["learning"] == "online").unwrap();
    online.clone()
}

fn percent(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap() * 100.0
}

#[test]
fn blends_are_as_good_as_columns_chosen_by_hand() {
    let Some(data) = published_data("blends_are_as_good_as_columns_chosen_by_hand") else { return };
    let scratch = tempfile::tempdir().unwrap();
    for (at, floor) in FLOORS.iter().enumerate() {
        let trace = scratch.path().join(at.to_string());
        let source = data.join("theirs").join(floor.file);
        let (source, out) = (source.to_str().unwrap(), trace.to_str().unwrap());
        hostler(&["trace", "convert", source, out, "--runnable"]);
        let row = judged(&trace, "blend", floor.settings);
        let share = percent(&row, "share_under_25");
        assert!(share >= floor.within_quarter, "{}: {share} %", floor.file);
        if let Some(gap) = floor.gap {
            let closed = percent(&row, "gap_closed");
            assert!(closed >= gap, "{}: {closed} %", floor.file);
        }
    }
}
