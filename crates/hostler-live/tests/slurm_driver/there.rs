//! A Slurm that does what a test says, when it says so: commands are understood as the real one
//! understands them, and may hang for as long as the test likes.

use std::collections::BTreeMap;
use std::sync::Arc;

use hostler_core::units::Time;
use hostler_live::driver::slurm::read::Stands;
use hostler_live::driver::slurm::read::{Asked, End, Memory, SlurmBrief, SlurmJob, SlurmNode};
use hostler_live::driver::slurm::words::Gpus;
use hostler_live::driver::slurm::{CallFault, Sight, SlurmCall, SlurmWord, Told};
use hostler_live::driver::{Call, SlurmDriver, SlurmSettings, Word};
use hostler_live::host::{
    Command, Effect, Experience, Host, Input, JobFilter, Principal, Settings,
};
use hostler_live::job::{JobState, JobView};
use hostler_live::store::memory::Disk;
use hostler_live::store::{HistoryFilter, JobRow, Reader};

/// When it all begins, in seconds since the epoch.
const BEGIN: u64 = 1_000;

/// A daemon, and the cluster that it drives.
pub struct There {
    pub host: Host,
    disk: Disk,
    pub now: u64,
    pub nodes: Vec<SlurmNode>,
    pub jobs: BTreeMap<String, SlurmJob>,
    /// What the accounts know.
    pub accounts: Vec<SlurmJob>,
    /// Commands that came, in order.
    pub log: Vec<String>,
    /// Whether changes are left without an answer.
    pub hangs: bool,
    hanging: Vec<(u64, Vec<Vec<String>>)>,
    inputs: Vec<Input>,
}

