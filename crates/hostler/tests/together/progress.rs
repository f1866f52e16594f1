//! What a job tells about itself changes what is believed about it.

use crate::harness::{Cluster, PROGRAM, wait_for};

#[test]
fn reports_of_progress_change_the_expected_end() {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    let mut options = vec!["--fake-gpus", "1xV100"];
    if rustix::process::geteuid().is_root() {
        // Who may run the program that is tested, wherever it lies.
        options.extend(["--job-user", "0:0"]);
    }
    cluster.enrol("n0", &options);
    cluster.until_up();
    let go = cluster.notes().join("go");
    let wait = |name: &str| format!("while [ ! -e {}.{name} ]; do sleep 0.05; done", go.display());
    let (tell, finish) = (wait("tell"), wait("finish"));
    let script = format!(
        "{tell}; {PROGRAM} progress --step 10 --total 1000; {finish}; \
         {PROGRAM} progress --step 1000 --total 1000 --saved"
    );
    let job = cluster.submit(&["--gpus", "1", "--estimate", "10s", "--", "sh", "-c", &script]);
    let waiting = cluster.submit(&["--gpus", "1", "--", "true"]);
    let before = cluster.until(job, "running");
    let (started, expected) = (before["started"].as_f64(), before["expected_end"].as_f64());
    let first = expected.unwrap() - started.unwrap();
    assert!((9.0..11.0).contains(&first), "ten seconds were estimated: {before}");
    std::thread::sleep(std::time::Duration::from_secs(1));
    std::fs::write(go.with_extension("tell"), "").unwrap();
    let after = wait_for("progress", || {
        let view = cluster.job(job);
        (view["steps_done"] == 10).then_some(view)
    });
    // A hundredth took at least a second.
    let second = after["expected_end"].as_f64().unwrap() - started.unwrap();
    assert!(second > 90.0, "the pace so far says more: {after}");
    let why = cluster.text(&["explain", &waiting.to_string()]);
    assert!(why.contains("because"), "{why}");
    std::fs::write(go.with_extension("finish"), "").unwrap();
    let view = cluster.until(job, "finished");
    assert_eq!(view["steps_done"], 1000, "{view}");
    cluster.until(waiting, "finished");
}
