//! The scenarios of the examples run, and do what they say.

use crate::program::{Folder, Tables, repository};

#[test]
fn every_example_scenario_runs_on_the_lecture_trace() {
    let folder = Folder::new();
    let trace = repository("testdata/traces/lecture");
    let scenarios = std::fs::read_dir(repository("examples/scenarios")).expect("they are there");
    let mut count = 0;
    for scenario in scenarios {
        let path = scenario.expect("the folder can be read").path();
        let path = path.to_str().expect("the path is text");
        // Speeds of GPU models that the lecture's machines do not have.
        let cluster = match path.contains("published-speeds") {
            true => format!("--cluster {}", repository("examples/clusters/pai.toml")),
            false => String::new(),
        };
        for policy in ["fifo", "srtf"] {
            let line = format!(
                "simulate --trace {trace} {cluster} --policy {policy} --json --scenario {path}"
            );
            let run = folder.json(&line);
            assert_eq!(run["jobs_done"], 4, "{path} under {policy}");
        }
        count += 1;
    }
    assert!(count >= 4, "only {count} scenarios");
}

/// Numbers of the lecture example under a policy and an example scenario.
fn lecture(policy: &str, scenario: &str) -> serde_json::Value {
    let trace = repository("testdata/traces/lecture");
    let scenario = repository(&format!("examples/scenarios/{scenario}.toml"));
    let line = format!("simulate --trace {trace} --json --policy {policy} --scenario {scenario}");
    Folder::new().json(&line)
}

#[test]
fn a_failed_node_costs_the_work_since_the_last_save() {
    let run = lecture("fifo", "node-failures");
    // Down from 20 to 50. Job 0 has worked 20 s and saved 20, job 2 has worked 10 and saved 10;
    // job 1 was done at 10. From 50: job 0 for 10 s, job 2 for 15, then job 3 from 60 to 100.
    assert_eq!(run["makespan_s"], 100.0);
    assert_eq!(run["avg_jct_s"], (60.0 + 10.0 + 64.0 + 96.0) / 4.0);
}

#[test]
fn a_save_that_a_job_makes_by_itself_takes_time() {
    let folder = Folder::new();
    Tables::new().job("a", 0, "1,1000,,1000,100000,").write(&folder);
    let simulated = |scenario: &str| {
        folder.write("s.toml", scenario);
        folder.json("simulate --trace trace --policy fifo --json --scenario s.toml")
    };
    // After 30, 60 and 90 s of work; the end is no time to save.
    let run = simulated("[checkpoint]\nsave_secs = 4\nevery_secs = 30\n");
    assert_eq!(run["avg_jct_s"], 112.0);
    let run = simulated("[checkpoint]\nsave_secs = 4\nevery_secs = 50\n");
    assert_eq!(run["avg_jct_s"], 104.0);
    let run = simulated("[checkpoint]\nsave_secs = 4\n");
    assert_eq!(run["avg_jct_s"], 100.0);
    // Down from 66 to 70: the second save, from 64 on, is not done: 30 are safe, 30 are lost.
    let fault = "[[fault]]\nkind = 'node-down'\nnode = 'n1'\nat_secs = 66\nfor_secs = 4\n";
    let run = simulated(&format!("[checkpoint]\nsave_secs = 4\nevery_secs = 30\n{fault}"));
    assert_eq!(run["lost_work_s"], 30.0);
    assert_eq!(run["avg_jct_s"], 70.0 + 70.0 + 8.0);
}

/// Four hundred jobs of eight hours on machines that fail every ten, and a minute to save: by the
/// formula every 34.6 minutes, which costs the root of 2 x 60 / 36,000, or 5.8 % more GPU time.
#[test]
fn the_best_interval_between_saves_is_about_that_of_the_formula() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = "node_id,gpu_count,cpu_milli\n".to_owned();
    (0..80).for_each(|node| tables.nodes += &format!("n{node},1,8000\n"));
    for job in 0..400 {
        tables = tables.job(&format!("j{job}"), job * 720_000, "1,1000,,1000,28800000,");
    }
    tables.write(&folder);
    let costs = "[checkpoint]\nsave_secs = 60\n";
    let failures = "[failures]\nmtbf_hours = 10\nrepair_hours = 0.1\nseed = 3\n";
    folder.write("s.toml", format!("{costs}{failures}"));
    let line = "simulate --trace trace --policy fifo --scenario s.toml --best-interval";
    let found = folder.json(&format!("{line} --json"));
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    assert_eq!(number(&found["formula_s"]).round(), 2078.0);
    let best = number(&found["best_s"]);
    assert!((1039.0..=4156.0).contains(&best), "best every {best} s");
    let intervals = found["intervals"].as_array().expect("a list");
    let hours = |at: usize| number(&intervals[at]["gpu_hours"]);
    let least = (0..intervals.len()).map(hours).fold(f64::INFINITY, f64::min);
    let more = least / 3200.0 - 1.0;
    assert!((0.04..0.08).contains(&more), "{more} more than the work itself");
    // Without saves, with far too many and with far too few.
    for at in [0, 1, intervals.len() - 1] {
        assert!(hours(at) > 1.05 * least, "{}", intervals[at]);
    }
    let text = folder.quiet(line);
    assert!(text.contains("by the formula of Young and Daly: 34.6 min"), "{text}");
    folder.write("s.toml", costs);
    folder.run(line).fails(1, &["machines never fail here"]);
    folder.write("s.toml", failures);
    folder.run(line).fails(1, &["saving takes no time here"]);
}

#[test]
fn the_best_interval_for_jobs_most_of_which_are_rejected_is_no_success() {
    let folder = Folder::new();
    Tables::new().plain_job("runs", 0).job("never", 0, "1,9000,,1000,10000,").write(&folder);
    let costs = "[checkpoint]\nsave_secs = 60\n[failures]\nmtbf_hours = 10\nrepair_hours = 0.1\n";
    folder.write("s.toml", costs);
    let line = "simulate --trace trace --policy fifo --scenario s.toml --best-interval";
    let ran = folder.run(line);
    assert!(ran.stdout.contains("best: "), "{}", ran.stdout);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    for words in ["warning: rejected 1: ", "`never`", "`fifo` rejected 1 of 2 jobs"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn a_scenario_takes_the_place_of_the_examples_own() {
    let folder = Folder::new();
    folder.write("plain.toml", "");
    let hours = |line: &str| {
        let run = folder.json(&format!("simulate --json {line}"));
        run["gpu_hours"].as_f64().expect("a number")
    };
    // Whoever is stopped holds its GPUs while it saves and loads, where a scenario says so.
    let (own, plain) = (hours("--policy srtf"), hours("--policy srtf --scenario plain.toml"));
    assert!(plain < own, "{plain} of {own} GPU hours");
    let speeds = repository("examples/scenarios/published-speeds.toml");
    let (plain, slower) =
        (hours("--policy fifo"), hours(&format!("--policy fifo --scenario {speeds}")));
    assert!(plain < 0.9 * slower, "{plain} of {slower} GPU hours");
}
