//! A job that makes room for a more important one, and goes on where it was.

use crate::harness::{Cluster, wait_for};

/// Counts steps; at the signal it does one more, saves how far it is and ends. One that was saved
/// does thirty more.
pub const SCRIPT: &str = r#"
    saved=$HOSTLER_CHECKPOINT_DIR/step
    step=0
    [ ! -e "$saved" ] || step=$(cat "$saved")
    last=$((step + 30))
    asked=
    trap 'asked=yes' USR1
    echo "restart $HOSTLER_RESTART from $step"
    while [ $HOSTLER_RESTART = 0 ] || [ $step -lt $last ]; do
        sleep 0.1
        step=$((step + 1))
        echo "$HOSTLER_RESTART $step" >> "$NOTES"
        [ -z "$asked" ] || { echo $step > "$saved.new"; mv "$saved.new" "$saved"; exit 0; }
    done
    echo "done with $step"
"#;

/// Every step was done once, in order, over both stays; how many until the first ended, and in all.
pub fn assert_in_order(text: &str) -> (usize, usize) {
    let done: Vec<&str> = text.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    let count = done.len();
    let wanted: Vec<String> = (1..=count).map(|step| step.to_string()).collect();
    assert_eq!(done, wanted);
    assert!(text.starts_with("0 1\n") && text.ends_with(&format!("1 {count}\n")), "{text}");
    let saved = text.lines().filter(|line| line.starts_with("0 ")).count();
    assert!(saved >= 5 && count == saved + 30, "{text}");
    (saved, count)
}

#[test]
fn a_preempted_job_saves_makes_room_and_goes_on_from_there() {
    let mut cluster = Cluster::new(&["--plain", "--policy", "policy.toml"]);
    let policy = "kind = 'priority'\npreempt = true\n";
    std::fs::write(cluster.folder().join("policy.toml"), policy).unwrap();
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "1xV100"]);
    cluster.until_up();
    let notes = cluster.notes().join("steps");
    let env = format!("NOTES={}", notes.display());
    let options = ["--gpus", "1", "--checkpoints", "--grace", "20s", "--env", &env];
    let low = cluster.submit(&[&options, &["--", "sh", "-c", SCRIPT][..]].concat());
    // Whoever follows a job follows it to its end, not to that of its first stay.
    let followed = cluster.folder().join("followed");
    let mut follower = cluster.spawn(&["logs", &low.to_string(), "-f"], &followed);
    let steps = || std::fs::read_to_string(&notes).unwrap_or_default();
    wait_for("some steps", || (steps().lines().count() >= 5).then_some(()));
    let heard = || std::fs::read_to_string(&followed).unwrap();
    wait_for("the first words", || heard().starts_with("restart 0 from 0\n").then_some(()));
    let high = cluster.submit(&["--gpus", "1", "--priority", "5", "--", "true"]);
    let high = cluster.until(high, "finished");
    let view = cluster.until(low, "finished");
    assert!(view["ended"].as_f64() > high["ended"].as_f64(), "{view}");
    assert_eq!((&view["restarts"], &view["exit_code"]), (&1.into(), &0.into()), "{view}");
    let (saved, count) = assert_in_order(&steps());
    let second = format!("restart 1 from {saved}\ndone with {count}\n");
    assert_eq!(follower.exit_code(), Some(0));
    assert_eq!(heard(), format!("restart 0 from 0\n{second}"));
    assert_eq!(cluster.text(&["logs", &low.to_string()]), second);
}

#[test]
fn jobs_without_checkpoints_start_once_whatever_the_policy_would_like() {
    let mut cluster = Cluster::new(&["--plain", "--policy", "max-min-fairness:round_secs=2"]);
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "8xV100"]);
    cluster.enrol("n1", &["--fake-gpus", "8xV100"]);
    cluster.until_up();
    let all: Vec<u32> =
        (0..4).map(|_| cluster.submit(&["--gpus", "8", "--", "sleep", "5"])).collect();
    for job in all {
        let view = cluster.until(job, "finished");
        assert_eq!(view["restarts"], 0, "{view}");
    }
}
