//! Everything dies at any time, and no job is started twice, lost, or put where there is no room.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use hostler_core::random::Random;

use crate::door::Door;
use crate::harness::{Cluster, wait_for};
use crate::lab::{Lab, SMALL, Wants, is_possible};

/// Things that happen.
const ROUNDS: u32 = 50;

/// The round from which on jobs give way to shorter ones.
const PREEMPTS_FROM: u32 = 20;

/// Time in which all jobs are over after the last of them.
const PATIENCE: Duration = Duration::from_secs(100);

struct Story {
    lab: Lab,
    cluster: Cluster,
    door: Door,
    random: Random,
    jobs: Vec<String>,
    /// A node whose daemon is gone.
    dead: Option<String>,
}

impl Story {
    fn below(&mut self, most: u64) -> u64 {
        self.random.bits() % most
    }

    fn submit(&mut self) {
        let gpus = ["gpu:p100:2", "gpu:p100:1", "gpu:t4:1", "gpu:misc:3", "gpu:v100:5", "gpu:2"];
        let gpus = gpus[self.below(6) as usize];
        let (nodes, mins) = (1 + self.below(8) / 7, 1 + self.below(9));
        let notes = self.lab.path("notes").display().to_string();
        let note = format!("$SLURM_JOB_ID $SLURM_RESTART_COUNT >> {notes}/");
        // The accounts count seconds: what is shorter cannot be seen there to overlap.
        let secs = format!("{}.{}", self.below(4), 2 + self.below(8));
        let script = format!("echo {note}begun; sleep {secs}; echo {note}ended");
        let options = format!("-N{nodes} -t {mins} --gres={gpus}");
        // Nobody submits while the controller is away.
        if let Ok(job) = self.lab.try_submit(&options, &script) {
            self.jobs.push(job);
        }
    }

    fn happen(&mut self) {
        match self.below(9) {
            0..=2 => {
                self.cluster.kill_daemon();
                self.cluster.spawn_daemon();
            }
            3 => {
                self.lab.stop_controller();
                self.lab.start_controller();
            }
            4 => {
                // Whoever calls now is refused.
                self.lab.stop_controller();
                std::thread::sleep(Duration::from_millis(500));
                self.lab.start_controller();
            }
            5 => {
                // Slurm goes on, and nobody gets there for longer than from one look to the next.
                self.door.shut();
                std::thread::sleep(Duration::from_millis(1500));
                self.door.open();
            }
            6 => {
                let back = self.dead.take();
                if let Some(name) = back {
                    self.lab.start_node(&name);
                } else {
                    let names = ["p1", "t1", "m1"];
                    let name = names[self.below(3) as usize].to_owned();
                    self.lab.kill_node(&name);
                    self.dead = Some(name);
                }
            }
            _ => {}
        }
    }

    /// From now on jobs give way to shorter ones, and some end while that is on its way.
    fn preempt(&self) {
        self.door.takes(Duration::from_millis(600));
        // It may just be starting.
        wait_for("the policy", || self.cluster.run(&["policy", "set", "srtf"]).ok());
    }

