//! `hostler predict`, and simulations by what it trained.

use serde_json::Value;

use crate::program::{Folder, Tables};

/// Ten jobs of one user, a hundred seconds apart, that take ten seconds; the last takes forty.
fn ten_jobs(folder: &Folder) {
    let mut tables = Tables::new();
    for number in 0..9 {
        tables = tables.plain_job(&format!("j{number}"), number * 100_000);
    }
    tables.job("last", 900_000, "1,1000,,1000,40000,").write(folder);
}

#[test]
fn every_predictor_is_judged_by_jobs_it_has_not_seen() {
    let folder = Folder::new();
    ten_jobs(&folder);
    let judgement = folder.json("predict eval --trace trace --json");
    assert_eq!([&judgement["learnt"], &judgement["judged"]], [8, 2]);
    let results = judgement["results"].as_array().unwrap();
    let name = |row: &Value| {
        let word = |key: &str| row[key].as_str().unwrap().to_owned();
        format!("{} {} {}", word("learning"), word("model"), word("features"))
    };
    let names: Vec<String> = results.iter().map(name).collect();
    let all =
        ["median user", "median user+group", "median user+group+gpu", "cart all", "blend all"];
    let expected =
        ["trained", "online"].iter().flat_map(|way| all.map(|who| format!("{way} {who}")));
    assert_eq!(names, expected.collect::<Vec<_>>());
    for row in results {
        // Ten seconds are right for the first of the two and a quarter of the truth for the last.
        assert_eq!(row["share_under_25"], 0.5, "{row}");
        let near = |key: &str, value: f64| (row[key].as_f64().unwrap() - value).abs() < 1e-4;
        assert!(near("mae_s", 15.0), "{row}");
        assert!(near("median_error", 0.0), "{row}");
    }
    // Nobody waits, so that no order is better than another.
    assert!(results.iter().all(|row| row["gap_closed"].is_null()), "{results:?}");
    let text = folder.quiet("predict eval --trace trace --model cart");
    assert!(text.contains("hardly anybody waits here"), "{text}");
    assert!(text.contains("judged by 2 jobs, trained on 8 that ended before"), "{text}");
    assert!(text.contains("online    cart    all                 50.0 %"), "{text}");
}

#[test]
fn a_trained_model_tells_a_policy_what_to_expect() {
    let folder = Folder::new();
    // Jobs on two GPUs were short, those on one were long.
    let mut before = Tables::new();
    for number in 0..80 {
        before = before.job(&format!("s{number}"), number * 200_000, "1,2000,,1000,5000,");
        before = before.job(&format!("l{number}"), number * 200_000 + 1, "1,1000,,1000,50000,");
    }
    before.write(&folder);
    for model in ["median", "cart", "blend"] {
        let line = format!("predict train --trace trace --model {model} --out {model}.json");
        assert_eq!(folder.quiet(&line), format!("learnt from 160 jobs, in {model}.json\n"));
    }
    // Both GPUs are taken; then the long job comes before the short one. Without a model nobody
    // knows and the first comes first.
    let now = Tables::new()
        .job("first", 0, "1,2000,,1000,10000,")
        .job("long", 1000, "1,1000,,1000,50000,")
        .job("short", 2000, "1,2000,,1000,5000,");
    now.write(&folder);
    let jct = |settings: &str| {
        let line = format!("simulate --trace trace --policy sjf --json --set {settings}");
        folder.json(&line)["avg_jct_s"].as_f64().unwrap()
    };
    // first 10, short 13, long 64; else first 10, long 59, short 63.
    assert_eq!(jct("estimate=trained --estimates cart.json"), 29.0);
    assert_eq!(jct("estimate=trained --estimates blend.json"), 29.0);
    assert_eq!(jct("estimate=user"), 44.0);
    assert_eq!(jct("estimate=oracle"), 29.0);
    // Who sends them is the same, so medians do not tell them apart.
    assert_eq!(jct("estimate=trained --estimates median.json"), 44.0);
}

#[test]
fn a_model_that_is_missing_or_none_is_told_and_one_for_nothing_too() {
    let folder = Folder::new();
    ten_jobs(&folder);
    let simulate = "simulate --trace trace --policy sjf";
    let trained = format!("{simulate} --set estimate=trained");
    folder.run(&trained).fails(2, &["`sjf`", "`estimate` is \"trained\"", "--estimates FILE"]);
    let compare = "compare --trace trace --policies fifo,srtf:estimate=trained";
    folder.run(compare).fails(2, &["`srtf`", "--estimates FILE"]);
    folder.run(&format!("{trained} --estimates no.json")).fails(1, &["cannot read `no.json`"]);
    folder.write("bad.json", "{\"format\":\"hostler-model\",\"version\":7}");
    let bad = format!("{trained} --estimates bad.json");
    folder.run(&bad).fails(1, &["`bad.json`", "`version` of the model: 7", "train it again"]);
    folder.run("predict train --trace trace --out model.json").ok();
    let idle = folder.run(&format!("{simulate} --estimates model.json")).ok();
    assert!(idle.stderr.contains("warning: no policy goes by `model.json`"), "{}", idle.stderr);
    folder.run("predict eval --trace trace --model oak").fails(2, &["oak", "median, cart, blend"]);
    folder.run("predict eval --trace trace --min-samples 0").fails(2, &["1..=50"]);
}

#[test]
fn too_few_jobs_are_refused() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    folder.run("predict eval --trace trace").fails(1, &["1 jobs are too few"]);
}

/// Bursts on two GPUs, each of a long job on one and short ones on two, in an order that is wrong.
fn bursts(folder: &Folder) {
    let mut tables = Tables::new();
    for burst in 0..40 {
        let at = burst * 400_000;
        tables = tables.job(&format!("l{burst}"), at, "1,2000,,1000,200000,");
        tables = tables.job(&format!("m{burst}"), at + 1000, "1,2000,,2000,100000,");
        for number in 0..3 {
            let name = format!("s{burst}-{number}");
            tables = tables.job(&name, at + 2000 + number, "1,1000,,1000,5000,");
        }
    }
    tables.write(folder);
}

#[test]
fn what_an_order_by_estimates_gains_is_told() {
    let folder = Folder::new();
    bursts(&folder);
    let judgement = folder.json("predict eval --trace trace --json");
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap();
    let ends = &judgement["simulated"];
    let (first, best) = (number(ends, "by_submission_s"), number(ends, "by_truth_s"));
    assert!(best < first, "{ends}");
    for row in judgement["results"].as_array().unwrap() {
        let gained = (first - number(row, "avg_jct_s")) / (first - best);
        assert!((number(row, "gap_closed") - gained).abs() < 1e-9, "{row}");
        // What jobs ask for tells them apart; who sends them does not.
        match row["model"].as_str().unwrap() {
            "median" => assert!(number(row, "rank_correlation") < 0.5, "{row}"),
            _ => {
                assert!(number(row, "rank_correlation") > 0.9, "{row}");
                assert!(gained > 0.9, "{row}");
            }
        }
    }
    let text = folder.quiet("predict eval --trace trace --model blend --load 3");
    assert!(text.contains("at load 3.00: between "), "{text}");
    folder.run("predict eval --trace trace --load 0").fails(2, &["--load", "above 0"]);
}
