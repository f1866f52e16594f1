//! Figures against numbers that were worked out by hand or published.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::{Analysis, analyze, read};
use crate::fixture::published_data;

/// A folder of its own that goes with the test.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Folder(folder)
    }
}

fn analysed(path: &Path) -> Analysis {
    analyze(&read(path, &mut |_, _| {}).unwrap(), &mut |_, _| {})
}

/// A fact, rounded to four decimals.
fn fact(analysis: &Analysis, figure: &str, key: &str) -> f64 {
    let found = analysis.figure(figure).unwrap_or_else(|| panic!("{figure} was not computed"));
    let value = found.value(key).unwrap_or_else(|| panic!("{figure} has no fact {key}"));
    (value * 1e4).round() / 1e4
}

/// All facts of a figure, one per line.
fn facts(analysis: &Analysis, figure: &str) -> String {
    let found = analysis.figure(figure).unwrap_or_else(|| panic!("{figure} was not computed"));
    let lines = found.facts.iter();
    lines.map(|fact| format!("{} {}\n", fact.key, (fact.value * 1e4).round() / 1e4)).collect()
}

fn check(analysis: &Analysis, figure: &str, expected: Expect) {
    expected.assert_eq(&facts(analysis, figure));
}

fn testdata(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata/traces")
        .join(name)
}

#[test]
fn the_example_has_the_figures_it_was_made_with() {
    let analysis = analysed(&testdata("example_2k"));
    for (figure, key, value) in [
        ("gang", "instances", 7834.0),
        ("gang", "share_2", 0.7978),
        ("gang", "share_10", 0.6727),
        ("tasks-per-user", "users", 165.0),
        ("tasks-per-user", "top_users", 9.0),
        ("tasks-per-user", "top_share", 0.6055),
        ("recur", "groups", 548.0),
        ("recur", "share_5", 0.5805),
        ("runtime", "p50", 834.0),
        ("runtime", "p90", 17_214.0),
        ("runtime", "p99", 77_887.0),
        ("requests", "cpu_p50", 6.0),
        ("requests", "cpu_p95", 12.0),
        ("requests", "gpu_p50", 0.25),
        ("requests", "gpu_p95", 1.0),
        ("status", "status_Completed", 1582.0),
        ("status", "status_Failed", 407.0),
        ("status", "status_Waiting", 11.0),
        ("machines", "gpus", 6742.0),
        ("machines", "vcpus", 156_576.0),
    ] {
        assert_eq!(fact(&analysis, figure, key), value, "{figure} {key}");
    }
}

