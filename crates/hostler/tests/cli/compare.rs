//! `hostler compare`: the table, the report, JSON, and who takes part.

use crate::program::{Folder, Tables};

fn kinds(runs: &serde_json::Value) -> Vec<String> {
    let runs = runs["runs"].as_array().expect("runs are a list");
    runs.iter().map(|run| run["policy"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn without_arguments_the_example_is_compared_and_a_report_written() {
    let folder = Folder::new();
    let ran = folder.run("compare").ok();
    assert!(ran.stdout.starts_with("4,000 jobs, "), "{}", ran.stdout);
    assert!(ran.stderr.contains("report: hostler-report.html"), "{}", ran.stderr);
    let html = folder.text("hostler-report.html");
    assert!(html.to_lowercase().starts_with("<!doctype html>"), "{}", &html[..80]);
    for def in hostler_policies::builtin().all() {
        let row = ran.stdout.lines().any(|line| line.trim_start().starts_with(&*def.kind));
        assert!(row != is_left_out(&ran.stderr, &def.kind), "{}: {}", def.kind, ran.stdout);
        assert!(html.contains(&*def.kind), "{} is not in the report", def.kind);
    }
    assert!(ran.stdout.contains("slowdown"), "{}", ran.stdout);
    assert!(html.contains("data-chart=\"parts\""), "no picture of waiting and running");
}

#[test]
fn where_none_are_named_policies_learn_run_times_and_one_that_knows_them_is_a_bound() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    for at in 0..40 {
        let millis = if at % 2 == 0 { 90_000 } else { 1_000 };
        tables = tables.job(&format!("j{at}"), at * 1000, &format!("1,2000,,1000,{millis},"));
    }
    tables.write(&folder);
    let ran = folder.run("compare --trace trace --json").ok();
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let runs = result["runs"].as_array().expect("runs are a list");
    let settings = |at: usize| (&runs[at]["policy"], &runs[at]["settings"]);
    assert_eq!(settings(0), (&"fifo".into(), &"head=skips".into()));
    let learning = runs.iter().filter(|run| run["settings"] == "estimate=blend").count();
    let knowing = runs.iter().filter(|run| run["policy"] == "sjf" && run["settings"] == "").count();
    assert!(learning >= 4 && knowing == 1, "{runs:?}");
    assert!(ran.stderr.contains("sjf (true run times) knows them"), "{}", ran.stderr);
    let table = folder.run("compare --trace trace").ok().stdout;
    let bound = table.lines().find(|line| line.starts_with("sjf (true run times)"));
    assert!(!bound.expect("a row").contains('*'), "{table}");
}

/// Whether a line tells that a policy is left out.
fn is_left_out(said: &str, kind: &str) -> bool {
    let mut lines = said.lines().filter_map(|line| line.split_once(" left out: "));
    lines.any(|(kinds, _)| kinds.split([' ', ',']).any(|word| word == kind))
}

#[test]
fn policies_are_named_with_their_settings() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).plain_job("b", 0).plain_job("c", 0).write(&folder);
    let line = "compare --trace trace --policies fifo,sjf:preempt=true,sjf --json --out r.html";
    let result = folder.json(line);
    assert_eq!(kinds(&result), ["fifo", "sjf", "sjf"]);
    assert_eq!(result["runs"][1]["settings"], "preempt=true");
    assert_eq!(result["runs"][2]["settings"], "");
    assert_eq!(result["runs"][0]["avg_jct_s"], 40.0 / 3.0);
    assert!(folder.path("r.html").exists());
    assert!(!folder.path("hostler-report.html").exists());
    let table = folder.run("compare --trace trace --policies fifo:head=skips,sjf").ok().stdout;
    assert!(table.contains("\nfifo (head=skips) "), "{table}");
    assert!(table.contains("\nsjf "), "{table}");
}

#[test]
fn a_policy_with_nothing_to_go_by_is_left_out_unless_it_is_named() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).plain_job("b", 0).write(&folder);
    let ran = folder.run("compare --trace trace --json").ok();
    let result = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(!kinds(&result).contains(&"priority".to_owned()));
    assert!(is_left_out(&ran.stderr, "priority"), "{}", ran.stderr);
    assert!(is_left_out(&ran.stderr, "water-filling"), "{}", ran.stderr);
    let lines = ran.stderr.lines().filter(|line| line.contains("left out")).count();
    assert_eq!(lines, 2, "one for each reason: {}", ran.stderr);
    let named = folder.json("compare --trace trace --json --policies priority");
    assert_eq!(kinds(&named), ["priority"]);
}

