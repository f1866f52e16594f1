//! Scenarios that make no sense: each a clear error that names the key or the name.

use crate::program::{Folder, Tables};

#[track_caller]
fn refused(scenario: &str, words: &[&str]) {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    folder.write("s.toml", scenario);
    let ran = folder.run("simulate --policy fifo --trace trace --scenario s.toml");
    let words: Vec<&str> = std::iter::once("`s.toml`").chain(words.iter().copied()).collect();
    ran.fails(1, &words);
}

#[test]
fn unknown_keys_are_refused_with_their_line() {
    refused("[checkpoint]\nsave = 3\n", &["line 2", "unknown field `save`", "`save_secs`"]);
    refused("[checkpoint]\n\n[chekpoint]\n", &["line 3", "unknown field `chekpoint`"]);
    refused("[[fault]]\nkind = 'meteor'\n", &["line 2", "`meteor`", "`node-down`"]);
    refused("[[fault]]\nkind = 'node-down'\nnode = 'n1'\nat = 3\n", &["`at`", "`at_secs`"]);
    refused("[[fault]]\nkind = 'node-down'\nnode = 'n1'\n", &["line 1", "`at_secs`"]);
    refused("[checkpoint\n", &["line 1"]);
    refused("[physics]\nstart_delay_secs = 'soon'\n", &["line 2", "string"]);
}

#[test]
fn senseless_numbers_are_refused_by_key() {
    refused("[checkpoint]\nsave_secs = -1\n", &["`save_secs`: -1", "from 0"]);
    refused("[checkpoint]\nload_secs = nan\n", &["`load_secs`: NaN"]);
    refused("[checkpoint]\nevery_secs = inf\n", &["`every_secs`: inf"]);
    refused("[physics]\nstart_delay_secs = 1e300\n", &["`start_delay_secs`"]);
    let slow = "[physics]\nstart_delay_secs = 1801\n";
    refused(slow, &["`start_delay_secs`: 1801", "at most 1800"]);
    refused("[[profile]]\nmodel = '*'\nshared = 0\n", &["`shared`: 0", "above 0"]);
    refused("[[profile]]\nmodel = '*'\nrack = nan\n", &["`rack`: NaN"]);
    refused("[[profile]]\nmodel = '*'\ngpus = { V100 = -1 }\n", &["`gpus`: -1"]);
    refused("[failures]\nmtbf_hours = 0\nrepair_hours = 1\n", &["`mtbf_hours`: 0"]);
    refused("[failures]\nmtbf_hours = 1\nrepair_hours = nan\n", &["`repair_hours`: NaN"]);
    refused("[failures]\nmtbf_hours = 1\nrepair_hours = 1\nseed = -1\n", &["line 4"]);
    let fault = "[[fault]]\nkind = 'start-fails'\njob = 'a'\ntimes = -1\n";
    refused(fault, &["line 1"]);
}

#[test]
fn the_longest_start_that_is_waited_for_succeeds() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    folder.write("s.toml", "[physics]\nstart_delay_secs = 1800\n");
    let run = folder.json("simulate --policy fifo --trace trace --scenario s.toml --json");
    assert_eq!((&run["jobs_done"], &run["avg_jct_s"]), (&1.into(), &1810.0.into()));
}

#[test]
fn failures_without_end_are_refused() {
    let scenario = "[failures]\nmtbf_hours = 0.00001\nrepair_hours = 0.00001\n";
    refused(scenario, &["`mtbf_hours`", "1000000 failures"]);
}

#[test]
fn the_longest_repairs_that_are_allowed_are_drawn() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    folder.write("s.toml", "[failures]\nmtbf_hours = 1\nrepair_hours = 1000000\nseed = 2\n");
    folder.run("simulate --policy fifo --trace trace --scenario s.toml").ok();
}

#[test]
fn names_that_the_workload_does_not_have_are_refused() {
    let fault = |words: &str| format!("[[fault]]\n{words}\n");
    refused(&fault("kind = 'node-down'\nnode = 'n9'\nat_secs = 3"), &["no node `n9`"]);
    refused(&fault("kind = 'start-fails'\njob = 'b'\ntimes = 3"), &["no job `b`"]);
    let report = "kind = 'report'\njob = 'b'\nof = 'finish'\nhow = 'late'";
    refused(&fault(report), &["no job `b`"]);
    refused("[[profile]]\nmodel = '*'\ngpus = { H200 = 1 }\n", &["no GPU model `H200`"]);
}

#[test]
fn a_scenario_that_cannot_be_read_is_refused_by_name() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    let simulate = |scenario: &str| {
        folder.run(&format!("simulate --policy fifo --trace trace --scenario {scenario}"))
    };
    simulate("missing.toml").fails(1, &["cannot read `missing.toml`"]);
    simulate("trace").fails(1, &["cannot read `trace`"]);
    folder.write("binary.toml", b"\xff\xfe");
    simulate("binary.toml").fails(1, &["cannot read `binary.toml`", "UTF-8"]);
}
