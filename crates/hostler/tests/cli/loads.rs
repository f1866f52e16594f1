//! `hostler compare --loads`: policies over the load that is offered.

use crate::program::{Folder, Tables};

/// Three jobs of ten seconds on one of two GPUs each, ten seconds apart: load 0.75.
fn three_jobs(folder: &Folder) {
    let tables = Tables::new().plain_job("a", 0).plain_job("b", 10_000).plain_job("c", 20_000);
    tables.write(folder);
}

#[test]
fn tables_show_completion_and_waiting_over_rising_loads() {
    let folder = Folder::new();
    three_jobs(&folder);
    let ran = folder.run("compare --trace trace --policies fifo,sjf --loads 15,0.5,15").ok();
    // At load 15 the jobs come a half second apart: the third waits for the first, 9 s.
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "3 jobs, 1 machines, 2 GPUs, load 0.75 as submitted");
    assert_eq!(lines[2..4], ["avg JCT", "         load    load"]);
    assert_eq!(lines[4..6], ["policy    0.5      15", "fifo   10.0 s  13.0 s"]);
    assert!(lines.contains(&"avg wait"), "{}", ran.stdout);
    assert!(lines.contains(&"fifo    0 s  3.0 s"), "{}", ran.stdout);
    let page = folder.text("hostler-report.html");
    let finding = "Only 3 jobs finished: too few to tell policies apart by.";
    assert!(page.contains(finding), "no finding on the page");
}

#[test]
fn json_has_every_figure_of_every_policy_at_every_load() {
    let folder = Folder::new();
    three_jobs(&folder);
    let line = "compare --trace trace --policies fifo,sjf --json --loads 0.5,15 --threads 3";
    let result = folder.json(line);
    let points = result["loads"].as_array().expect("loads are a list");
    let loads: Vec<_> = points.iter().filter_map(|point| point["load"].as_f64()).collect();
    assert_eq!(loads, [0.5, 15.0]);
    for point in points {
        assert_eq!(point["runs"][0]["policy"], "fifo");
        assert_eq!(point["runs"][1]["policy"], "sjf");
        assert_eq!(point["runs"][1]["jobs_done"], 3);
    }
    assert_eq!(points[0]["runs"][0]["avg_wait_s"], 0.0);
    assert_eq!(points[1]["runs"][0]["avg_wait_s"], 3.0);
}

#[test]
fn loads_without_sense_are_usage_errors() {
    let folder = Folder::new();
    for loads in ["0", "-1", "nan", "inf", "1,two", ""] {
        let ran = folder.run(&format!("compare --loads {loads}"));
        assert_eq!(ran.code, Some(2), "`{loads}`: {}", ran.stderr);
    }
    folder.run("compare --loads 1,0").fails(2, &["'0'", "give a number above 0"]);
    let many: Vec<String> = (1..=17).map(|load| load.to_string()).collect();
    let line = format!("compare --loads {}", many.join(","));
    folder.run(&line).fails(2, &["invalid `loads`: 17 loads; expected at most 16"]);
    assert!(!folder.path("hostler-report.html").exists());
}

#[test]
fn a_trace_that_arrives_at_one_instant_has_no_load_to_change() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 500).plain_job("b", 500).write(&folder);
    let ran = folder.run("compare --trace trace --policies fifo --loads 1,2");
    ran.fails(1, &["no two jobs are submitted at different times"]);
    three_jobs(&folder);
    let ran = folder.run("compare --trace trace --policies fifo --loads 1,1e9");
    ran.fails(1, &["load `1000000000` is out of reach"]);
}

/// Ten jobs on sixteen GPUs: the load is high because they come within ten seconds and run for
/// long, but there is room for all.
#[test]
fn a_load_under_which_nothing_queues_is_told() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = tables.nodes.replace("V100,2,8000", "V100,16,64000");
    for at in 0..11 {
        tables = tables.job(&format!("j{at}"), at * 1000, "1,1000,,1000,1000000,");
    }
    tables.write(&folder);
    let line = "compare --trace trace --policies fifo,sjf --loads 0.5,20";
    let ran = folder.run(line).ok();
    let told = "At load 20 hardly anything queues: under every policy jobs wait less than 1.0 % of \
                their time. They all come within 34.4 s and run 16.7 min";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    assert!(folder.text("hostler-report.html").contains(told), "not on the page");
    let result = folder.json(&format!("{line} --json"));
    assert!(result["findings"].to_string().contains("At load 20 hardly anything queues"));
}

/// The machine is given to pool `q` after 100 s; the closer together jobs come, the more of them
/// come before.
#[test]
fn jobs_that_are_turned_away_at_one_load_only_are_told_and_counted() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = "node_id,pool,gpu_count,cpu_milli,up_from_s,up_to_s\n\
                    a,p,2,8000,0,100\na,q,2,8000,100,\n"
        .to_owned();
    tables.jobs = "job_id,queue,submit_ms\nf,p,0\ng,q,200000\nh,q,210000\ni,q,220000\n".to_owned();
    tables.tasks = "job_id,count,gpu_milli,duration_ms\n".to_owned();
    "fghi".chars().for_each(|job| tables.tasks += &format!("{job},1,1000,10000\n"));
    tables.write(&folder);
    folder.run("compare --trace trace --policies fifo --loads 0.05,0.09").ok();
    let ran = folder.run("compare --trace trace --policies fifo --loads 0.09,0.9");
    assert!(ran.stdout.contains("warning: fifo rejected 3 of 4 jobs (75.0 %)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("; most at load 0.9."), "{}", ran.stdout);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("`fifo` rejected 3 of 4 jobs"), "{}", ran.stderr);
}