#[test]
fn the_number_of_threads_changes_nothing_but_the_time() {
    let folder = Folder::new();
    folder.quiet("trace gen pai-like --jobs 60 --seed 5 --scale 60 --load 2 --out trace");
    let numbers = |threads: u32| {
        let line = format!("compare --trace trace --json --threads {threads}");
        let mut result = folder.json(&line);
        for run in result["runs"].as_array_mut().expect("runs are a list") {
            let run = run.as_object_mut().expect("a run is an object");
            run.remove("wall_s");
            run.remove("peak_rss_mib");
        }
        result
    };
    assert_eq!(numbers(1), numbers(3));
    assert_eq!(numbers(1), numbers(0));
}

#[test]
fn unknown_policies_and_settings_are_usage_errors() {
    let folder = Folder::new();
    let registry = hostler_policies::builtin();
    let all: Vec<&str> = registry.all().map(|def| &*def.kind).collect();
    let ran = folder.run("compare --policies fifo,fito");
    for kind in &all {
        assert!(ran.stderr.contains(kind), "{kind} is not named: {}", ran.stderr);
    }
    ran.fails(2, &["unknown policy `fito`"]);
    folder.run("compare --policies sjf:dept=3").fails(2, &["`sjf`", "dept"]);
    folder.run("compare --policies sjf:preempt").fails(2, &["invalid setting `preempt`"]);
    folder.run("compare --policies fifo,").fails(2, &["unknown policy ``"]);
    assert!(!folder.path("hostler-report.html").exists());
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_after_the_table() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    let ran = folder.run("compare --trace trace --policies fifo --out missing/r.html");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("fifo"), "the table is not lost: {}", ran.stdout);
    assert!(ran.stderr.contains("cannot write `missing/r.html`"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_text_is_written_all_the_same() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    let out = std::ffi::OsStr::from_bytes(b"r\xff.html");
    let mut command = folder.program();
    command.args(["compare", "--trace", "trace", "--policies", "fifo", "--out"]).arg(out);
    crate::program::Ran::of(&mut command).ok();
    assert!(folder.as_ref().join(out).exists());
}

#[test]
fn jobs_that_were_left_are_named_for_each_policy() {
    let folder = Folder::new();
    let mut tables = Tables::new().job("first", 0, "1,2000,,1000,20000,");
    tables = tables.job("second", 1, "1,2000,,1000,1000,").job("third", 2, "1,2000,,1000,1000,");
    tables.nodes = tables.nodes.replace(",,\n", ",0,10\n");
    tables.write(&folder);
    let ran = folder.run("compare --trace trace --policies fifo,sjf:preempt=true --json").ok();
    for words in [
        "warning: fifo: 3 jobs were left when nothing could happen any more:\n  job `first`: ",
        "job `third`: job `second` comes first\n",
        "warning: sjf preempt=true: 1 job was left when nothing could happen any more:",
    ] {
        assert!(ran.stderr.contains(words), "no `{words}` in: {}", ran.stderr);
    }
}

#[test]
fn an_empty_trace_is_compared_without_a_division_by_zero() {
    let folder = Folder::new();
    Tables::new().write(&folder);
    let result = folder.json("compare --trace trace --json --policies fifo,sjf");
    assert_eq!(result["runs"][0]["jobs_done"], 0);
    assert_eq!(result["runs"][0]["avg_jct_s"], 0.0);
}

/// A long job before two short ones on one GPU: sjf puts it last.
#[test]
fn the_report_has_contents_groups_and_changes_job_by_job() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = tables.nodes.replace("V100,2", "V100,1");
    tables.jobs = "job_id,user,queue,submit_ms\nfirst,ada,q,0\nlong,ada,q,1000\n\
                   short,bob,r,2000\n"
        .to_owned();
    tables.tasks +=
        "first,1,1000,,1000,10000,\nlong,1,1000,,1000,100000,\nshort,1,1000,,1000,9000,\n";
    tables.write(&folder);
    folder.run("compare --trace trace --policies fifo,sjf").ok();
    let page = folder.text("hostler-report.html");
    for part in [
        "<nav aria-label=\"Contents\">",
        "<li><a href=\"#changes\">Job by job against fifo</a></li>",
        "Of 3 jobs that finish under both, 1 are done sooner under sjf, 1 later and 1 at the same",
        "<th scope=\"col\" class=\"text\">Queue</th>",
        "<th scope=\"col\" class=\"text\">GPU model</th>",
        "<th scope=\"row\">bob</th>",
        // From 117 s to 17 s.
        "<td data-value=\"-100\">",
    ] {
        assert!(page.contains(part), "no {part}");
    }
}
