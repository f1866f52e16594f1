//! Rules between values.

use expect_test::{Expect, expect};

use super::super::check::{Rule, Severity};
use super::super::{Finding, check};
use super::{JOBS, NODES, TASKS, tables};

fn check_tables(nodes: &str, jobs: &str, tasks: &str, instances: &str, expected: Expect) {
    let trace = tables(nodes, jobs, tasks, instances).unwrap();
    let line = |finding: &Finding| {
        let severity = match finding.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        format!("{severity}: {finding}\n")
    };
    expected.assert_eq(&check(&trace).iter().map(line).collect::<String>());
}

#[test]
fn jobs_that_have_no_meaning_are_found() {
    let jobs = "job_id,submit_ms,deadline_ms,priority_class\na,0,,high\nb,1000,,gold\na,2000,,\n\
                c,3000,2000,99999999999\n";
    check_tables(
        NODES,
        jobs,
        TASKS,
        "",
        expect![[r#"
        warning: jobs.csv:3: column `priority_class`: unknown priority class counts as 0; use an integer or a known name: `gold`
        error: jobs.csv:4: column `job_id`: job_id is there twice: `a`
        error: jobs.csv:5: column `job_id`: job has no tasks: `c`
        warning: jobs.csv:5: column `deadline_ms`: deadline is before submission: `2000`
        warning: jobs.csv:5: column `priority_class`: unknown priority class counts as 0; use an integer or a known name: `99999999999`
    "#]],
    );
}

#[test]
fn tasks_that_have_no_meaning_are_found() {
    let tasks = "job_id,count,min_count,max_count,gpu_milli,cpu_milli,duration_ms,start_ms,end_ms\n\
                 a,0,,,1000,1,1,,\na,1,,,1500,1,1,,\na,1,,,2000,1,1,,\na,1,,,,0,1,,\n\
                 a,2,3,,,1,1,,\na,2,,1,,1,1,,\na,1,,,,1,,,\nz,1,,,,1,1,,\n\
                 b,1,,,,1,1,999,2000\nb,1,,,,1,1,3000,2999\nb,1,,,,1,1,,999\n";
    check_tables(
        NODES,
        JOBS,
        tasks,
        "",
        expect![[r#"
        error: tasks.csv:2: column `count`: count is below 1: `0`
        error: tasks.csv:3: column `gpu_milli`: above 1000 only whole multiples of 1000: `1500`
        error: tasks.csv:5: column `gpu_milli`: task asks zero of every resource: `0`
        error: tasks.csv:6: column `min_count`: min_count is above count: `3`
        error: tasks.csv:7: column `max_count`: max_count is below count: `1`
        warning: tasks.csv:8: column `duration_ms`: neither duration_ms nor work is known: ``
        error: tasks.csv:10: column `start_ms`: start is before submission: `999`
        error: tasks.csv:11: column `end_ms`: end is before start: `2999`
        error: tasks.csv:12: column `end_ms`: end is before start: `999`
        error: tasks.csv:9: column `job_id`: task of a job that is not in jobs.csv: `z`
    "#]],
    );
}

#[test]
fn tasks_that_no_node_can_hold_are_found() {
    let nodes = "node_id,gpu_model,gpu_count,gpu_mem_mib,cpu_milli,mem_mib\n\
                 n1,V100,8,16384,96000,1000\nn2,T4,2,,64000,\nn3,,0,,,1000\n";
    let tasks = "job_id,count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms\n\
                 a,1,8000,,,1,1,1\na,1,9000,,,1,1,1\na,1,4000,T4,,1,1,1\na,1,1000,T4|H100,,1,1,1\n\
                 a,1,1000,H100,,1,1,1\na,1,1000,V100,16385,1,1,1\na,1,1000,,99999,1,1,1\n\
                 b,1,1000,,,96001,1,1\nb,1,,,,96001,1000,1\nb,1,,,,96001,1001,1\n";
    check_tables(
        nodes,
        JOBS,
        tasks,
        "",
        expect![[r#"
        warning: tasks.csv:3: task fits no node: `gpu_milli 9000, cpu_milli 1, mem_mib 1`
        warning: tasks.csv:4: task fits no node: `gpu_milli 4000, cpu_milli 1, mem_mib 1, gpu_models T4`
        warning: tasks.csv:5: column `gpu_models`: no node has this GPU model: `H100`
        warning: tasks.csv:6: column `gpu_models`: no node has this GPU model: `H100`
        warning: tasks.csv:6: task fits no node: `gpu_milli 1000, cpu_milli 1, mem_mib 1, gpu_models H100`
        warning: tasks.csv:7: task fits no node: `gpu_milli 1000, cpu_milli 1, mem_mib 1, gpu_mem_mib 16385, gpu_models V100`
        warning: tasks.csv:9: task fits no node: `gpu_milli 1000, cpu_milli 96001, mem_mib 1`
        warning: tasks.csv:11: task fits no node: `gpu_milli 0, cpu_milli 96001, mem_mib 1001`
    "#]],
    );
}

#[test]
fn without_nodes_nothing_is_said_about_fitting() {
    check_tables("", JOBS, TASKS, "", expect![[""]]);
}

#[test]
fn overlapping_intervals_of_a_node_are_found() {
    let nodes = "node_id,gpu_count,cpu_milli,up_from_s,up_to_s\n\
                 n1,0,96000,0,10\nn1,0,96000,10,20\nn1,0,96000,19,30\n\
                 n2,0,96000,,\nn2,0,96000,5,6\nn2,0,96000,7,8\nn3,8,96000,9,9\n";
    check_tables(
        nodes,
        JOBS,
        "job_id,count,cpu_milli,duration_ms\na,1,1,1\nb,1,1,1\n",
        "",
        expect![[r#"
            error: nodes.csv:8: column `up_to_s`: node goes down before it comes up: `9`
            error: nodes.csv:4: column `node_id`: intervals of a node overlap: `n1`
            error: nodes.csv:6: column `node_id`: intervals of a node overlap: `n2`
            error: nodes.csv:7: column `node_id`: intervals of a node overlap: `n2`
        "#]],
    );
}

#[test]
fn instances_of_nothing_are_found() {
    let instances = "job_id,node_id,start_ms,end_ms\na,n1,5,6\nz,n1,5,6\na,n9,5,6\na,,6,5\n";
    check_tables(
        NODES,
        JOBS,
        TASKS,
        instances,
        expect![[r#"
        error: instances.csv:3: column `job_id`: instance of a job that is not in jobs.csv: `z`
        warning: instances.csv:4: column `node_id`: node is not in nodes.csv: `n9`
        error: instances.csv:5: column `end_ms`: end is before start: `5`
    "#]],
    );
}

#[test]
fn a_table_that_was_cut_off_is_found_by_its_row_count() {
    let mut trace = tables(NODES, JOBS, TASKS, "").unwrap();
    trace.meta.rows = trace.row_counts();
    assert_eq!(check(&trace), []);
    trace.meta.rows.insert("jobs".to_owned(), 3);
    trace.meta.rows.insert("instances".to_owned(), 3);
    let findings = check(&trace);
    assert_eq!(findings.len(), 1);
    let message = "meta.toml: column `rows`: number of rows differs from meta.toml; is a file \
                   cut off?: `jobs: 2 rows, meta.toml says 3`";
    assert_eq!(findings[0].to_string(), message);
}

#[test]
fn every_rule_has_its_own_words() {
    let mut words: Vec<_> = Rule::ALL.iter().map(|rule| rule.words()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Rule::ALL.len());
}

/// More than a hundred million comparisons: 20,000 kinds of nodes, 5,001 kinds of tasks.
#[test]
fn the_search_for_a_fitting_node_is_given_up_in_time() {
    let mut nodes = "node_id,gpu_count,cpu_milli\n".to_owned();
    let mut tasks = "job_id,count,cpu_milli,duration_ms\nb,1,1,1\n".to_owned();
    for number in 1..=20_000 {
        nodes.push_str(&format!("n{number},0,{number}\n"));
    }
    for number in 1..=5_001 {
        tasks.push_str(&format!("a,1,{},1\n", 30_000 + number));
    }
    let trace = tables(&nodes, JOBS, &tasks, "").unwrap();
    let findings = check(&trace);
    let count = |rule| findings.iter().filter(|finding| finding.rule == rule).count();
    assert_eq!((count(Rule::FitsNoNode), count(Rule::FitNotChecked)), (5000, 1));
}
