//! What is shown: runs that nobody disturbs, the same runs in turns, and one that gives way.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Options;
use super::cluster::Cluster;
use super::job::{Run, Said, Task};
use super::log::{Moves, moves};
use super::needs::{Machine, output};
use super::report::{Priority, Report, Sliced};

/// The training loop.
const TRAIN: &str = include_str!("train.py");

/// GPU memory of the small victim, and of the job that is more important.
pub const SMALL_GIB: u32 = 2;

/// GPU memory that a job takes besides its data: model, workspace, the driver's own.
const MORE_GIB: u32 = 2;

/// Main memory beside a made-up GPU: enough for all.
const PRETENDED_MEM: &str = "256G";

/// Jobs that take turns.
const JOBS: u32 = 3;

/// A short run: it tells how fast the GPU is, and it is the job that is more important.
const SHORT: Task = Task { gib: SMALL_GIB, steps: 300, seed: 100 };

/// Longest that any of it may take.
const WAIT_SECS_MAX: u64 = 3600;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// A cluster on which it is shown.
pub struct Demo {
    cluster: Cluster,
    machine: Machine,
    begun: Instant,
    /// The short run, undisturbed.
    short: Option<Run>,
}

impl Demo {
    pub fn start(program: &Path, machine: Machine, options: &Options) -> Result<Demo> {
        let mut agent = Vec::new();
        if options.pretend {
            agent.extend(["--fake-gpus", "1xH200:143771", "--suspend", "on"]);
        }
        let pretended = options.pretend.then_some(PRETENDED_MEM);
        if let Some(mem) = options.mem.as_deref().or(pretended) {
            agent.extend(["--mem-mib", mem]);
        }
        let cluster = Cluster::start(program, &agent)?;
        fs::write(cluster.folder().join("train.py"), TRAIN)?;
        let demo = Demo { cluster, machine, begun: Instant::now(), short: None };
        let nodes = demo.cluster.json(&["nodes", "--json"])?;
        check_node(&nodes[0], options.gib)?;
        demo.hold_others()?;
        Ok(demo)
    }

    /// Leaves one GPU free.
    fn hold_others(&self) -> Result<()> {
        let others = (self.machine.gpus - 1).to_string();
        if others != "0" {
            let words = ["submit", "--no-suspend", "--gpus", &others, "--", "sleep", "infinity"];
            self.cluster.text(&words)?;
        }
        Ok(())
    }

    /// Ends daemon and agent, which must still be there.
    pub fn end(mut self) -> Result<()> {
        self.cluster.check()
    }

    fn say(&self, words: &str) {
        eprintln!("{:6.1} s  {words}", self.begun.elapsed().as_secs_f64());
    }

    /// All large jobs, one after the other.
    pub fn alone(&mut self, options: &Options) -> Result<Report> {
        self.decide_by("fifo")?;
        let short = self.run(&[SHORT])?.remove(0);
        let steps = (short.rate() * f64::from(options.secs)) as u64;
        self.say(&format!("{:.0} steps a second; each job does {steps}", short.rate()));
        let tasks: Vec<Task> =
            (1..=JOBS).map(|seed| Task { gib: options.gib, steps, seed }).collect();
        let alone = self.run(&tasks)?;
        self.say("none of them was disturbed");
        let version = self.cluster.text(&["--version"])?;
        let date = output(Path::new("date"), &["-u", "+%Y-%m-%d"])?;
        let about = format!("{}; {}; {}", self.machine.words, version.trim(), date.trim());
        self.short = Some(short);
        Ok(Report { about, alone, slices: Vec::new(), priorities: Vec::new() })
    }

    /// The same jobs at once, in turns.
    pub fn sliced(&mut self, report: &Report, secs: u32) -> Result<Sliced> {
        let policy = format!("las:quantum_gpu_secs={secs}");
        self.decide_by(&policy)?;
        let tasks: Vec<Task> = report.alone.iter().map(|run| run.task).collect();
        let runs = self.run(&tasks)?;
        for (run, undisturbed) in runs.iter().zip(&report.alone) {
            run.must_equal(undisturbed)?;
        }
        let moves = self.moves(&runs)?;
        if moves.out.is_empty() {
            bail!("nobody was suspended under `{policy}`: the jobs are too short");
        }
        self.say(&format!("{} suspensions, and the losses are the same", moves.out.len()));
        Ok(Sliced { policy, runs, moves })
    }

    /// A job that runs gives way to one that is more important.
    pub fn priority(&mut self, report: &Report, gib: u32) -> Result<Priority> {
        let large = report.alone.first().filter(|run| run.task.gib == gib).cloned();
        let undisturbed = match large {
            Some(run) => run,
            None => {
                self.decide_by("fifo")?;
                let steps = report.alone[0].task.steps / 2;
                self.run(&[Task { gib, steps, seed: 1 }])?.remove(0)
            }
        };
        self.decide_by("priority:preempt=true")?;
        let victim = self.submit(undisturbed.task, 0)?;
        self.until("its first step", |demo| {
            let said = demo.cluster.text(&["logs", "--stdout", &victim.to_string()])?;
            Ok(said.contains("first-step ").then_some(()))
        })?;
        std::thread::sleep(Duration::from_secs_f64(undisturbed.said.worked / 8.0));
        self.say("a job with priority comes");
        let important = self.submit(SHORT, 5)?;
        let important = self.wait(&[(important, SHORT)])?.remove(0);
        let victim = self.wait(&[(victim, undisturbed.task)])?.remove(0);
        victim.must_equal(&undisturbed)?;
        important.must_equal(self.short.as_ref().expect("it comes first"))?;
        let moves = self.moves(std::slice::from_ref(&victim))?;
        let [out, back] = [&moves.out, &moves.back].map(|times| times.first().copied());
        let (Some(out), Some(back)) = (out, back) else {
            bail!("job {} was not suspended", victim.job);
        };
        Ok(Priority { undisturbed, victim, important, out, back })
    }

