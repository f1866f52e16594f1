//! The ways in and out of an operator.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::harness::{PROGRAM, wait_for};
use crate::lab::{Lab, SMALL, Wants, is_possible};

#[test]
fn slurm_goes_on_by_itself_when_it_is_released() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let mut cluster = lab.hostler("fifo", "");
    let held = lab.submit("-J held -t 1 -H", "true");
    cluster.stop_daemon();
    let waits = lab.submit("-J waits -t 1 --gres=gpu:t4:1", "sleep 1");
    let file = lab.path("etc/hostler.toml").display().to_string();
    let said = cluster.text(&["slurm", "release", "--slurm", &file]);
    assert_eq!(said, "partition `ext` is up: Slurm starts its jobs by itself\n");
    lab.until(&waits, "COMPLETED");
    assert_eq!(lab.job(&held, "%T"), "PENDING");
    let said = cluster.text(&["slurm", "release", "--slurm", &file, "--undo"]);
    assert_eq!(said, "partition `ext` is down: its jobs wait for Hostler\n");
    let next = lab.submit("-J next -t 1", "true");
    cluster.serve();
    lab.until(&next, "COMPLETED");
}

/// A job that was moved and has not begun is bound to nodes that were decided by somebody who is
/// gone.
#[test]
fn a_job_that_was_moved_starts_where_there_is_room_once_slurm_is_released() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let mut cluster = lab.hostler("fifo", "start_secs = 600");
    let foreign = lab.submit_to("high", "-t 9 --gres=gpu:v100:8 -w v1 -c 32", "sleep 300");
    lab.until(&foreign, "RUNNING");
    cluster.stop_daemon();
    let moved = lab.submit("-J moved -t 1 --mem=100 --gres=gpu:1", "true");
    let to = ["partition=normal", "ReqNodeList=v1", "StartTime=now", "Priority=4294967000"];
    let job = format!("jobid={moved}");
    lab.text(&[&["scontrol", "update", &job], &to[..]].concat());
    lab.until(&moved, "PENDING");
    let file = lab.path("etc/hostler.toml").display().to_string();
    let said = cluster.text(&["slurm", "release", "--slurm", &file]);
    assert!(said.contains("1 jobs that had not begun may start in Slurm's own order"), "{said}");
    lab.until(&moved, "COMPLETED");
    assert_ne!(lab.job(&moved, "%N"), "v1");
    lab.text(&["scancel", &foreign]);
}

#[test]
fn what_is_missing_is_said_and_printed() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let cluster = lab.hostler("fifo", "");
    let file = lab.path("etc/hostler.toml").display().to_string();
    let said = cluster.run(&["slurm", "setup", "--check", "--slurm", &file]).unwrap_err();
    assert!(said.contains("missing: 4"), "{said}");
    let printed = cluster.text(&["slurm", "setup", "--print", "--slurm", &file]);
    assert!(
        printed.contains("PartitionName=ext Nodes=c1,m[1-2],p[1-2],t[1-2],v1 State=DOWN"),
        "{printed}"
    );
    assert!(printed.contains("It holds for ALL partitions of the"), "{printed}");
    // What is there already stays.
    assert!(printed.contains("AuthInfo=socket="), "{printed}");
    let plugin = printed.split_once("-- job_submit.lua").map_or("", |(_, plugin)| plugin);
    let lab = Lab::start(
        SMALL,
        &Wants {
            lines: vec!["JobSubmitPlugins=lua".to_owned()],
            files: vec![("job_submit.lua", format!("-- {plugin}"))],
            ..Wants::default()
        },
    );
    let _cluster = lab.hostler("fifo", "");
    // A user's jobs wait for Hostler wherever they were sent, and Hostler takes them out.
    let sent = |partition: &str| {
        let words = ["sbatch", "--parsable", "-o", "/dev/null", "-t", "1", "--wrap=sleep 1", "-p"];
        lab.as_nobody(&[&words[..], &[partition]].concat()).unwrap().trim().to_owned()
    };
    let jobs = [sent("normal"), sent("high,normal"), sent("ext")];
    let held = lab.as_nobody(&["sbatch", "--parsable", "-H", "-t", "1", "--wrap=true"]).unwrap();
    assert_eq!(lab.job(held.trim(), "%P"), "ext");
    let name = format!("jobid={}", held.trim());
    for target in ["partition=normal", "partition=high"] {
        lab.as_nobody(&["scontrol", "update", &name, target]).unwrap_err();
    }
    jobs.iter().for_each(|job| lab.until(job, "COMPLETED"));
    assert_eq!(lab.job(held.trim(), "%P"), "ext");
}

