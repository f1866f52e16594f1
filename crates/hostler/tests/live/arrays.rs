//! Arrays, their parts and jobs that come after them: the same words in every command.

use crate::cluster::Cluster;

fn errors(cluster: &Cluster, words: &[&str]) -> String {
    let ran = cluster.run(words);
    assert_eq!(ran.status.code(), Some(1), "{words:?} was taken");
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn what_comes_after_an_array_waits_for_all_of_it() {
    let cluster = Cluster::start("4xV100");
    let gate = cluster.folder().join("gate");
    let script = format!(
        "while [ $HOSTLER_ARRAY_INDEX -gt 0 ] && [ ! -e {} ]; do sleep 0.05; done",
        gate.display()
    );
    let array = cluster.submit(&["--array", "3", "--cpus", "0.1", "--", "sh", "-c", &script]);
    let after = cluster.submit(&["--after", &array, "--", "true"]);
    let part = cluster.submit(&["--after", &format!("{array}_0"), "--", "true"]);
    let number: u32 = array.parse().unwrap();
    let range = format!("{number}..{}", number + 2);
    let ranged = cluster.submit(&["--after", &range, "--", "true"]);
    cluster.until(&part, "finished");
    for waits in [&after, &ranged] {
        let view = cluster.job(waits);
        assert_eq!(view["state"], "held", "{view}");
        assert_eq!(view["reason"], format!("waits until jobs are finished: {array}_1-2"));
    }
    let why = cluster.text(&["explain", &after]);
    assert!(why.contains(&format!("waits for: job {}, job {}", number + 1, number + 2)), "{why}");
    std::fs::write(&gate, "").unwrap();
    cluster.until(&after, "finished");
    let ended = |job: &str| cluster.job(job)["ended"].as_f64().unwrap();
    let started = cluster.job(&after)["started"].as_f64().unwrap();
    assert!((0..3).all(|index| ended(&format!("{array}_{index}")) <= started));
}

#[test]
fn every_command_takes_arrays_and_their_parts() {
    let cluster = Cluster::start("4xV100");
    let script = "echo I am $HOSTLER_ARRAY_INDEX; [ $HOSTLER_ARRAY_INDEX != 5 ]";
    let array = cluster.submit(&["--array", "1-5:2%1", "--wait", "--", "sh", "-c", "true"]);
    assert_eq!(cluster.json(&["history", &array]).as_array().unwrap().len(), 3);
    let array = {
        let ran = cluster.run(&["submit", "--array", "1-5:2", "--wait", "--", "sh", "-c", script]);
        assert_eq!(ran.status.code(), Some(1));
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        let array = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        assert!(told.contains(&format!("3 jobs, {array}_1 to {array}_5")), "{told}");
        array
    };
    let (three, five) = (format!("{array}_3"), format!("{array}_5"));
    assert_eq!(cluster.text(&["logs", &three]), "I am 3\n");
    let all =
        format!("==> {array}_1 <==\nI am 1\n\n==> {three} <==\nI am 3\n\n==> {five} <==\nI am 5\n");
    assert_eq!(cluster.text(&["logs", &array]), all);
    assert_eq!(cluster.text(&["logs", "-f", &format!("{array}_1-5")]), all);
    assert_eq!(cluster.json(&["show", &three])["array_index"], 3);
    assert_eq!(cluster.json(&["show", &array]).as_array().unwrap().len(), 3);
    let shown = cluster.text(&["show", &array]);
    assert!(shown.contains(&format!("{array}, an array of 3")), "{shown}");
    assert!(shown.contains(&format!("{array}_1-3: finished, exit 0")), "{shown}");
    assert!(shown.contains(&format!("{five}: failed, exit 1")), "{shown}");
    let why = cluster.text(&["explain", &array]);
    assert!(why.contains(&format!("jobs {array}_1-3 are finished")), "{why}");
    assert!(why.contains(&format!("job {five} has been failed")), "{why}");
    let ids = |list: serde_json::Value| {
        let jobs = list.as_array().unwrap().iter();
        jobs.map(|job| job["array_index"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ids(cluster.json(&["history", &array, "--state", "failed"])), [5]);
    assert_eq!(ids(cluster.json(&["history", &three])), [3]);
    let fault = errors(&cluster, &["show", &format!("{array}_2")]);
    let hint = format!("the array {array} has indices from 1 to 5 in steps of 2");
    assert!(fault.contains(&hint), "{fault}");
    assert!(errors(&cluster, &["logs", "4711"]).contains("no such job: 4711"));
}

#[test]
fn kinds_of_dependencies_and_those_that_can_never_be_met() {
    let cluster = Cluster::start("4xV100");
    let good = cluster.submit(&["--wait", "--", "true"]);
    let bad = cluster.submit(&["--", "false"]);
    cluster.until(&bad, "failed");
    for (kind, job, fault) in [
        ("", &bad, "did not finish well; nothing can wait for it"),
        ("failed:", &good, "finished well; nothing can wait for it to fail"),
    ] {
        let told = errors(&cluster, &["submit", "--after", &format!("{kind}{job}"), "--", "true"]);
        assert!(told.contains(&format!("job {job} {fault}")), "{told}");
    }
    let never = cluster.submit(&["--after", &good, "--", "sleep", "600"]);
    cluster.until(&never, "running");
    let started = cluster.submit(&["--after", &format!("started:{never}"), "--", "true"]);
    cluster.until(&started, "finished");
    let fails = cluster.submit(&["--after", &format!("failed:{never}"), "--", "true"]);
    let any = cluster.submit(&["--after", &format!("over:{never}"), "--", "true"]);
    let view = cluster.job(&fails);
    assert_eq!(view["reason"], format!("waits until jobs have failed: {never}"));
    cluster.text(&["cancel", &never]);
    cluster.until(&fails, "finished");
    cluster.until(&any, "finished");
    let (gate, script) = cluster.gate("gate");
    let array = cluster.submit(&["--array", "3", "--", "sh", "-c", &script]);
    let hopeless = cluster.submit(&["--after", &format!("failed:{array}"), "--", "true"]);
    std::fs::write(&gate, "").unwrap();
    let view = cluster.until(&hopeless, "cancelled");
    let why = view["reason"].as_str().unwrap();
    assert!(why.contains("finished well, and this one was for the case that all fail"), "{why}");
    let late = errors(&cluster, &["submit", "--after", &format!("failed:{array}"), "--", "true"]);
    assert!(late.contains("`failed:` of an array asks that each of its jobs fails"), "{late}");
    assert!(why.starts_with(&format!("job {array}_")), "{why}");
    let held = cluster.submit(&["--after", &good, "--", "true"]);
    cluster.until(&held, "finished");
    let told = cluster.run(&["submit", "--after", "any:1", "--", "true"]);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("use finished, over, failed or started"), "{told}");
}