    /// Waits until Slurm has nothing left of what was submitted.
    fn until_over(&mut self) {
        self.door.takes(Duration::ZERO);
        if let Some(name) = self.dead.take() {
            self.lab.start_node(&name);
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let left = self.lab.run(&["squeue", "-h", "-a", "-o", "%i %T %P %r"]);
            match left {
                Ok(left) if left.trim().is_empty() => return,
                left => assert!(Instant::now() < end, "jobs are left: {left:?}"),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn nothing_is_doubled_lost_or_overbooked_whatever_dies() {
    if !is_possible() {
        return;
    }
    let lab = Lab::start(SMALL, &Wants { accounts: true, ..Wants::default() });
    let door = Door::to(&lab);
    let lines = "start_secs = 5\ncall_secs = 8\npreempt_requeueable = true";
    let cluster = lab.hostler_by(&door.conf, "sjf", lines);
    let (random, jobs) = (Random::new(7), Vec::new());
    let mut story = Story { lab, cluster, door, random, jobs, dead: None };
    for round in 0..ROUNDS {
        if round == PREEMPTS_FROM {
            story.preempt();
        }
        for _ in 0..2 {
            story.submit();
        }
        story.happen();
        std::thread::sleep(Duration::from_millis(250));
    }
    story.until_over();
    check_notes(&story);
    check_accounts(&story.lab, &story.jobs);
}

/// Each start of a job began once, and each job came to its end.
fn check_notes(story: &Story) {
    let lines = |name: &str| {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let text = fs::read_to_string(story.lab.path("notes").join(name)).unwrap();
        text.lines().for_each(|line| *counts.entry(line.trim().to_owned()).or_default() += 1);
        counts
    };
    let begun = lines("begun");
    let twice: Vec<_> = begun.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "started twice: {twice:?}");
    let ended = lines("ended");
    for job in &story.jobs {
        let over = ended.keys().any(|line| line.split(' ').next() == Some(job.as_str()));
        assert!(over, "job {job} never ended");
    }
}

/// By the accounts: every job is done once, some gave way before that, and no node was ever given
/// more GPUs than it has.
fn check_accounts(lab: &Lab, jobs: &[String]) {
    let format = "JobID,State,Start,End,NodeList,AllocTRES";
    let words = ["sacct", "-X", "-P", "-n", "-D", "-a", "-S", "2000-01-01", "-o", format];
    // The accounts are written a moment later.
    let end = Instant::now() + Duration::from_secs(30);
    let done = loop {
        let text = lab.text(&words);
        let is_done = |job: &&String| {
            let line = format!("{job}|COMPLETED|");
            text.lines().any(|known| known.starts_with(&line))
        };
        let done = jobs.iter().filter(is_done).count();
        if done == jobs.len() {
            break text;
        }
        assert!(Instant::now() < end, "{done} of {} jobs completed:\n{text}", jobs.len());
        std::thread::sleep(Duration::from_millis(300));
    };
    let ends = |wanted: &str| {
        let mut ends = done.lines().filter_map(|line| line.split('|').nth(1));
        ends.by_ref().filter(|end| *end == wanted).count()
    };
    // Each time that a job runs is a line of its own.
    assert_eq!(ends("COMPLETED"), jobs.len(), "jobs that were over ran once more:\n{done}");
    assert!(ends("REQUEUED") > 0, "nobody gave way:\n{done}");
    let mut steps: BTreeMap<(String, u64), i64> = BTreeMap::new();
    for line in done.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [_, _, started, ended, nodes, given] = fields[..] else { panic!("{line}") };
        let (Ok(started), Ok(ended)) = (started.parse::<u64>(), ended.parse::<u64>()) else {
            continue;
        };
        let nodes = lab.text(&["scontrol", "show", "hostnames", nodes]);
        let count = nodes.lines().count().max(1) as i64;
        let gpus = given.split(',').find_map(|part| part.strip_prefix("gres/gpu="));
        let each = gpus.map_or(0, |gpus| gpus.parse::<i64>().unwrap()) / count;
        // Seconds are all that is known: who ends in the second in which another begins is past.
        for node in nodes.lines().filter(|_| ended > started) {
            *steps.entry((node.to_owned(), started)).or_default() += each;
            *steps.entry((node.to_owned(), ended)).or_default() -= each;
        }
    }
    let mut held: BTreeMap<String, i64> = BTreeMap::new();
    for ((node, at), step) in steps {
        let held = held.entry(node.clone()).or_default();
        *held += step;
        let kind = SMALL.iter().find(|kind| node.starts_with(kind.prefix)).unwrap();
        assert!(*held <= i64::from(kind.gpus), "{node} holds {held} GPUs at {at}");
    }
}