#[test]
fn what_fits_at_once_would_start_now() {
    if !is_possible() {
        return;
    }
    // Nobody starts what waits here.
    let lab = Lab::small();
    let fits = lab.submit("-t 5 --gres=gpu:t4:1", "true");
    let first = lab.submit("-t 5 --gres=gpu:v100:8", "true");
    let second = lab.submit("-t 9 --gres=gpu:v100:1", "true");
    let settings = lab.path("etc/look.toml");
    std::fs::write(&settings, format!("conf = '{}'\n", lab.conf().display())).unwrap();
    let file = settings.display().to_string();
    let words = ["slurm", "whatif", "--partition", "ext", "--policies", "fifo", "--json"];
    let words = [&words[..], &["--slurm", &file]].concat();
    let output = std::process::Command::new(PROGRAM).args(words).output().unwrap();
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    let start = |job: &str| {
        let mut jobs = page["jobs"].as_array().unwrap().iter();
        jobs.find(|known| known["job"] == job).unwrap()["starts_in_secs"]["fifo"].as_f64()
    };
    let starts = [&fits, &first, &second].map(|job| start(job));
    assert_eq!(starts, [Some(0.0), Some(0.0), Some(300.0)], "{page}");
}

/// Who has only the rights that an operator of Slurm's accounts has starts jobs and stops them;
/// comments are beyond those.
#[test]
fn an_operator_of_slurm_can_drive_it() {
    if !is_possible() {
        return;
    }
    let lab = Lab::start(SMALL, &Wants { accounts: true, ..Wants::default() });
    lab.text(&["sacctmgr", "-i", "add", "user", "nobody", "account=lab", "adminlevel=operator"]);
    let bin = lab.commands_as_nobody();
    let lines = format!("preempt_requeueable = true\nbin = '{}'", bin.display());
    let cluster = lab.hostler("srtf", &lines);
    let long = lab.submit("-J long -t 60 --gres=gpu:v100:8", "sleep 4");
    lab.until(&long, "RUNNING");
    let short = lab.submit("-J short -t 1 --gres=gpu:v100:8", "sleep 1");
    // Several at a time: that comments are refused is found out for each.
    let others: Vec<String> =
        (0..4).map(|_| lab.submit("-t 1 --gres=gpu:misc:4", "sleep 1")).collect();
    for job in others.iter().chain([&short, &long]) {
        lab.until(job, "COMPLETED");
    }
    let waits = lab.submit("-J waits -t 9 --gres=gpu:v100:8 -H", "true");
    let here = wait_for("the job that waits", || {
        let page: Value = serde_json::from_str(&cluster.text(&["queue", "--json"])).unwrap();
        let jobs = page.as_array().or(page["jobs"].as_array()).cloned().unwrap_or_default();
        jobs.into_iter().find(|job| job["engine_id"] == *waits)
    });
    cluster.text(&["cancel", &here["id"].to_string()]);
    lab.until(&waits, "CANCELLED");
}

#[test]
fn a_look_tells_when_jobs_would_start_and_changes_nothing() {
    if !is_possible() {
        return;
    }
    let lab = Lab::start(SMALL, &Wants { alone: true, ..Wants::default() });
    let gpus = |of: &str| format!("-t {of} --gres=gpu:v100:8");
    let runs = lab.submit_to("normal", &gpus("10"), "sleep 100");
    lab.until(&runs, "RUNNING");
    let long = lab.submit_to("normal", &gpus("30"), "true");
    let short = lab.submit_to("normal", &gpus("5"), "true");
    // Slurm takes these only where it backfills by itself.
    let parts = "-t 5 --gres=gpu:v100:8 : -p normal -t 5 --gres=gpu:t4:1";
    let parts = lab.submit_to("normal", parts, "true");
    let settings = lab.path("etc/look.toml");
    std::fs::write(&settings, format!("conf = '{}'\n", lab.conf().display())).unwrap();
    let file = settings.display().to_string();
    let words = ["slurm", "whatif", "--json", "--policies", "fifo,sjf", "--slurm", &file];
    let output = std::process::Command::new(PROGRAM).args(words).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    let start = |job: &str, policy: &str| {
        let mut jobs = page["jobs"].as_array().unwrap().iter();
        let job = jobs.find(|known| known["job"] == job).unwrap();
        job["starts_in_secs"][policy].as_f64().unwrap()
    };
    // The first ends after ten minutes at the latest, of which some seconds are over.
    let first = start(&long, "fifo");
    assert!((540.0..=601.0).contains(&first), "{page}");
    assert!((start(&short, "fifo") - first - 1800.0).abs() < 1.0, "{page}");
    assert!((start(&short, "sjf") - first).abs() < 1.0, "{page}");
    assert!((start(&long, "sjf") - first - 300.0).abs() < 1.0, "{page}");
    let mut jobs = page["jobs"].as_array().unwrap().iter();
    let part = jobs.find(|known| known["job"] == *parts).unwrap();
    assert!(part["reason"].as_str().unwrap().contains("a part of a heterogeneous job"), "{page}");
    assert_eq!(part["starts_in_secs"]["fifo"], Value::Null);
    for job in [&long, &short] {
        assert_eq!(lab.job(job, "%T|%P"), "PENDING|normal");
        assert!(!lab.text(&["scontrol", "show", "job", job]).contains("AdminComment"));
    }
}

