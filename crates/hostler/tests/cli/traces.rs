//! `hostler trace`: generating, checking, converting, and reading packed tables.

use crate::program::{Folder, Tables};

const TABLES: [&str; 4] = ["jobs.csv", "tasks.csv", "nodes.csv", "meta.toml"];

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = Folder::new();
    let say = folder.quiet("trace gen pai-like --jobs 300 --seed 7 --out one");
    assert!(say.starts_with("300 jobs, "), "{say}");
    folder.quiet("trace gen pai-like --jobs 300 --seed 7 --out two");
    folder.quiet("trace gen pai-like --jobs 300 --seed 8 --out other");
    for table in TABLES {
        let one = folder.read(&format!("one/{table}"));
        assert!(one == folder.read(&format!("two/{table}")), "{table} differs");
    }
    assert!(folder.read("one/jobs.csv") != folder.read("other/jobs.csv"));
}

#[test]
fn a_generated_trace_is_checked_without_a_fault() {
    let folder = Folder::new();
    folder.quiet("trace gen pai-like --jobs 300 --seed 7 --out trace");
    let text = folder.quiet("trace check trace");
    assert!(text.contains("300 jobs, 300 tasks, 1897 nodes: 0 errors"), "{text}");
    let json = folder.json("trace check trace --json");
    assert_eq!(json["jobs"], 300);
    assert_eq!(json["errors"], 0);
}

#[test]
fn packing_and_unpacking_gives_the_same_tables_and_the_same_numbers() {
    let folder = Folder::new();
    folder.quiet("trace gen pai-like --jobs 100 --seed 7 --scale 40 --out plain");
    folder.quiet("trace convert plain gzip --compress gzip --keep-times");
    folder.quiet("trace convert gzip zstd --compress zstd --keep-times");
    folder.quiet("trace convert zstd again --keep-times");
    for table in &TABLES[..3] {
        let plain = folder.read(&format!("plain/{table}"));
        assert!(plain == folder.read(&format!("again/{table}")), "{table} differs");
        assert!(folder.path(&format!("gzip/{table}.gz")).exists());
        assert!(folder.path(&format!("zstd/{table}.zst")).exists());
    }
    let jct = |trace: &str| {
        let line = format!("simulate --policy fifo --json --trace {trace}");
        folder.json(&line)["avg_jct_s"].clone()
    };
    assert_eq!(jct("plain"), jct("gzip"));
    assert_eq!(jct("plain"), jct("zstd"));
}

#[test]
fn a_folder_with_tables_is_not_written_over() {
    let folder = Folder::new();
    folder.quiet("trace gen pai-like --jobs 10 --out trace");
    let before = folder.read("trace/jobs.csv");
    folder.run("trace gen pai-like --jobs 20 --out trace").fails(1, &["exists", "write elsewhere"]);
    folder.run("trace convert trace trace").fails(1, &["exists", "write elsewhere"]);
    assert!(before == folder.read("trace/jobs.csv"));
}

#[test]
fn a_check_lists_every_fault_with_its_place_and_fails() {
    let folder = Folder::new();
    let mut tables = Tables::new().plain_job("a", 0).plain_job("a", 5);
    tables.tasks += "b,1,1000,,1000,10000,\na,0,1500,,1000,10000,\n";
    tables.write(&folder);
    let ran = folder.run("trace check trace");
    assert_eq!(ran.code, Some(1));
    for fault in [
        "jobs.csv:3: column `job_id`: job_id is there twice: `a`",
        "tasks.csv:4: column `job_id`: task of a job that is not in jobs.csv: `b`",
        "tasks.csv:5: column `count`: count is below 1: `0`",
        "tasks.csv:5: column `gpu_milli`: above 1000 only whole multiples of 1000: `1500`",
    ] {
        assert!(ran.stdout.contains(fault), "no `{fault}` in: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("error: 4 faults in `trace`"), "{}", ran.stderr);
}

#[test]
fn an_unknown_gpu_model_is_a_warning() {
    let folder = Folder::new();
    Tables::new().job("a", 0, "1,1000,H200,1000,10000,").write(&folder);
    let text = folder.quiet("trace check trace");
    assert!(text.contains("no node has this GPU model: `H200`"), "{text}");
    assert!(text.contains("0 errors"), "{text}");
}

#[test]
fn a_simulator_table_is_converted() {
    let folder = Folder::new();
    folder.quiet("trace gen pai-like --jobs 50 --format pai-sim-gang --out sim.csv");
    let text = folder.quiet("trace convert sim.csv native --from pai-sim-gang");
    assert!(text.contains("read 50 rows"), "{text}");
    assert!(text.contains("wrote 50 rows of jobs"), "{text}");
    folder
        .run("trace gen pai-like --jobs 9 --format pai-sim-gang --out sim.csv")
        .fails(1, &["exists"]);
}

#[test]
fn a_check_prints_json_of_faults_too() {
    let folder = Folder::new();
    folder.quiet("trace gen pai-like --jobs 30 --seed 7 --scale 40 --out bad");
    let jobs = folder.text("bad/jobs.csv");
    let broken = jobs.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
    folder.write("bad/jobs.csv", format!("{broken}rubbish\n"));
    for (line, found) in [("trace check bad --json", "jobs.csv"), ("trace check no --json", "no")] {
        let ran = folder.run(line);
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        assert!(told["errors"].as_u64().is_some_and(|errors| errors > 0), "{told}");
        assert!(told["findings"][0].as_str().is_some_and(|text| text.contains(found)), "{told}");
        assert_eq!(ran.code, Some(1));
    }
}

/// A virtual cluster gives a machine to another while a job of three days runs on it.
#[test]
fn a_virtual_cluster_of_helios_that_shrinks_kills_nobody() {
    let folder = Folder::new();
    let gpus = "date,vcA,vcB,total\n2020-04-01,16,8,24\n2020-04-02,8,16,24\n";
    folder.write("log/earth_gpu_number.csv", gpus);
    let heading = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,\
                   duration\n";
    let day = 86_400;
    let rows = format!(
        "1,u,vcA,16,16,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-04 00:00:00,{}\n\
         2,u,vcA,8,8,1,COMPLETED,2020-04-02 00:00:00,2020-04-02 00:00:00,2020-04-02 01:00:00,3600\n\
         3,v,vcB,8,8,1,COMPLETED,2020-04-02 00:00:00,2020-04-02 00:00:00,2020-04-02 01:00:00,3600\n\
         4,v,vcB,16,16,2,COMPLETED,2020-04-02 00:00:00,2020-04-02 00:00:00,2020-04-02 01:00:00,3600\n",
        3 * day
    );
    folder.write("log/cluster_log.csv", format!("{heading}{rows}"));
    folder.quiet("trace convert log/cluster_log.csv native");
    let line = "simulate --trace native --policy fifo --set head=skips --jobs jobs.csv --json";
    let run = folder.json(line);
    assert_eq!((&run["restarts"], &run["jobs_done"]), (&0.into(), &4.into()));
    assert_eq!(run["lost_work_s"], 0.0);
    let jobs = folder.text("jobs.csv");
    let starts: Vec<&str> =
        jobs.lines().skip(1).filter_map(|line| line.split(',').nth(5)).collect();
    // Job 3 runs on the machine that vcB had; job 2 waits for the one that vcA has left, and job 4
    // for the one that was given away.
    assert_eq!(starts, ["0", "259200", "86400", "259200"]);
}
