//! How fast jobs are started that all wait already, and what that costs the daemon.

use std::time::{Duration, Instant};

use crate::harness::processes;
use crate::lab::{Lab, Wants};
use crate::{PAI, Size};

/// Time between two looks of ours: each costs Slurm some of what is measured.
const LOOK: Duration = Duration::from_millis(250);

pub fn measure(size: &Size) {
    let lab = Lab::start(PAI, &Wants::default());
    // Of one core each. They stay until all are there, so that nothing but starts is measured.
    let array = format!("-t 9 --mem=10 --array=1-{}", size.starts);
    let list = lab.submit(&array, "sleep 300");
    let mut cluster = lab.hostler("fifo", "calls_max = 4\ncomments = false");
    let daemon = cluster.daemon().pid();
    let (begun, before) = (Instant::now(), processes::processor_secs(daemon));
    let first = in_room(&lab);
    let moved = loop {
        std::thread::sleep(LOOK);
        if in_room(&lab) == 0 {
            break begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "jobs are left in the waiting room");
    };
    let after = processes::processor_secs(daemon);
    let run = loop {
        if running(&lab) == size.starts {
            break begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "not all of them run");
        std::thread::sleep(LOOK);
    };
    let each = |secs: f64| secs * 1e3 / first as f64;
    println!(
        "starts: {first} jobs, 4 updates at a time: {:.0} starts/s (goal 50); all run after {:.1} s",
        first as f64 / moved.as_secs_f64(),
        run.as_secs_f64(),
    );
    println!(
        "  processor time for each: daemon {:.1} ms (goal 10), Slurm's commands {:.1} ms",
        each(after.own - before.own),
        each(after.children - before.children),
    );
    lab.text(&["scancel", &list]);
}

fn in_room(lab: &Lab) -> usize {
    let words = ["squeue", "-h", "-r", "-a", "-p", "ext", "-t", "PD", "-o", "%i"];
    lab.text(&words).lines().count()
}

fn running(lab: &Lab) -> usize {
    let words = ["squeue", "-h", "-r", "-a", "-t", "R", "-o", "%i"];
    lab.text(&words).lines().count()
}
