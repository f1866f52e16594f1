//! What jobs say that they use of a GPU lets more of them share it.

use crate::harness::{Cluster, PROGRAM, wait_for};

#[test]
fn jobs_that_use_little_are_packed_once_three_like_them_have_ended() {
    let mut cluster = Cluster::new(&["--plain", "--policy", "sjf:estimate=median:sharing=packed"]);
    cluster.serve();
    let mut options = vec!["--fake-gpus", "1xV100"];
    if rustix::process::geteuid().is_root() {
        // Who may run the program that is tested, wherever it lies.
        options.extend(["--job-user", "0:0"]);
    }
    cluster.enrol("n0", &options);
    cluster.until_up();
    let go = cluster.notes().join("go");
    let asks = ["--gpus", "0.5", "--gpu-mem", "2048", "--share", "willing", "--group", "small"];
    let submit = |script: &str| cluster.submit(&[&asks[..], &["--", "sh", "-c", script]].concat());
    let tell = format!("{PROGRAM} progress --gpu-use 0.2");
    for _ in 0..3 {
        let job = submit(&tell);
        cluster.until(job, "finished");
    }
    let script = format!("{tell}; while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let jobs: Vec<u32> = (0..6).map(|_| submit(&script)).collect();
    // Five times a fifth is all of it.
    let running = || jobs.iter().filter(|job| cluster.job(**job)["state"] == "running").count();
    wait_for("five at once", || (running() == 5).then_some(()));
    assert_eq!(cluster.job(jobs[5])["state"], "queued");
    std::fs::write(&go, "").unwrap();
    for job in jobs {
        cluster.until(job, "finished");
    }
    let log = cluster.folder().join("daemon.jsonl").display().to_string();
    cluster.text(&["log", "export", "--out", &log]);
    let checked = cluster.text(&["replay", &log, "--check"]);
    assert!(checked.contains("all the same"), "{checked}");
}
