//! A job that cannot save itself lets others have its GPU, stands still and goes on: the same
//! processes, over deaths of agent and daemon.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{Cluster, wait_for};

/// Counts, ten a second, until it is enough. It saves nothing: whoever starts it again begins at 1.
const COUNT: &str = r#"
    echo "$$ begins"
    step=0
    while [ ! -e "$NOTES.enough" ]; do
        sleep 0.1
        step=$((step + 1))
        echo "$$ $step" >> "$NOTES"
    done
    echo "$$ is done with $step"
"#;

/// A daemon that lets the more important one in, and an agent that suspends.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(&["--plain", "--policy", "policy.toml"]);
    let policy = "kind = 'priority'\npreempt = true\n";
    std::fs::write(cluster.folder().join("policy.toml"), policy).unwrap();
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "1xV100:1000@360", "--suspend", "on"]);
    cluster.until_up();
    cluster
}

/// A counting job that has begun, and where it counts.
fn counting(cluster: &Cluster) -> (u32, PathBuf) {
    let notes = cluster.notes().join("steps");
    let env = format!("NOTES={}", notes.display());
    let job = cluster.submit(&["--gpus", "1", "--env", &env, "--", "sh", "-c", COUNT]);
    until_further(&notes, 5);
    (job, notes)
}

