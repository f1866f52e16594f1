//! The same jobs under Slurm alone, under Hostler on Slurm, and simulated.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::day::{self, Job};
use crate::harness::{Cluster, PROGRAM};
use crate::lab::{Lab, Wants};
use crate::{PAI, Size};

/// Policies of Hostler, as `serve` and `simulate` take them.
const POLICIES: [&str; 2] = ["fifo-backfill", "sjf"];

/// What became of them.
struct Figures {
    wait: f64,
    completion: f64,
    utilisation: f64,
    makespan: f64,
}

pub fn measure(size: &Size) {
    let jobs = day::jobs(size);
    let delay = start_delay();
    println!(
        "policies: {} jobs on {} GPUs of 28 nodes; a start takes {delay:.2} s",
        jobs.len(),
        day::gpus()
    );
    println!(
        "{:<34} {:>8} {:>12} {:>12} {:>10}",
        "", "wait s", "completion s", "utilisation", "makespan s"
    );
    let alone = Lab::start(PAI, &Wants { alone: true, ..Wants::default() });
    show("Slurm alone (backfill)", &played(&alone, "normal", &jobs));
    drop(alone);
    let folder = tempfile::tempdir().unwrap();
    day::write(folder.path(), &jobs, delay);
    for policy in POLICIES {
        let lab = Lab::start(PAI, &Wants::default());
        let cluster: Cluster = lab.hostler(policy, "");
        let real = played(&lab, "ext", &jobs);
        show(&format!("Hostler on Slurm: {policy}"), &real);
        drop(cluster);
        drop(lab);
        let simulated = simulated(folder.path(), policy, &jobs);
        show("  simulated", &simulated);
        let off = |of: fn(&Figures) -> f64| (of(&simulated) / of(&real) - 1.0) * 100.0;
        println!(
            "  prediction off by {:+.1} % (wait), {:+.1} % (completion), {:+.1} % (utilisation), \
             {:+.1} % (makespan); goal 10 %",
            off(|figures| figures.wait),
            off(|figures| figures.completion),
            off(|figures| figures.utilisation),
            off(|figures| figures.makespan),
        );
    }
}

fn show(name: &str, figures: &Figures) {
    println!(
        "{name:<34} {:>8.1} {:>12.1} {:>11.1} % {:>10.1}",
        figures.wait,
        figures.completion,
        figures.utilisation * 100.0,
        figures.makespan
    );
}

/// Seconds from the decision to a job's first step, on a cluster that has nothing else to do.
fn start_delay() -> f64 {
    let lab = Lab::start(PAI, &Wants::default());
    let cluster = lab.hostler("fifo", "");
    let mut all = Vec::new();
    for number in 0..9 {
        let file = lab.path("notes").join(format!("began{number}"));
        let begun = Instant::now();
        lab.submit("-t 1 --gres=gpu:t4:1", &format!("date +%s.%N > {}", file.display()));
        while !file.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        all.push(begun.elapsed().as_secs_f64());
    }
    drop(cluster);
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Submits each at its time, waits for all, and reads what they noted.
fn played(lab: &Lab, partition: &str, jobs: &[Job]) -> Figures {
    let notes = lab.path("notes").display().to_string();
    let begun = Instant::now();
    let mut submitted = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        std::thread::sleep(Duration::from_secs_f64(job.at).saturating_sub(begun.elapsed()));
        let options = format!(
            "-N{} -t {} --mem=10 --gres=gpu:{}:{}",
            job.nodes, job.limit_mins, job.kind.model, job.gpus
        );
        let script = format!(
            "date +%s.%N > {notes}/begin{number}; sleep {}; date +%s.%N > {notes}/end{number}",
            job.secs
        );
        submitted.push(now());
        lab.submit_to(partition, &options, &script);
    }
    let end = Instant::now() + Duration::from_secs(1800);
    let time = |name: String| {
        loop {
            let text = std::fs::read_to_string(lab.path("notes").join(&name)).unwrap_or_default();
            if let Ok(time) = text.trim().parse::<f64>() {
                return time;
            }
            assert!(Instant::now() < end, "`{name}` is not there after half an hour");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let runs: Vec<(f64, f64)> = (0..jobs.len())
        .map(|number| (time(format!("begin{number}")), time(format!("end{number}"))))
        .collect();
    let mean = |of: &dyn Fn(usize) -> f64| (0..jobs.len()).map(of).sum::<f64>() / jobs.len() as f64;
    let last = runs.iter().map(|(_, end)| *end).fold(0.0, f64::max);
    let makespan = last - submitted[0];
    let work: f64 = jobs.iter().map(Job::gpu_secs).sum();
    Figures {
        wait: mean(&|number| runs[number].0 - submitted[number]),
        completion: mean(&|number| runs[number].1 - submitted[number]),
        utilisation: work / (makespan * f64::from(day::gpus())),
        makespan,
    }
}

fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// What the simulator says of the same; a wait ends with the first step of work there, too.
fn simulated(folder: &Path, policy: &str, jobs: &[Job]) -> Figures {
    let of = |name: &str| folder.join(name).display().to_string();
    let output = Command::new(PROGRAM)
        .args(["simulate", "--trace", &folder.display().to_string(), "--cluster", &of("nodes.csv")])
        .args(["--scenario", &of("scenario.toml"), "--policy", policy, "--set", "estimate=user"])
        .arg("--json")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = |name: &str| page[name].as_f64().unwrap();
    let work: f64 = jobs.iter().map(Job::gpu_secs).sum();
    let run = jobs.iter().map(|job| job.secs as f64).sum::<f64>() / jobs.len() as f64;
    let makespan = figure("makespan_s");
    Figures {
        wait: figure("avg_jct_s") - run,
        completion: figure("avg_jct_s"),
        utilisation: work / (makespan * f64::from(day::gpus())),
        makespan,
    }
}
