//! What becomes of jobs.

use crate::cluster::Cluster;

#[test]
fn exit_codes_output_and_files_come_back() {
    let cluster = Cluster::start("2xV100");
    let script = "echo out $HOSTLER_ARRAY_INDEX; echo err >&2; exit 3";
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", script]);
    let view = cluster.until(&job, "failed");
    assert_eq!(view["exit_code"], 3);
    assert_eq!(cluster.text(&["logs", &job]).trim(), "out");
    assert_eq!(cluster.text(&["logs", &job, "-f", "--stderr"]), "err\n");
    assert_eq!(cluster.text(&["logs", &job, "-f", "--stdout"]).trim(), "out");
    for words in [&["logs", &job][..], &["logs", &job, "-f"]] {
        let both = cluster.run(words);
        assert_eq!(String::from_utf8_lossy(&both.stdout).trim(), "out");
        assert_eq!(String::from_utf8_lossy(&both.stderr), "err| err\n");
    }
    let file = "name: from-a-file\ncommand: [sh, -c, 'exit $CODE']\nenv: {CODE: '0'}\ntasks: 1\n";
    std::fs::write(cluster.folder().join("job.yaml"), file).unwrap();
    let job = cluster.submit(&["job.yaml", "--gpus", "1", "--wait"]);
    let view = cluster.job(&job);
    assert_eq!((&view["state"], &view["name"]), (&"finished".into(), &"from-a-file".into()));
    std::fs::write(cluster.folder().join("job.toml"), "command = ['false']\ntasks = 1").unwrap();
    let output = cluster.run(&["submit", "job.toml", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn jobs_start_in_order_and_a_crash_of_the_daemon_loses_none() {
    let mut cluster = Cluster::start("1xV100");
    let (gate, script) = cluster.gate("gate");
    let first = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    let second = cluster.submit(&["--gpus", "1", "--", "true"]);
    let third = cluster.submit(&["--gpus", "1", "--", "sh", "-c", "exit 4"]);
    cluster.until(&first, "running");
    let why = cluster.text(&["explain", &second]);
    assert!(why.contains("because: "), "{why}");
    cluster.crash();
    std::fs::write(&gate, "").unwrap();
    let third = cluster.until(&third, "failed");
    let (first, second) = (cluster.job(&first), cluster.job(&second));
    assert_eq!((&first["state"], &second["state"]), (&"finished".into(), &"finished".into()));
    assert_eq!((&first["restarts"], &third["exit_code"]), (&0.into(), &4.into()));
    let started = |job: &serde_json::Value| job["started"].as_f64().unwrap();
    assert!(started(&first) < started(&second));
    assert!(started(&second) < started(&third));
    assert!(started(&second) >= first["ended"].as_f64().unwrap());
}

#[test]
fn a_machine_may_have_as_many_gpus_as_the_scheduler_can_count() {
    let cluster = Cluster::start("128xV100");
    let node = &cluster.json(&["nodes"])[0];
    assert_eq!((&node["gpus"], &node["health"]), (&128.into(), &"up".into()), "{node}");
    let script = "echo $CUDA_VISIBLE_DEVICES";
    let all = cluster.submit(&["--gpus", "128", "--wait", "--", "sh", "-c", script]);
    let numbers: Vec<String> = (0..128).map(|gpu| gpu.to_string()).collect();
    assert_eq!(cluster.text(&["logs", &all]).trim(), numbers.join(","));
}

#[test]
fn fractions_share_a_gpu_and_whole_ones_do_not() {
    let cluster = Cluster::start("1xV100");
    let half = ["--gpus", "0.5", "--share", "willing", "--", "sleep", "600"];
    let (one, two) = (cluster.submit(&half), cluster.submit(&half));
    cluster.until(&one, "running");
    cluster.until(&two, "running");
    let whole = cluster.submit(&["--gpus", "1", "--", "true"]);
    assert_eq!(cluster.json(&["nodes"])[0]["gpus_used"], 1.0);
    assert_eq!(cluster.job(&whole)["state"], "queued");
    cluster.text(&["cancel", &one, &two]);
    cluster.until(&whole, "finished");
    assert_eq!(cluster.job(&one)["state"], "cancelled");
}

#[test]
fn the_last_lines_are_shown_of_output_that_is_longer_than_one_answer() {
    let cluster = Cluster::start("1xV100");
    // Each line has 21 bytes and two characters of two: pieces begin in the middle of them.
    let script = "i=10000; while [ $i -lt 30000 ]; do echo line $i is here üü; i=$((i+1)); done; \
                  printf unfinished; echo wrong >&2";
    let job = cluster.submit(&["--gpus", "1", "--wait", "--", "sh", "-c", script]);
    let last = |lines: usize| {
        let all = (10_000..30_000).map(|i| format!("line {i} is here üü\n"));
        let all: Vec<String> = all.chain(["unfinished".to_owned()]).collect();
        all[all.len().saturating_sub(lines)..].concat()
    };
    for lines in [1, 3, 9000, 1_000_000] {
        let words = ["logs", &job, "--stdout", "--tail", &lines.to_string()];
        assert!(cluster.text(&words) == last(lines), "{lines} lines");
    }
    let both = cluster.run(&["logs", &job, "-f", "--tail", "2"]);
    assert_eq!(String::from_utf8_lossy(&both.stdout), last(2));
    assert_eq!(String::from_utf8_lossy(&both.stderr), "err| wrong\n");
    let pieces = cluster.text(&["logs", &job, "--tail", "1", "--json"]);
    let pieces: Vec<serde_json::Value> =
        pieces.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |stream: &str| {
        let of = pieces.iter().filter(|piece| piece["stream"] == stream);
        of.filter_map(|piece| piece["text"].as_str()).collect::<String>()
    };
    assert_eq!((said("stdout"), said("stderr")), ("unfinished".into(), "wrong\n".into()));
}

#[test]
fn arrays_are_held_released_and_cancelled_as_a_whole() {
    let cluster = Cluster::start("1xV100");
    let running = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&running, "running");
    let array: u32 =
        cluster.submit(&["--array", "4", "--gpus", "1", "--", "true"]).parse().unwrap();
    let (first, last) = (array.to_string(), (array + 3).to_string());
    assert_eq!(cluster.text(&["hold", &first]), format!("jobs {first}-{last} are held\n"));
    let one = format!("{array}_0");
    assert_eq!(cluster.text(&["release", &one]), format!("job {first} is queued\n"));
    let refused = cluster.run(&["hold", &running, &one]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&refused.stdout), format!("job {first} is held\n"));
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains(&format!("job {running} runs and cannot be held")), "{words}");
    let range = format!("{array}-{}", array + 1);
    let two = format!("jobs {first}-{} are cancelled\n", array + 1);
    assert_eq!(cluster.text(&["cancel", &range]), two);
    let rest = format!("jobs {}-{last} are cancelled\n", array + 2);
    assert_eq!(cluster.text(&["cancel", &first]), rest);
    let again = cluster.run(&["cancel", &first]);
    assert!(again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).starts_with("nothing to do"));
    let wrong = cluster.run(&["cancel", "all"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn arrays_dependencies_and_time_limits() {
    let cluster = Cluster::start("4xV100");
    let script = "echo $HOSTLER_ARRAY_INDEX";
    let array = cluster.submit(&["--array", "3", "--gpus", "1", "--", "sh", "-c", script]);
    let number: u32 = array.parse().unwrap();
    let last = (number + 2).to_string();
    cluster.until(&last, "finished");
    assert_eq!(cluster.text(&["logs", &last]), "2\n");
    // What is over cannot be waited for any more.
    let (gate, script) = cluster.gate("gate");
    let first = cluster.submit(&["--", "sh", "-c", &script]);
    let limits = ["--after", &first, "--max-time", "1s", "--grace", "1s"];
    let slow = cluster.submit(&[&limits[..], &["--", "sleep", "600"]].concat());
    let after = cluster.submit(&["--after", &slow, "--", "true"]);
    std::fs::write(&gate, "").unwrap();
    let good = cluster.submit(&["--after", &array, "--", "true"]);
    cluster.until(&good, "finished");
    cluster.until(&slow, "timed-out");
    cluster.until(&after, "cancelled");
}

#[test]
fn a_job_that_cannot_start_tells_its_fault_to_those_who_wait() {
    let cluster = Cluster::start("1xV100");
    let ran = cluster.run(&["submit", "--workdir", "/nosuch", "--wait", "--", "true"]);
    let words = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{words}");
    assert!(words.contains("its start failed: on node `"), "{words}");
    assert!(words.contains("`: cannot start in `/nosuch`"), "{words}");
    let needed = cluster.submit(&["--", "sleep", "600"]);
    let mut waits = cluster.command();
    waits.args(["submit", "--name", "waits", "--after", &needed, "--wait", "--", "true"]);
    let pipe = std::process::Stdio::piped;
    let waits = waits.stdout(pipe()).stderr(pipe()).spawn().unwrap();
    cluster.wait_for("a job that waits", |cluster| cluster.text(&["queue"]).contains("waits"));
    cluster.text(&["cancel", &needed]);
    let ran = waits.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{words}");
    let why = format!("cancelled: job {needed}, which it needs, did not finish well");
    assert!(words.contains(&why), "{words}");
    let ran = cluster.run(&["submit", "--array", "0", "--", "true"]);
    let words = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{words}");
    assert!(words.contains("`0` is no array; write 10, 1-10"), "{words}");
}