fn steps(notes: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(notes).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits until so many steps more were counted.
fn until_further(notes: &Path, more: usize) {
    let count = steps(notes).len() + more;
    wait_for("more steps", || (steps(notes).len() >= count).then_some(()));
}

/// Waits until a job is told to wait in memory.
fn until_suspended(cluster: &Cluster, job: u32) {
    wait_for("the suspension", || {
        let view = cluster.job(job);
        let reason = view["reason"].as_str().unwrap_or_default().to_owned();
        (view["state"] == "queued" && reason.contains("suspended")).then_some(())
    });
}

/// Says that it is enough; one process counted every step once, in order.
fn assert_undisturbed(cluster: &Cluster, job: u32, notes: &Path) {
    std::fs::write(notes.with_extension("enough"), "").unwrap();
    let view = cluster.until(job, "finished");
    assert_eq!((&view["restarts"], &view["exit_code"]), (&0.into(), &0.into()), "{view}");
    let steps = steps(notes);
    let pid = steps[0].split(' ').next().unwrap().to_owned();
    let count = steps.len();
    let wanted: Vec<String> = (1..=count).map(|step| format!("{pid} {step}")).collect();
    assert_eq!(steps, wanted);
    let said = cluster.text(&["logs", &job.to_string()]);
    assert_eq!(said, format!("{pid} begins\n{pid} is done with {count}\n"));
}

#[test]
fn a_job_that_cannot_save_itself_is_suspended_and_loses_nothing() {
    let cluster = cluster();
    let (low, notes) = counting(&cluster);
    let (hold, script) = cluster.gate("go");
    let high = cluster.submit(&["--gpus", "1", "--priority", "5", "--", "sh", "-c", &script]);
    cluster.until(high, "running");
    until_suspended(&cluster, low);
    let before = steps(&notes).len();
    let explained = cluster.text(&["explain", &low.to_string()]);
    assert!(explained.contains("suspended"), "{explained}");
    // Time for five steps.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(steps(&notes).len(), before, "it went on while it was suspended");
    std::fs::write(&hold, "").unwrap();
    let high = cluster.until(high, "finished");
    until_further(&notes, 20);
    assert_undisturbed(&cluster, low, &notes);
    assert!(cluster.job(low)["ended"].as_f64() > high["ended"].as_f64());
}

#[test]
fn a_suspended_job_outlives_its_agent_and_the_daemon() {
    let mut cluster = cluster();
    let (low, notes) = counting(&cluster);
    let (hold, script) = cluster.gate("go");
    let high = cluster.submit(&["--gpus", "1", "--priority", "5", "--", "sh", "-c", &script]);
    cluster.until(high, "running");
    until_suspended(&cluster, low);
    cluster.kill_agent(0);
    cluster.kill_daemon();
    cluster.serve();
    cluster.spawn_agent(0);
    cluster.until_up();
    std::fs::write(&hold, "").unwrap();
    cluster.until(high, "finished");
    // In the middle of its second stay.
    until_further(&notes, 4);
    cluster.kill_agent(0);
    cluster.spawn_agent(0);
    until_further(&notes, 20);
    assert_undisturbed(&cluster, low, &notes);
}

#[test]
fn what_suspending_costs_is_learnt_from_how_long_it_takes() {
    let cluster = cluster();
    let notes = cluster.notes().join("steps");
    let env = format!("NOTES={}", notes.display());
    let says = ["--gpus", "1", "--gpu-mem", "900m", "--env", &env];
    let low = cluster.submit(&[&says[..], &["--", "sh", "-c", COUNT]].concat());
    // Nothing moves on a GPU that is made up, so that it costs less than is believed.
    let believed = || {
        let log = cluster.text(&["log", "export"]);
        let facts = log.lines().filter_map(|line| line.split_once("\"fixed\":"));
        let costs = facts.map(|(_, rest)| rest.split([',', '}']).next().unwrap_or_default());
        costs.map(|cost| cost.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let mut learnt = Vec::new();
    for _ in 0..8 {
        until_further(&notes, 3);
        let high = cluster.submit(&["--gpus", "1", "--priority", "5", "--", "true"]);
        cluster.until(high, "finished");
        learnt = believed();
        if learnt.len() > 1 {
            break;
        }
    }
    assert!(learnt.len() > 1 && learnt[1] < learnt[0], "{learnt:?}");
    until_further(&notes, 5);
    assert_undisturbed(&cluster, low, &notes);
}

#[test]
fn a_suspended_job_can_be_cancelled_and_leaves_nothing() {
    let cluster = cluster();
    let (low, notes) = counting(&cluster);
    let high = cluster.submit(&["--gpus", "1", "--priority", "5", "--", "sleep", "600"]);
    cluster.until(high, "running");
    until_suspended(&cluster, low);
    let pid = steps(&notes)[0].split(' ').next().unwrap().to_owned();
    let there = || Path::new(&format!("/proc/{pid}/stat")).exists();
    assert!(there());
    cluster.text(&["cancel", &low.to_string()]);
    cluster.until(low, "cancelled");
    wait_for("its end", || (!there()).then_some(()));
    cluster.text(&["cancel", &high.to_string()]);
    cluster.until(high, "cancelled");
}

#[test]
fn a_job_that_minds_is_left_alone() {
    let cluster = cluster();
    let notes = cluster.notes().join("steps");
    let env = format!("NOTES={}", notes.display());
    let options = ["--gpus", "1", "--no-suspend", "--env", &env];
    let low = cluster.submit(&[&options, &["--", "sh", "-c", COUNT][..]].concat());
    until_further(&notes, 5);
    let high = cluster.submit(&["--gpus", "1", "--priority", "5", "--", "true"]);
    until_further(&notes, 50);
    assert_undisturbed(&cluster, low, &notes);
    let high = cluster.until(high, "finished");
    assert!(cluster.job(low)["ended"].as_f64() < high["ended"].as_f64(), "{high}");
}

#[test]
fn a_suspended_job_is_charged_no_energy() {
    let cluster = cluster();
    let (low, notes) = counting(&cluster);
    let high = cluster.submit(&["--gpus", "1", "--priority", "5", "--", "sleep", "6"]);
    let high = cluster.until(high, "finished");
    // A GPU of 360 W for six seconds is 0.0006 kWh, and half of that with another on it; its first
    // and last second are not sure.
    let kwh = high["energy_kwh"].as_f64().expect("it is measured");
    assert!(kwh > 0.000_37, "{high}");
    assert_undisturbed(&cluster, low, &notes);
}
