//! Jobs that can never run: told first and loudly, and never a reason to call a policy best.

use crate::program::{Folder, Tables};

const REASON: &str = "no node has the GPU model that it asks for";

/// So many jobs for any GPU, and so many for one that the cluster lacks, half a second apart.
fn write(folder: &Folder, plain: u64, missing: u64) {
    let mut tables = Tables::new();
    for at in 0..plain {
        tables = tables.plain_job(&format!("p{at}"), at * 500);
    }
    for at in 0..missing {
        tables = tables.job(&format!("m{at}"), (plain + at) * 500, "1,1000,GPU,1000,10000,");
    }
    tables.write(folder);
}

#[test]
fn a_comparison_in_which_all_jobs_were_rejected_fails_and_calls_nothing_best() {
    let folder = Folder::new();
    write(&folder, 0, 4);
    let ran = folder.run("compare --trace trace --policies fifo,sjf");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: `fifo` rejected 4 of 4 jobs"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--any-gpu"), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "4 jobs, 1 machines, 2 GPUs, load 0.00");
    let told = format!(
        "warning: Every policy rejected 4 of 4 jobs (100.0 %): 4: {REASON} (job `m0` and others)."
    );
    assert_eq!(lines[2], told);
    assert!(!ran.stdout.contains("best"), "{}", ran.stdout);
    let page = folder.text("hostler-report.html");
    let (before, after) = page.split_once("class=\"lead alarm\"").expect("an alarm");
    assert!(!before.contains("class=\"lead\""), "something is told before");
    assert!(after.contains("No job finished, so there is nothing to compare."));
    let ran = folder.run("compare --trace trace --policies fifo,sjf --json");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let first = result["findings"][0].as_str().expect("a finding");
    assert!(first.starts_with("Every policy rejected 4 of 4 jobs"), "{first}");
}

#[test]
fn any_gpu_lets_them_run() {
    let folder = Folder::new();
    write(&folder, 0, 4);
    let run = folder.json("simulate --trace trace --policy fifo --json --any-gpu");
    assert_eq!((&run["jobs_done"], &run["jobs_rejected"]), (&4.into(), &0.into()));
    let ran = folder.run("compare --trace trace --policies fifo,sjf --any-gpu").ok();
    assert!(!ran.stdout.contains("rejected"), "{}", ran.stdout);
    let converted = folder.quiet("trace convert trace other --any-gpu");
    assert!(converted.contains("noted 4 rows: GPU model that a task asked for"), "{converted}");
    assert_eq!(folder.json("simulate --trace other --policy fifo --json")["jobs_done"], 4);
}

#[test]
fn half_of_the_jobs_is_too_many_and_less_is_told_without_failing() {
    let folder = Folder::new();
    write(&folder, 2, 2);
    let ran = folder.run("simulate --trace trace --policy fifo");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let rejected = ran.stdout.lines().nth(1).expect("lines");
    assert_eq!(rejected, "  rejected    2 of 4 jobs");
    let folder = Folder::new();
    write(&folder, 3, 2);
    let ran = folder.run("simulate --trace trace --policy fifo").ok();
    assert!(ran.stdout.contains("\n  rejected    2 of 5 jobs\n"), "{}", ran.stdout);
    let ran = folder.run("compare --trace trace --policies fifo,sjf").ok();
    // Three of five jobs keep one of two GPUs busy for ten of two seconds.
    assert!(ran.stdout.starts_with("5 jobs, 1 machines, 2 GPUs, load 7.50\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("warning: Every policy rejected 2 of 5 jobs"), "{}", ran.stdout);
    let heading = ran.stdout.lines().find(|line| line.starts_with("policy")).expect("a table");
    assert!(heading.starts_with("policy rejected "), "not the first column: {heading}");
}

#[test]
fn loads_tell_them_first_too() {
    let folder = Folder::new();
    write(&folder, 2, 3);
    let ran = folder.run("compare --trace trace --policies fifo,sjf --loads 1,2");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let told = ran.stdout.lines().nth(2).expect("lines");
    assert!(told.starts_with("warning: Every policy rejected 3 of 5 jobs (60.0 %)"), "{told}");
}

#[test]
fn predictors_are_not_judged_by_jobs_that_can_never_run_without_a_word() {
    let folder = Folder::new();
    // The last fifth is judged: three of a hundred can never run, or all of it.
    write(&folder, 97, 3);
    let ran = folder.run("predict eval --trace trace --model median").ok();
    let told = "3 of 20 judged jobs can never run on these machines: the times are of the others";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    write(&folder, 60, 40);
    let ran = folder.run("predict eval --trace trace --model median --json");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(result["simulated"]["rejected"], result["judged"]);
}
