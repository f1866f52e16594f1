//! Dealing GPUs out anew, down a list: what the original does with jobs that may be stopped.
//!
//! It does so when a job arrives or ends, or when a queue changes, and at no other time. Who comes
//! first is the business of a [`Discipline`], which keeps its list from one time to the next.

use hostler_core::decision::StopHow;
use hostler_core::id::JobId;
use hostler_core::job::{Job, Phase};
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::stage::place_job;
use hostler_core::units::Time;
use hostler_core::view::View;
use hostler_policies::place::first_fit::FirstFit;

use super::SECOND;

/// A job as the original keeps it; times in seconds.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) gpus: u32,
    pub(super) duration: u64,
    pub(super) submit: u64,
    /// Whether it has GPUs.
    pub(super) runs: bool,
    /// Time that it ran in all.
    pub(super) ran: u64,
    /// Up to when that is counted.
    counted_to: u64,
}

/// Who comes first. Jobs are known by their number.
pub(super) trait Discipline: Send {
    /// A job came.
    fn came(&mut self, job: usize);

    /// A job is over.
    fn left(&mut self, job: usize);

    /// Time passed for a job; that it ran is counted already.
    fn pass(&mut self, job: usize, entry: &Entry, passed: u64);

    /// Lists all jobs in the order in which GPUs are dealt out.
    fn list(&mut self, jobs: &[Entry], list: &mut Vec<usize>);

    /// GPUs have been dealt out.
    fn dealt(&mut self, jobs: &[Entry]);

    /// The second at which something changes next by time alone.
    fn next_change(&self, jobs: &[Entry], waiting_or_running: &[usize], now: u64) -> Option<u64>;
}

/// A policy that deals GPUs out anew.
pub(super) struct Scan {
    gpus: u32,
    discipline: Box<dyn Discipline>,
    /// Every job so far, by number.
    jobs: Vec<Entry>,
    /// Those that are not over, in order of arrival.
    alive: Vec<usize>,
    next_change: Option<u64>,
    to_stop: Vec<usize>,
    to_start: Vec<usize>,
    /// Memory for the list; what is in it means nothing.
    list: Vec<usize>,
}

impl Scan {
    pub(super) fn new(gpus: u32, discipline: Box<dyn Discipline>) -> Scan {
        Scan {
            gpus,
            discipline,
            jobs: Vec::new(),
            alive: Vec::new(),
            next_change: None,
            to_stop: Vec::new(),
            to_start: Vec::new(),
            list: Vec::new(),
        }
    }

    /// Takes in who ended and who came; tells whether somebody did.
    fn take_in(&mut self, view: &View<'_>, now: u64) -> bool {
        let over = |job: &usize| view.job(JobId(*job as u32)).is_none();
        let ended: Vec<usize> = self.alive.iter().copied().filter(over).collect();
        if !ended.is_empty() {
            self.alive.retain(|job| !ended.contains(job));
            ended.iter().for_each(|job| self.discipline.left(*job));
        }
        let before = self.jobs.len();
        for job in view.jobs_from(JobId(before as u32)) {
            let at = self.jobs.len();
            self.jobs.push(entry(job, now));
            self.alive.push(at);
            self.discipline.came(at);
        }
        !ended.is_empty() || self.jobs.len() > before
    }

    /// Looks at all jobs and deals GPUs out anew.
    fn deal(&mut self, now: u64) {
        for job in self.alive.iter().copied() {
            let entry = &mut self.jobs[job];
            let passed = now - std::mem::replace(&mut entry.counted_to, now);
            entry.ran += if entry.runs { passed } else { 0 };
            self.discipline.pass(job, entry, passed);
        }
        self.list.clear();
        self.discipline.list(&self.jobs, &mut self.list);
        let mut free = self.gpus;
        for job in self.list.iter().copied() {
            let entry = &mut self.jobs[job];
            let gets = entry.gpus <= free;
            free -= if gets { entry.gpus } else { 0 };
            match (std::mem::replace(&mut entry.runs, gets), gets) {
                (true, false) => self.to_stop.push(job),
                (false, true) => self.to_start.push(job),
                (true, true) | (false, false) => {}
            }
        }
        self.discipline.dealt(&self.jobs);
        let next = self.discipline.next_change(&self.jobs, &self.alive, now);
        self.next_change = next.map(|at| at.max(now + 1));
    }

    /// Stops and starts whom the last deal said, as far as there is room by now.
    fn carry_out(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        for job in self.to_stop.drain(..) {
            let lease = view.job(JobId(job as u32)).and_then(Job::lease);
            let lease = lease.expect("who is stopped runs");
            plan.stop(lease, StopHow::Checkpoint).expect("every job can be saved");
        }
        self.to_start.retain(|job| {
            let id = JobId(*job as u32);
            let job = view.job(id).expect("who is to start is not over");
            let placed = place_job(&FirstFit, plan, &job.spec);
            let waits = job.phase == Phase::Pending;
            match placed.ok().filter(|_| waits) {
                Some(placement) => plan.start(id, placement).is_err(),
                None => true,
            }
        });
    }
}

impl Policy for Scan {
    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let now = view.now().0 / SECOND;
        let changed = self.take_in(view, now);
        if changed || self.next_change.is_some_and(|at| at <= now) {
            self.deal(now);
        }
        self.carry_out(view, plan);
        if let Some(at) = self.next_change {
            plan.wake_at(Time::from_secs(at));
        }
    }
}

fn entry(job: &Job, now: u64) -> Entry {
    let duration = job.spec.user_estimate.expect("every row has a duration");
    Entry {
        // The counter of GPUs is the memory of the one node.
        gpus: job.spec.gangs[0].demand.mem.0,
        duration: duration.0 / SECOND,
        submit: job.submitted.0 / SECOND,
        runs: false,
        ran: 0,
        counted_to: now,
    }
}