#[test]
fn what_is_missing_is_named_and_the_rest_computed() {
    let analysis = analysed(&testdata("lecture"));
    let missing = |key: &str| {
        let found = analysis.not_computed.iter().find(|missing| missing.key == key);
        found.map_or("computed".to_owned(), |missing| missing.needs.join("; "))
    };
    let keys = ["gang", "wait-gpu", "mismatch", "machine-use", "completion-time"];
    let lines = keys.map(|key| format!("{key}: {}\n", missing(key)));
    expect![[r#"
        gang: computed
        wait-gpu: column `start_ms` of tasks.csv or instances.csv
        mismatch: column `node_id` of instances.csv, and nodes.csv
        machine-use: use of machines (pai_machine_metric; no native table)
        completion-time: a CSV of the PAI job simulator
    "#]]
    .assert_eq(&lines.concat());
    let text = analysis.text();
    assert!(text.contains("machine-use: not computed: needs"), "{text}");
    assert!(analysis.html("hostler analyze", None).contains("not computed: needs"));
}

const MACHINES: &str = "m1,V100,10,100,2\nm2,CPU,10,100,0\n";
const JOBS: &str = "a,ia,ada,Terminated,900,5000\nb,ib,bob,Terminated,900,5000\n";
const TASKS: &str = "a,worker,2.0,Terminated,1000,8200.0,400.0,10.0,50.0,V100\n\
                     b,worker,1.0,Terminated,1000,8200.0,200.0,20.0,200.0,V100\n";
/// a has two workers on one GPU, 3600 to 7200 and 3600 to 5400; b one on two GPUs, 7200 to 9000.
/// The first row of `w1` is an attempt that failed.
const INSTANCES: &str = "a,worker,n1,w1,ia,Failed,3500.0,3550.0,m1\n\
                         a,worker,n1,w1,ia,Terminated,3600.0,7200.0,m1\n\
                         a,worker,n2,w2,ia,Terminated,3600.0,5400.0,m1\n\
                         b,worker,n3,w3,ib,Terminated,7200.0,9000.0,m1\n";
const SENSORS: &str = "a,worker,w1,ia,m1,gpu0,500.0,60.0,5.0,0,0,0,134217728,0,0,0\n\
                       a,worker,w2,ia,m1,gpu0,100.0,40.0,15.0,0,0,0,0,0,0,0\n\
                       b,worker,w3,ib,m1,gpu1,100.0,50.0,5.0,0,0,0,0,0,0,0\n";
const GROUPS: &str = "ia,ada,,g,ctr\nib,bob,,g,\n";
const METRICS: &str = "w1,m1,3600.0,7200.0,1.0,2.0,30.0,50.0,1,0,2,40.0\n\
                       w2,m1,3600.0,5400.0,1.0,2.0,10.0,30.0,1,0,2,20.0\n\
                       w3,m1,7200.0,9000.0,3.0,4.0,50.0,70.0,1,0,1,60.0\n";

fn small() -> Folder {
    Folder::new(&[
        ("pai_machine_spec.csv", MACHINES),
        ("pai_job_table.csv", JOBS),
        ("pai_task_table.csv", TASKS),
        ("pai_instance_table.csv", INSTANCES),
        ("pai_sensor_table.csv", SENSORS),
        ("pai_group_tag_table.csv", GROUPS),
        ("pai_machine_metric.csv", METRICS),
    ])
}

/// Asked: 3600 s and 1800 s of half a GPU, 1800 s of two: 2700 + 3600 = 6300 GPU seconds. Used:
/// min(60, 50) % of 3600 + 40 % of 1800 + 50 % of 1800 = 1800 + 720 + 900 = 3420. 1 - 3420 / 6300.
#[test]
fn gpu_hours_asked_for_but_not_used() {
    let folder = small();
    let analysis = analysed(folder.0.path());
    check(
        &analysis,
        "request-use",
        expect![[r#"
        gpu_hours_asked 1.75
        gpu_hours_unused 0.4571
        cpu_above 1
        gpu_above 0.5
        mem_above 0.5
    "#]],
    );
}

/// CPU of w1: 500 used, 400 asked. GPU of w1: 60 used, 50 asked. Memory of w2: 15 used, 10 asked.
/// Task a in sum: CPU 600 of 800, GPU 100 of 100, memory 20 of 20: nothing above.
#[test]
fn overuse_by_instance_may_vanish_in_the_task() {
    let folder = small();
    check(
        &analysed(folder.0.path()),
        "overuse",
        expect![[r#"
        cpu_tasks 0
        cpu_instances 0.3333
        gpu_tasks 0
        gpu_instances 0.3333
        mem_tasks 0
        mem_instances 0.3333
    "#]],
    );
}

/// Hours from 3600. First hour without sharing: w1 a full hour, w2 half of it: 1.5 GPUs; with: 1.
/// Second: w3 on two GPUs for half an hour: 1 GPU either way. Saved: (1/3 + 0) / 2.
#[test]
fn sharing_saves_what_rounding_up_would_cost() {
    let folder = small();
    check(
        &analysed(folder.0.path()),
        "sharing-saved",
        expect![[r#"
        saved 0.1667
        saved_most 0.5
        gpus_with 1
        gpus_without 1.25
        gpus_asked 0.875
    "#]],
    );
}

/// Every five minutes: 3600 to 5400 six slots with w1 and w2 at 100 %, then six with w1 alone at
/// 60 %, then six with w3 at 50 %.
#[test]
fn busy_slots_of_two_workers_are_contention() {
    let folder = small();
    check(
        &analysed(folder.0.path()),
        "contention",
        expect![[r#"
        slots 18
        busy 6
        busy_shared 1
    "#]],
    );
}

/// GPU: first hour (50 x 3600 + 30 x 1800) / 5400, second 70.
#[test]
fn use_of_machines_is_weighted_by_time() {
    let folder = small();
    let analysis = analysed(folder.0.path());
    check(
        &analysis,
        "machine-use",
        expect![[r#"
        gpu_2 0.5667
        cpu_2 0.4667
    "#]],
    );
    check(
        &analysis,
        "iowait",
        expect![[r#"
        iowait_p90 0.03
        usr_p90 0.5
        kernel_p90 0.04
    "#]],
    );
    check(
        &analysis,
        "network",
        expect![[r#"
        p50 0
        p90 1
        p99 1
    "#]],
    );
}

/// m1 has 5 vCPU per GPU. Asked: 4 + 4 + 2 vCPU for 0.5 + 0.5 + 2 GPUs. Allocated in the first
/// hour: CPU 0.4 + 0.2, GPU 0.25 + 0.125; in the half of the second: 0.2 / 2 and 1 / 2.
#[test]
fn machines_are_set_against_requests() {
    let folder = small();
    let analysis = analysed(folder.0.path());
    check(
        &analysis,
        "mismatch",
        expect![[r#"
        asked_per_gpu 3.3333
        2-GPU V100_has 5
        2-GPU V100_asked 3.3333
    "#]],
    );
    check(
        &analysis,
        "alloc-heat",
        expect![[r#"
        2-GPU V100_cpu 0.35
        2-GPU V100_gpu 0.4375
    "#]],
    );
}

/// Ten instances of one group: nine run 100 s on machines at 20 % CPU, one 150 s at 70 %. The
/// ninth slowdown is 1, so only the tenth is delayed.
#[test]
fn delayed_instances_are_those_above_the_ninth_tenth() {
    let (mut instances, mut metrics) = (String::new(), String::new());
    for at in 0..10 {
        let (end, cpu) = if at == 3 { (250, 70) } else { (200, 20) };
        instances += &format!("a,worker,n{at},w{at},ia,Terminated,100,{end},m1\n");
        metrics += &format!("w{at},m1,100,{end},0,0,0,50,1,0,1,{cpu}\n");
    }
    let folder = Folder::new(&[
        ("pai_task_table.csv", "a,worker,10,Terminated,50,250,100,1,100,V100\n"),
        ("pai_instance_table.csv", &instances),
        ("pai_group_tag_table.csv", GROUPS),
        ("pai_machine_metric.csv", &metrics),
    ]);
    let expected = "slowdown_p90 1\ndelayed 1\ncpu_half 0.7\ncpu_half_others 0.2\n";
    assert_eq!(facts(&analysed(folder.0.path()), "delayed"), expected);
}

/// Ten jobs at hours 0 to 9 of one user. The first eight teach, but the eighth ends too late:
/// group g 100 s (five times), group h 400 and 500 s, median 450. The ninth is of g and runs
/// 100 s (error 0 by group, 0 by user: the median of all seven is 100); the tenth is of h and
/// runs 450 s (error 0 by group, 350 / 450 by user).
#[test]
fn predictions_never_know_what_ends_later() {
    let runs = [100, 100, 400, 100, 500, 100, 100, 90_000, 100, 450];
    let (mut jobs, mut tasks) = (
        "job_id,user,group_tag,submit_ms\n".to_owned(),
        "job_id,count,cpu_milli,duration_ms\n".to_owned(),
    );
    for (hour, run) in runs.into_iter().enumerate() {
        let group = if run == 100 { "g" } else { "h" };
        jobs += &format!("j{hour},ada,{group},{}\n", hour * 3_600_000);
        tasks += &format!("j{hour},1,1000,{}\n", run * 1000);
    }
    let folder = Folder::new(&[("jobs.csv", &jobs), ("tasks.csv", &tasks)]);
    let expected = "taught 7\nasked 2\nwithin_25_user 0.5\nwithin_25_user_group 1\n\
                    within_25_user_group_gpu 1\n";
    assert_eq!(facts(&analysed(folder.0.path()), "predictor"), expected);
}

/// Asked 100 s, started after 60 and ended after 100: 60 % of its time was waiting; the other
/// waited 10 of 1010 s.
#[test]
fn short_tasks_that_wait_longer_than_they_run_are_counted() {
    let folder = Folder::new(&[
        ("jobs.csv", "job_id,submit_ms\na,0\nb,0\n"),
        (
            "tasks.csv",
            "job_id,count,gpu_milli,gpu_models,start_ms,end_ms\n\
             a,1,500,T4,60000,100000\nb,1,1000,V100,10000,1010000\n",
        ),
    ]);
    let analysis = analysed(folder.0.path());
    let expected = "above_half_short 1\nabove_half_long 0\nabove_half_all 0.5\n";
    assert_eq!(facts(&analysis, "wait-share"), expected);
    let expected = "T4_p50 60\nT4_p90 60\nV100_p50 10\nV100_p90 10\n";
    assert_eq!(facts(&analysis, "wait-gpu"), expected);
}

/// All sentences, one per line.
fn findings(analysis: &Analysis) -> String {
    analysis.findings.iter().map(|finding| format!("{}\n", finding.text)).collect()
}

/// Days of the clock from 10:30 on: ten tasks in the hour from 12, twenty in all others, one every
/// three minutes.
fn hourly(meta: &[(&str, &str)]) -> Folder {
    let (mut jobs, mut tasks) = ("job_id,submit_ms\n".to_owned(), "job_id,count\n".to_owned());
    for slot in 0..4 * 24 * 20 {
        let minute = 630 + slot * 3;
        if minute / 60 % 24 == 12 && slot % 2 == 0 {
            continue;
        }
        jobs += &format!("j{slot},{}\n", slot * 180_000);
        tasks += &format!("j{slot},1\n");
    }
    Folder::new(&[&[("jobs.csv", jobs.as_str()), ("tasks.csv", &tasks)], meta].concat())
}

#[test]
fn hours_of_the_day_are_those_of_the_clock_where_it_is_known() {
    let meta = "time_origin = '2020-05-04T10:30:00Z'\ntime_zone = 'not stated, read as UTC'\n";
    let known = findings(&analysed(hourly(&[("meta.toml", meta)]).0.path()));
    assert!(
        known.contains("The quietest hour of the day has 50.0 % of the busiest (n ="),
        "{known}"
    );
    // From the first submission on, the quiet hour is part of two: 15 and 15 of 20.
    let unknown = findings(&analysed(hourly(&[]).0.path()));
    let told = "The quietest hour of a day has 75.0 % of the busiest, counted from the first \
                submission: the tables do not say at which hour that was (n =";
    assert!(unknown.contains(told), "{unknown}");
}

#[test]
fn a_handful_of_tasks_makes_no_finding() {
    let folder = Folder::new(&[
        ("jobs.csv", "job_id,user,submit_ms\na,u,0\nb,v,0\n"),
        (
            "tasks.csv",
            "job_id,count,gpu_milli,start_ms,end_ms\na,2,500,60000,100000\nb,1,1000,1,9\n",
        ),
    ]);
    assert_eq!(findings(&analysed(folder.0.path())), "");
}

/// Thirty tasks without a user, of which six failed and twenty still run; those that name no GPU
/// type wait longest.
#[test]
fn findings_say_what_they_leave_out() {
    let (mut jobs, mut tasks) = (
        "job_id,submit_ms,status_in_trace\n".to_owned(),
        "job_id,count,gpu_milli,gpu_models,start_ms,end_ms\n".to_owned(),
    );
    for at in 0..120 {
        let status = ["Failed", "Running", "Running", "Completed"][at % 4];
        let (model, wait) = [("T4", 10), ("V100", 20), ("", 90)][at % 3];
        let (submit, end) = (at * 1000, at * 1000 + 200_000);
        jobs += &format!("j{at},{submit},{status}\n");
        tasks += &format!("j{at},1,1000,{model},{},{end}\n", submit + wait * 1000);
    }
    let folder = Folder::new(&[("jobs.csv", &jobs), ("tasks.csv", &tasks)]);
    let analysis = analysed(folder.0.path());
    let told = findings(&analysis);
    let ended = "50.0 % of the tasks that ended did not complete; 60 more had not ended when the \
                 record did, or do not say (n = 60).";
    assert!(told.contains(ended), "{told}");
    let queue = "The longest queue is that for `V100`: one in ten waits over 20.0 s (n = 40).";
    assert!(told.contains(queue), "{told}");
    let predicted = facts(&analysis, "predictor");
    assert!(predicted.contains("within_25_all "), "{predicted}");
    assert!(!predicted.contains("user"), "{predicted}");
}

/// Twenty-five tasks of an hour on two GPUs in a queue that fails, as many of half an hour in one
/// that completes.
#[test]
fn who_waits_and_whose_work_comes_to_nothing_is_told_by_queue() {
    let (mut jobs, mut tasks) = (
        "job_id,user,queue,submit_ms,status_in_trace\n".to_owned(),
        "job_id,count,gpu_milli,start_ms,end_ms\n".to_owned(),
    );
    for at in 0..25 {
        jobs += &format!("f{at},ada,bad,0,Failed\nc{at},bob,good,0,Completed\n");
        tasks += &format!("f{at},2,1000,60000,3660000\nc{at},1,1000,0,1800000\n");
    }
    let folder = Folder::new(&[("jobs.csv", &jobs), ("tasks.csv", &tasks)]);
    let analysis = analysed(folder.0.path());
    let table = &analysis.figure("who").unwrap().tables[0];
    let rows: Vec<String> = table.rows.iter().map(|row| format!("{} {:?}", row.0, row.1)).collect();
    assert_eq!(rows, ["bad [25.0, 50.0, 1.0, 60.0, 60.0]", "good [25.0, 12.5, 0.0, 0.0, 0.0]"]);
    // Where nobody says how tasks ended, no part of them is known to have completed.
    let silent = jobs.replace("Failed", "").replace("Completed", "");
    let other = Folder::new(&[("jobs.csv", &silent), ("tasks.csv", &tasks)]);
    assert!(analysed(other.0.path()).figure("who").unwrap().tables[0].rows[0].1[2].is_nan());
    let told = findings(&analysis);
    let most = "Of the GPU hours of tasks that did not complete, 100.0 % are those of queue `bad` \
                (n = 25).";
    assert!(told.contains(most), "{told}");
    assert!(
        analysis
            .html("x", None)
            .contains("<li><a href=\"#who\">Who asks, waits and fails</a></li>")
    );
}

/// The failed attempt of w1 counts as a row and for the start of its task, not as an instance.
#[test]
fn waits_and_rows_follow_the_published_joins() {
    let folder = small();
    let analysis = analysed(folder.0.path());
    check(
        &analysis,
        "instances",
        expect![[r#"
        rows 4
        instances 3
        jobs 2
        machines 1
        with_times 4
        status_Completed 3
        status_Failed 1
        type_V100 4
    "#]],
    );
    check(
        &analysis,
        "wait-sharing",
        expect![[r#"
        shared_p50 2500
        shared_p90 2500
        whole_p50 6200
        whole_p90 6200
    "#]],
    );
    check(
        &analysis,
        "runtime",
        expect![[r#"
        with_times 4
        p50 1800
        p90 3600
        p99 3600
    "#]],
    );
}

#[test]
fn bad_rows_are_counted_by_reason_and_left_out() {
    let folder = Folder::new(&[
        ("pai_machine_spec.csv", "machine,gpu_type,cap_cpu,cap_mem,cap_gpu\nm1,V100,many,1,1\n"),
        ("pai_instance_table.csv", "a,worker\na,w,n,w1,i,Terminated,-1,5,m1\n,,,,,,,,\n"),
    ]);
    let analysis = analysed(folder.0.path());
    let lines = analysis.left_out.iter().map(|(reason, rows)| format!("{rows} {reason}\n"));
    expect![[r#"
        1 pai_instance_table: a name is missing
        1 pai_instance_table: a number is negative or not finite
        1 pai_instance_table: wrong number of fields
        1 pai_machine_spec: a number cannot be read
    "#]]
    .assert_eq(&lines.collect::<String>());
}

#[test]
fn any_bytes_are_read_or_refused_but_never_panic() {
    let tables = ["job_table", "task_table", "instance_table", "sensor_table", "group_tag_table"];
    let texts = ["", "\n\n", "\"", "1,2,3\n", "\u{0},\u{feff},9e999,NaN,-0,inf\n", "a,b,c,d,e,f\n"];
    for text in texts {
        let named: Vec<(String, &str)> =
            tables.iter().map(|table| (format!("pai_{table}.csv"), text)).collect();
        let named: Vec<(&str, &str)> = named.iter().map(|(name, text)| (&**name, *text)).collect();
        let folder = Folder::new(&named);
        if let Ok(input) = read(folder.0.path(), &mut |_, _| {}) {
            let analysis = analyze(&input, &mut |_, _| {});
            assert!(!analysis.text().is_empty());
            assert!(analysis.html("x", None).starts_with("<!doctype html>"));
        }
    }
    let cut = Folder::new(&[("pai_task_table.csv.gz", "no gzip")]);
    assert!(read(cut.0.path(), &mut |_, _| {}).is_err());
    let empty = Folder::new(&[]);
    let told = read(empty.0.path(), &mut |_, _| {}).err().map(|error| error.to_string());
    assert!(told.is_some_and(|told| told.contains("no tables in")));
}

/// Times from a hostile table end in the far future; memory stays bounded.
#[test]
fn a_trace_of_ten_thousand_years_is_cut_into_few_buckets() {
    let instances = "a,w,n,w1,i,Terminated,1,300000000000,m1\n";
    let tasks = "a,w,1,Terminated,1,300000000000,100,1,100,V100\n";
    let folder = Folder::new(&[
        ("pai_machine_spec.csv", MACHINES),
        ("pai_task_table.csv", tasks),
        ("pai_instance_table.csv", instances),
    ]);
    let analysis = analysed(folder.0.path());
    assert_eq!(fact(&analysis, "alloc-heat", "2-GPU V100_gpu"), 0.5);
}

/// Real rows are read where they lie, never copied.
#[test]
fn published_tables_have_their_published_figures() {
    let Some(data) = published_data("published_tables_have_their_published_figures") else {
        return;
    };
    let analysis = analysed(&data.join("theirs/pai/v2020"));
    for (figure, key, value) in [
        ("machines", "machines", 1897.0),
        ("machines", "gpus", 6742.0),
        ("machines", "vcpus", 156_576.0),
        ("instances", "rows", 18_384.0),
        ("instances", "jobs", 4544.0),
        ("instances", "machines", 1712.0),
        ("instances", "status_Completed", 12_750.0),
        ("instances", "status_Failed", 1997.0),
        ("instances", "status_Running", 1942.0),
        ("instances", "status_Interrupted", 1695.0),
        ("instances", "type_MISC", 9853.0),
        ("instances", "type_T4", 4047.0),
        ("instances", "type_P100", 2624.0),
        ("instances", "type_CPU", 935.0),
        ("instances", "type_V100", 619.0),
        ("instances", "type_V100M32", 306.0),
        ("runtime", "with_times", 12_750.0),
        ("runtime", "p50", 1045.0),
        ("runtime", "p90", 13_571.0),
        ("runtime", "p99", 66_222.0),
    ] {
        assert_eq!(fact(&analysis, figure, key), value, "{figure} {key}");
    }
    assert_eq!((fact(&analysis, "gang", "share_2") * 100.0).round(), 78.0);
    assert!((fact(&analysis, "machines", "vcpu_per_gpu") - 23.22).abs() < 0.01);
    assert!(analysis.left_out.is_empty(), "{:?}", analysis.left_out);
}