    fn decide_by(&self, policy: &str) -> Result<()> {
        self.say(&format!("policy {policy}"));
        self.cluster.text(&["policy", "set", policy]).map(drop)
    }

    /// Submits all, and waits until they are over.
    fn run(&mut self, tasks: &[Task]) -> Result<Vec<Run>> {
        let mut jobs = Vec::new();
        for task in tasks {
            jobs.push((self.submit(*task, 0)?, *task));
        }
        self.wait(&jobs)
    }

    fn submit(&self, task: Task, priority: u32) -> Result<u32> {
        let Task { gib, steps, seed } = task;
        let [mem, priority] = [format!("{}G", gib + MORE_GIB), priority.to_string()];
        let train = self.cluster.folder().join("train.py");
        let (python, train) = (self.machine.python.to_string_lossy(), train.to_string_lossy());
        let [gib, steps, seed] = [gib.to_string(), steps.to_string(), seed.to_string()];
        let mut words = vec!["submit", "--gpus", "1", "--gpu-mem", &mem, "--priority", &priority];
        words.extend(["--", &python, &train, "--gib", &gib, "--steps", &steps, "--seed", &seed]);
        words.extend(self.machine.pretend.then_some("--pretend"));
        Ok(self.cluster.text(&words)?.trim().parse()?)
    }

    /// Waits until jobs are over, all well.
    fn wait(&mut self, jobs: &[(u32, Task)]) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        for (job, task) in jobs {
            let view = self.until("the end of a job", |demo| {
                let view = demo.cluster.json(&["show", "--json", &job.to_string()])?;
                if view["state"] == "held" {
                    bail!("job {job} cannot run here: {}", words(&view["reason"]));
                }
                Ok(view["ended"].is_number().then_some(view))
            })?;
            runs.push(self.over(*job, *task, &view)?);
        }
        Ok(runs)
    }

    fn over(&self, job: u32, task: Task, view: &Value) -> Result<Run> {
        let number = job.to_string();
        if view["state"] != "finished" {
            let faults = self.cluster.text(&["logs", "--stderr", "--tail", "20", &number])?;
            bail!("job {job}: {} {}\n{faults}", words(&view["state"]), words(&view["reason"]));
        }
        let output = self.cluster.text(&["logs", "--stdout", &number])?;
        let said = Said::parse(&output).with_context(|| format!("job {job}"))?;
        let Said { loss, pauses, worked, .. } = &said;
        self.say(&format!("job {job}: loss {loss}, {worked:.1} s of work, {pauses} pauses"));
        let time = |name: &str| view[name].as_f64().with_context(|| format!("no time `{name}`"));
        let [submitted, started, ended] = [time("submitted")?, time("started")?, time("ended")?];
        let restarts = view["restarts"].as_u64().context("no restarts")?;
        Ok(Run { job, task, submitted, started, ended, restarts, said })
    }

    /// Looks until there is an answer.
    fn until<T>(&mut self, what: &str, look: impl Fn(&Demo) -> Result<Option<T>>) -> Result<T> {
        let end = Instant::now() + Duration::from_secs(WAIT_SECS_MAX);
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            self.cluster.check()?;
            if Instant::now() > end {
                bail!("waited in vain for {what}");
            }
            std::thread::sleep(LOOK);
        }
    }

    fn moves(&self, runs: &[Run]) -> Result<Moves> {
        let jobs: Vec<u32> = runs.iter().map(|run| run.job).collect();
        moves(&self.cluster.text(&["log", "export"])?, &jobs)
    }
}

/// Fails where jobs cannot be suspended, or not all that take turns.
fn check_node(node: &Value, gib: u32) -> Result<()> {
    if node["suspends"] != true {
        bail!("this machine does not suspend jobs: {}", words(&node["cannot_suspend"]));
    }
    let needed = u64::from(JOBS * (gib + MORE_GIB));
    if node["mem_mib"].as_u64() < Some(needed * 1024) {
        bail!("jobs that take turns wait in main memory: {needed} GiB of it are needed");
    }
    Ok(())
}

fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_machine_that_cannot_suspend_says_why() {
        let fault = |node: Value| check_node(&node, 20).map_err(|fault| fault.to_string());
        let node = json!({ "suspends": true, "mem_mib": 66 * 1024 });
        assert_eq!(fault(node), Ok(()));
        let node = json!({ "suspends": true, "mem_mib": 66 * 1024 - 1 });
        let words = "jobs that take turns wait in main memory: 66 GiB of it are needed";
        assert_eq!(fault(node), Err(words.to_owned()));
        let node = json!({ "suspends": false, "cannot_suspend": "the driver is too old" });
        let words = "this machine does not suspend jobs: the driver is too old";
        assert_eq!(fault(node), Err(words.to_owned()));
    }
}