#[test]
fn a_look_goes_on_without_nodes_that_cannot_be_played() {
    // What commands print that other clusters have; no Slurm is needed for that.
    let folder = tempfile::tempdir().unwrap();
    let nodes = "n1|gpu*|idle|32|64000|1|gpu:v100:8(S:0-1),shard:v100:32(S:0-1)|none\n\
                 n2|gpu*|idle|32|64000|1|gpu:a100_1g.5gb:2,gpu:a100_3g.20gb:1|none\n";
    let jobs = r#"{"errors": [], "jobs": [{"job_id": 7, "name": "train", "user_name": "ada",
        "account": "bio", "partition": "gpu", "job_state": "PENDING", "node_count": 1, "cpus": 2,
        "priority": 9, "time_limit": 5, "submit_time": 1795036476, "memory_per_node": 100,
        "tres_per_node": "gres:gpu:v100:8"}]}"#;
    for (name, text) in [("sinfo", nodes), ("squeue", jobs), ("scontrol", "")] {
        let (program, file) = (folder.path().join(name), folder.path().join(format!("{name}.txt")));
        std::fs::write(&file, text).unwrap();
        std::fs::write(&program, format!("#!/bin/sh\nexec cat {}\n", file.display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let settings = folder.path().join("look.toml");
    std::fs::write(&settings, format!("bin = '{}'\n", folder.path().display())).unwrap();
    let file = settings.display().to_string();
    let words = ["slurm", "whatif", "--policies", "fifo", "--slurm", &file];
    let said = |words: &[&str]| {
        let output = std::process::Command::new(PROGRAM).args(words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        (String::from_utf8(output.stdout).unwrap(), told)
    };
    let (page, _) = said(&[&words[..], &["--json"]].concat());
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["jobs"][0]["starts_in_secs"]["fifo"].as_f64(), Some(0.0), "{page}");
    assert_eq!(page["nodes_left_out"], 1, "{page}");
    let (_, told) = said(&words);
    let words = "1 of 2 nodes are left out: GPUs of several models at once";
    assert!(told.contains(words), "{told}");
}

#[test]
fn the_past_is_played_again_under_other_policies() {
    if !is_possible() {
        return;
    }
    let lab = Lab::start(SMALL, &Wants { alone: true, accounts: true, ..Wants::default() });
    let job = |mins: u32, secs: u32| {
        let options = format!("-J a|b -t {mins} --gres=gpu:v100:8");
        lab.submit_to("normal", &options, &format!("sleep {secs}"))
    };
    let jobs = [job(10, 6), job(5, 4), job(1, 1)];
    // Its time until it may begin is nobody's waiting.
    let late = lab.submit_to("normal", "-t 1 --gres=gpu:t4:1 --begin=now+8", "sleep 1");
    // This one never runs.
    let never = lab.submit_to("normal", "-t 9 --gres=gpu:v100:8", "true");
    lab.text(&["scancel", &never]);
    for job in jobs.iter().chain([&late]) {
        lab.until(job, "COMPLETED");
    }
    let settings = lab.path("etc/look.toml");
    std::fs::write(&settings, format!("conf = '{}'\n", lab.conf().display())).unwrap();
    let (file, week) = (settings.display().to_string(), lab.path("week").display().to_string());
    let hostler = |words: &[&str]| {
        let output = std::process::Command::new(PROGRAM).args(words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        String::from_utf8(output.stdout).unwrap()
    };
    let look = ["slurm", "whatif", "--days", "1", "--policies", "fifo:head=skips,sjf"];
    let look = [&look[..], &["--slurm", &file]].concat();
    // The accounts are written a moment later.
    let page = wait_for("the accounts", || {
        let page: Value =
            serde_json::from_str(&hostler(&[&look[..], &["--json"]].concat())).unwrap();
        (page["past"]["jobs"] == 4).then_some(page)
    });
    let runs = page["past"]["runs"].as_array().unwrap();
    let [was, fifo, sjf] = &runs[..] else { panic!("{page}") };
    let wait = |run: &Value| run["mean_wait_secs"].as_f64().unwrap();
    assert_eq!((&was["policy"], &was["finished"]), (&"as it was".into(), &4.into()));
    // Slurm took them in the order of their coming, and some time to start each.
    assert!((4.0..6.0).contains(&wait(fifo)), "{page}");
    assert!(wait(was) >= wait(fifo) - 0.5, "{page}");
    assert!(wait(sjf) < wait(fifo), "{page}");
    assert_eq!(page["past"]["left_out"]["cancelled before it began"], 1, "{page}");
    let table = hostler(&[&look[..], &["--save", &week]].concat());
    assert!(table.contains("the last day: 4 jobs"), "{table}");
    let again = ["simulate", "--trace", &week, "--policy", "fifo", "--set", "head=skips", "--json"];
    let again = hostler(&again);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert!((again["avg_wait_s"].as_f64().unwrap() - wait(fifo)).abs() < 1e-6, "{again}");
}
