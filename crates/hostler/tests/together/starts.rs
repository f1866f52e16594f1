//! The output of all tasks of a job, and of its earlier starts.

use crate::harness::{Cluster, processes, wait_for};

#[test]
fn all_tasks_are_shown_and_the_one_that_failed_first() {
    let cluster = Cluster::start(&[], &["2xV100", "2xV100"]);
    // The one that fails waits until the others have said all, and somebody hears them.
    let (gate, wait) = cluster.gate("gate");
    let said = cluster.notes().join("said").display().to_string();
    let script = format!(
        "echo out $RANK; printf 'no end'; echo err $RANK >&2; : > {said}.$RANK
         [ $RANK != 2 ] && sleep 600
         for rank in 0 1 3; do while [ ! -e {said}.$rank ]; do sleep 0.05; done; done
         {wait}; exit 5"
    );
    let job = cluster.submit(&["--gpus", "1", "--tasks", "4", "--", "sh", "-c", &script]);
    let followed = cluster.folder().join("followed");
    let mut follower = cluster.spawn(&["logs", &job.to_string(), "-f"], &followed);
    let heard = || std::fs::read_to_string(&followed).unwrap();
    let hears = |rank: u32| heard().contains(&format!("{rank} | out {rank}\n"));
    wait_for("the words of all", || (0..4).all(hears).then_some(()));
    std::fs::write(&gate, "").unwrap();
    let view = cluster.until(job, "failed");
    assert_eq!((&view["exit_code"], &view["failed_rank"]), (&5.into(), &2.into()), "{view}");
    let job = job.to_string();
    let first = "2 | out 2\n2 | no end\n";
    let rest = "0 | out 0\n0 | no end\n1 | out 1\n1 | no end\n3 | out 3\n3 | no end\n";
    let mut sorted: Vec<String> = format!("{first}{rest}").lines().map(str::to_owned).collect();
    sorted.sort();
    let shown = cluster.text(&["logs", &job]);
    assert!(shown.starts_with("2 | out 2\n"), "{shown}");
    let mut lines: Vec<&str> = shown.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, sorted);
    let errors = cluster.text(&["logs", &job, "--stderr"]);
    assert_eq!(errors, "2 | err 2\n0 | err 0\n1 | err 1\n3 | err 3\n");
    assert_eq!(cluster.text(&["logs", &job, "--rank", "3", "--stderr"]), "err 3\n");
    assert_eq!(follower.exit_code(), Some(0));
    let mut heard: Vec<String> = heard().lines().map(str::to_owned).collect();
    heard.sort();
    assert_eq!(heard, sorted);
    let pieces = cluster.text(&["logs", &job, "--stdout", "--json"]);
    assert!(pieces.lines().next().unwrap().contains("\"rank\":2"), "{pieces}");
}

#[test]
fn earlier_starts_are_listed_and_their_output_is_kept() {
    let cluster = Cluster::start(&[], &["1xV100"]);
    let script = "echo start $HOSTLER_RESTART; [ $HOSTLER_RESTART = 2 ] && exit 0; \
                  echo more $HOSTLER_RESTART; while :; do sleep 0.1; done";
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", script]).to_string();
    let followed = cluster.folder().join("followed");
    let mut follower = cluster.spawn(&["logs", &job, "-f", "--stdout"], &followed);
    for restart in 0..2 {
        let word = format!("more {restart}\n");
        wait_for("a start", || {
            cluster.run(&["logs", &job]).is_ok_and(|said| said.contains(&word)).then_some(())
        });
        let shims = processes::shims(cluster.folder());
        shims.into_iter().for_each(processes::kill);
    }
    let view = cluster.until(job.parse().unwrap(), "finished");
    assert_eq!(view["starts"].as_array().unwrap().len(), 3, "{view}");
    let ends: Vec<&str> =
        view["starts"].as_array().unwrap().iter().filter_map(|it| it["end"].as_str()).collect();
    assert_eq!(ends, ["interrupted", "interrupted", "own"], "{view}");
    assert_eq!(cluster.text(&["logs", &job]), "start 2\n");
    assert_eq!(cluster.text(&["logs", &job, "--start", "1"]), "start 0\nmore 0\n");
    assert_eq!(cluster.text(&["logs", &job, "--start", "2", "--tail", "1"]), "more 1\n");
    let fault = cluster.run(&["logs", &job, "--start", "4"]).unwrap_err();
    assert!(fault.contains("has been started 3 times, not 4"), "{fault}");
    let all = cluster.text(&["logs", &job, "--all-starts"]);
    let kept: Vec<&str> = all.lines().filter(|line| !line.starts_with("==>")).collect();
    assert_eq!(kept, ["start 0", "more 0", "start 1", "more 1", "start 2"], "{all}");
    let shown = cluster.text(&["show", &job]);
    assert_eq!(shown.lines().filter(|line| line.starts_with("start ")).count(), 3, "{shown}");
    let whole = "start 0\nmore 0\nstart 1\nmore 1\nstart 2\n";
    assert_eq!(follower.exit_code(), Some(0));
    assert_eq!(std::fs::read_to_string(&followed).unwrap(), whole);
    assert_eq!(cluster.text(&["logs", &job, "--all-starts", "-f"]), whole);
}
