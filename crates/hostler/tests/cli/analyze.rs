//! `hostler analyze`: the summary, JSON, the report, and what is missing.

use std::path::Path;

use serde_json::Value;

use crate::program::Folder;

fn testdata(name: &str) -> String {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata")
        .join(name)
        .display()
        .to_string()
}

fn fact(result: &Value, figure: &str, key: &str) -> f64 {
    let named = |list: &Value, name: &str| {
        let entries = list.as_array().expect("a list");
        entries.iter().find(|entry| entry["key"] == name).cloned().expect("an entry of that name")
    };
    named(&named(&result["figures"], figure)["facts"], key)["value"].as_f64().expect("a number")
}

#[test]
fn findings_come_first_and_what_is_missing_is_named_with_exit_code_0() {
    let folder = Folder::new();
    let ran = folder.run(&format!("analyze {}", testdata("traces/example_2k"))).ok();
    let first = ran.stdout.lines().nth(2).expect("a summary");
    assert_eq!(first, "Findings, the most important first:");
    let missing = "machine-use: not computed: needs use of machines";
    assert!(ran.stdout.contains(missing), "{}", ran.stdout);
    assert_eq!(ran.stderr, "report: hostler-analysis.html\n");
    let page = folder.text("hostler-analysis.html");
    assert!(page.contains("79.8 % of instances run in gangs of two or more (n = 7,834)."));
    assert!(!page.contains("http://") || !page.contains("src=\"http"), "nothing is fetched");
}

#[test]
fn all_numbers_are_in_the_json() {
    let folder = Folder::new();
    let line = format!("analyze {} --json --out r.html", testdata("traces/example_2k"));
    let result = folder.json(&line);
    assert_eq!(fact(&result, "gang", "instances"), 7834.0);
    let tables = result["figures"][0]["tables"].as_array().expect("tables");
    assert!(tables.iter().all(|table| table["columns"].is_array() && table["rows"].is_array()));
}

/// Mean waiting on the mixed cluster is what the published program prints for the same table.
#[test]
fn a_table_of_the_published_simulator_is_simulated() {
    let folder = Folder::new();
    let trace = testdata("pai2020/mix_gang_1k.csv.gz");
    let result = folder.json(&format!("analyze {trace} --json"));
    assert!((fact(&result, "schedule", "pack") - 110.43).abs() < 0.01);
    assert!((fact(&result, "schedule", "balance") - 96.86).abs() < 0.01);
    assert!(result["figures"].to_string().contains("sju on 325 GPUs is left out"));
}

/// The published comparison replaces arrivals: what it shows is said to be of those, and only where
/// jobs would queue at their own times, too.
#[test]
fn a_comparison_with_other_arrivals_says_so() {
    let folder = Folder::new();
    for (name, per_hour, told) in [("quiet", 2, false), ("busy", 20_000, true)] {
        let options = format!("--jobs 500 --seed 7 --per-hour {per_hour}");
        folder
            .quiet(&format!("trace gen pai-like {options} --format pai-sim-estimate --out {name}"));
        let result = folder.json(&format!("analyze {name} --json"));
        let note = "Arrivals are not those of the table: 1000 jobs come each minute";
        assert!(result["figures"].to_string().contains(note));
        let findings = result["findings"].as_array().expect("a list");
        let found = findings.iter().find(|finding| finding["figure"] == "completion-time");
        let text = found.map(|finding| finding["text"].as_str().expect("a text"));
        let words = "by 38.0 % on a pool of 20 GPUs, if jobs came at 1000 a minute";
        assert_eq!(text.is_some_and(|text| text.contains(words)), told, "{name}: {text:?}");
        assert_eq!(text.is_some(), told, "{name}: {text:?}");
    }
}

#[test]
fn two_workloads_are_shown_side_by_side() {
    let folder = Folder::new();
    for (name, jobs) in [("before", 100), ("now", 150)] {
        folder.quiet(&format!("trace gen pai-like --jobs {jobs} --seed 7 --out {name}"));
    }
    let ran = folder.run("analyze now --against before").ok();
    assert!(ran.stdout.starts_with("before: before: 100 jobs"), "{}", ran.stdout);
    let tasks = ran.stdout.lines().find(|line| line.trim_start().starts_with("tasks with a run"));
    let words: Vec<&str> = tasks.expect("a line").split_whitespace().skip(5).collect();
    assert_eq!(words, ["100", "150", "+50", "%"]);
    let page = folder.text("hostler-analysis.html");
    assert!(page.contains("<h2 id=\"against\">Before and now</h2>"), "no section");
    let both = folder.json("analyze now --against before --json");
    assert_eq!(fact(&both["before"], "runtime", "with_times"), 100.0);
    assert_eq!(fact(&both["now"], "runtime", "with_times"), 150.0);
    folder.run("analyze now --against missing").fails(1, &["missing"]);
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = Folder::new();
    folder.run("analyze missing").fails(1, &["missing"]);
    folder.write("empty/readme.txt", "nothing");
    folder.run("analyze empty").fails(1, &["no tables in `empty`", "pai_task_table.csv"]);
    folder.write("bad/jobs.csv", "job_id\n");
    folder.write("bad/tasks.csv", "job_id,count\n");
    folder.run("analyze bad").fails(1, &["jobs.csv", "submit_ms"]);
}