impl There {
    pub fn new(policy: &str, settings: &str, nodes: &[SlurmNode]) -> There {
        let settings = SlurmSettings::read(settings).unwrap();
        let disk = Disk::default();
        let builder = |text: &str| {
            hostler_policies::builtin().from_toml(text).map_err(|fault| fault.to_string())
        };
        let driver = Box::new(SlurmDriver::new(settings));
        let (store, builder) = (Box::new(disk.store()), Arc::new(builder));
        let (kept, experience) = (Settings::new(policy), Experience::default());
        let host =
            Host::open_with(driver, store, builder, kept, experience, Time::from_secs(BEGIN));
        There {
            host: host.unwrap(),
            disk,
            now: BEGIN,
            nodes: nodes.to_vec(),
            jobs: BTreeMap::new(),
            accounts: Vec::new(),
            log: Vec::new(),
            hangs: false,
            hanging: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// A second passes: the daemon hears what was told, and asks.
    pub fn second(&mut self) {
        self.now += 1;
        let inputs = std::mem::take(&mut self.inputs);
        let effects = self.host.handle(Time::from_secs(self.now), inputs).unwrap();
        for effect in effects {
            let Effect::Call(Call::Slurm(call)) = effect else { continue };
            match call {
                SlurmCall::Read { number, what } => self.tell(number, Ok(self.seen(what))),
                SlurmCall::Remember { number, jobs } => {
                    let known = self.accounts.iter().filter(|job| jobs.contains(&job.name_there));
                    let known = Told::Ends(known.cloned().collect());
                    self.tell(number, Ok(known));
                }
                SlurmCall::Change { number, steps } => self.hanging.push((number, steps)),
            }
        }
        if !self.hangs {
            self.answer();
        }
        self.host.state().audit();
    }

    pub fn seconds(&mut self, count: u32) {
        (0..count).for_each(|_| self.second());
    }

    /// Does what hangs, and tells so.
    pub fn answer(&mut self) {
        for (number, steps) in std::mem::take(&mut self.hanging) {
            let done = steps.iter().try_for_each(|step| self.carry_out(step));
            let done = done.map_err(CallFault::Refused);
            self.inputs.push(Input::Driver(Word::Slurm(SlurmWord::Changed { number, done })));
        }
    }

    /// How many changes have no answer yet.
    pub fn hanging(&self) -> usize {
        self.hanging.len()
    }

    fn tell(&mut self, number: u64, told: Result<Told, CallFault>) {
        self.inputs.push(Input::Driver(Word::Slurm(SlurmWord::Told { number, told })));
    }

    fn seen(&self, what: Sight) -> Told {
        let jobs = || self.jobs.values().cloned();
        match what {
            Sight::Config => Told::Config { counts_memory: true },
            Sight::Nodes => Told::Nodes(self.nodes.clone()),
            Sight::Jobs => Told::Jobs(jobs().collect()),
            Sight::Briefs => Told::Briefs(jobs().map(brief).collect()),
        }
    }

    fn carry_out(&mut self, words: &[String]) -> Result<(), String> {
        self.log.push(words.join(" "));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["scancel", name] => {
                self.end(name, End::Cancelled);
                Ok(())
            }
            ["scontrol", "requeue", "incomplete", name] => match self.jobs[name].stands {
                // It says nothing about those that are left out.
                Stands::Over(_) => Ok(()),
                _ => self.requeue(name),
            },
            ["scontrol", "requeue", name] => self.requeue(name),
            ["scontrol", "update", job, ..] => {
                let names = job.strip_prefix("jobid=").unwrap();
                self.update(names, &words[3..])
            }
            _ => panic!("{words:?}"),
        }
    }

    fn requeue(&mut self, name: &str) -> Result<(), String> {
        let job = self.jobs.get_mut(name).unwrap();
        if !job.requeues {
            return Err("Requested operation is presently disabled".to_owned());
        }
        (job.stands, job.restarts) = (Stands::Waits, job.restarts + 1);
        (job.started, job.ended) = (None, None);
        (job.on, job.gpus_on) = (Vec::new(), Vec::new());
        Ok(())
    }

    fn update(&mut self, names: &str, words: &[&str]) -> Result<(), String> {
        let array = names.split_once("_[").map(|(array, _)| format!("{array}_"));
        let is_one = |name: &str| match &array {
            Some(array) => name.starts_with(array),
            None => name == names,
        };
        let jobs = self.jobs.iter_mut().filter(|(name, _)| is_one(name));
        for (_, job) in jobs {
            if job.stands != Stands::Waits {
                return Err("Job has already finished".to_owned());
            }
            for word in words {
                let (key, value) = word.split_once('=').unwrap();
                match key {
                    "partition" => value.clone_into(&mut job.partition),
                    "ReqNodeList" => {
                        let list = value.split(',').filter(|name| !name.is_empty());
                        job.required = list.map(str::to_owned).collect();
                    }
                    "Priority" => job.priority = value.parse().unwrap(),
                    "MinMemoryNode" => job.mem = Memory::OnEachNode(value.parse().unwrap()),
                    "AdminComment" => value.clone_into(&mut job.comment),
                    "NumNodes" | "StartTime" => {}
                    _ => panic!("{word}"),
                }
            }
        }
        Ok(())
    }

    /// A job comes that asks for so many GPUs of one node, for so long.
    pub fn submit(&mut self, name: &str, gpus: u32, limit_mins: u64) {
        let asked = match gpus {
            0 => Asked::None,
            count => Asked::OnEachNode(Gpus { count, model: None }),
        };
        let job = SlurmJob {
            name_there: name.to_owned(),
            name: format!("job-{name}"),
            user: "ada".to_owned(),
            account: "bio".to_owned(),
            partition: "hostler".to_owned(),
            reason: "PartitionDown".to_owned(),
            priority: 100,
            gpus: asked,
            nodes: 1,
            nodes_max: Some(1),
            cpus: 1,
            mem: Memory::OnEachNode(100),
            limit_secs: Some(limit_mins * 60),
            submitted: self.now,
            requeues: true,
            ..SlurmJob::default()
        };
        self.jobs.insert(name.to_owned(), job);
    }

    /// Slurm starts a job that was moved, with so many GPUs.
    pub fn run(&mut self, name: &str, gpus: u32) {
        let now = self.now;
        let job = self.jobs.get_mut(name).unwrap();
        assert_eq!((job.partition.as_str(), job.stands), ("normal", Stands::Waits), "{name}");
        assert!(!job.required.is_empty(), "nobody said where {name} is to run");
        (job.stands, job.started) = (Stands::Runs, Some(now));
        job.on.clone_from(&job.required);
        job.gpus_on = vec![gpus; usize::from(gpus > 0)];
    }

    pub fn end(&mut self, name: &str, end: End) {
        let now = self.now;
        let job = self.jobs.get_mut(name).unwrap();
        // Who never began has a time of that, too.
        job.started.get_or_insert(now);
        (job.stands, job.ended) = (Stands::Over(end), Some(now));
        job.exit_code = Some(i32::from(end == End::Failed));
    }

    pub fn cancel(&mut self, job: u32) {
        let command = Box::new(Command::Cancel { job, version: None });
        self.inputs.push(Input::Command { slot: 1, by: Principal::daemon(), command });
    }

    pub fn came(&self, beginning: &str) -> usize {
        self.log.iter().filter(|line| line.starts_with(beginning)).count()
    }

    /// Jobs that are not over here, by number: what Slurm calls them, and where they stand.
    pub fn here(&self) -> Vec<(u32, String, JobState)> {
        let jobs = self.host.jobs(&JobFilter { limit: 100, ..JobFilter::default() });
        let of = |job: JobView| (job.id, job.engine_id.unwrap_or_default(), job.state);
        jobs.into_iter().map(of).collect()
    }

    pub fn job(&self, number: u32) -> JobView {
        self.host.job(number).unwrap()
    }

    /// Jobs that are over.
    pub fn over(&self) -> Vec<JobRow> {
        let all = HistoryFilter { limit: 100, ..HistoryFilter::default() };
        self.disk.store().history(&all).unwrap()
    }

    /// The log.
    pub fn records(&self) -> Vec<String> {
        let records = self.disk.store().records(0, 10_000).unwrap();
        records.into_iter().map(|(_, text)| text).collect()
    }

    /// GPUs that are booked.
    pub fn booked(&self) -> usize {
        let parts = |lease: &hostler_core::placement::Lease| {
            lease.placement.parts.iter().map(|part| part.slices.len()).sum::<usize>()
        };
        self.host.state().leases().map(parts).sum()
    }
}

fn brief(job: SlurmJob) -> SlurmBrief {
    SlurmBrief {
        name_there: job.name_there,
        stands: job.stands,
        partition: job.partition,
        on: job.on,
        priority: job.priority,
        reason: job.reason,
        started: job.started,
        ended: job.ended,
    }
}

/// A node with GPUs of one model.
pub fn node(name: &str, gpus: u32, mem: u64) -> SlurmNode {
    SlurmNode {
        name: name.to_owned(),
        partitions: vec!["hostler".to_owned(), "normal".to_owned()],
        state: "idle".to_owned(),
        cpus: 32,
        mem,
        threads: 1,
        gpus: Ok(Gpus { count: gpus, model: Some("v100".to_owned()) }),
        reason: String::new(),
        reserved: false,
    }
}
