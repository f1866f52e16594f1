//! A look at the queue: jobs that are new, gone or changed, and whether they may be started.

use std::collections::BTreeSet;

use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId};
use hostler_core::units::Span;

use super::ask::{clean, kept_by, listed, moment};
use super::calls::Deed;
use super::read::{End, SlurmBrief, SlurmJob, Stands};
use super::{Seen, SlurmDriver, SlurmStay};
use crate::host::{Desk, FoundArray, FoundJob, HostError};
use crate::job::{JobRequest, JobState};

/// Separates what commands call a job from a number, where it is found again after its end.
const AGAIN: char = '~';

/// What reasons begin with why a job is over that no person here ended.
const THERE: &str = "in Slurm: ";

/// Slurm's words for jobs that come after others, or after a time.
const AFTER: [&str; 2] = ["Dependency", "BeginTime"];

/// Seconds that clocks may differ by.
const CLOCKS: u64 = 2;

/// What commands call a job that was found under this name.
pub(super) fn name_there(by: &str) -> &str {
    by.split(AGAIN).next().unwrap_or(by)
}

impl SlurmDriver {
    /// What commands call the job of a lease.
    pub(super) fn name_of(&self, desk: &Desk, lease: LeaseId) -> Option<String> {
        let job = desk.state().lease(lease)?.job;
        let by = desk.job_row(job)?.origin.found()?;
        Some(name_there(by).to_owned())
    }

    /// The job here that goes by a name there.
    pub(super) fn job_here(&self, desk: &Desk, name: &str) -> Option<JobId> {
        let again = || desk.found_job_from(&format!("{name}{AGAIN}"));
        desk.found_job(name).or_else(again)
    }

    /// All jobs as they are.
    pub(super) fn take_jobs(&mut self, desk: &mut Desk, mut jobs: Vec<SlurmJob>, turn: u64) {
        self.taken = turn;
        // Numbers here are in order of submission there.
        jobs.sort_by_key(|job| (job.submitted, number(&job.name_there)));
        let listed: BTreeSet<String> = jobs.iter().map(|job| job.name_there.clone()).collect();
        let mut names = Vec::new();
        for job in jobs {
            let name = job.name_there.clone();
            let touched = self.seen.get(&name).map_or(0, |seen| seen.touched);
            if touched <= turn && !self.flies(&name) {
                self.seen.insert(name.clone(), Seen { job, touched });
                names.push(name);
            }
        }
        let fresh = |touched: u64| touched > turn;
        self.seen.retain(|name, seen| listed.contains(name) || fresh(seen.touched));
        self.refused.retain(|name, _| listed.contains(name));
        let arrays: BTreeSet<u32> =
            self.seen.values().filter_map(|seen| Some(seen.job.array?.0)).collect();
        self.arrays.retain(|array, _| arrays.contains(array));
        names.iter().for_each(|name| self.look_at(desk, name));
        // What runs where others were to start may be booked once those were looked at.
        let runs = |name: &&String| self.seen[*name].job.stands == Stands::Runs;
        let running: Vec<&String> = names.iter().filter(runs).collect();
        for name in running {
            let here = self.job_here(desk, name).and_then(|job| desk.state().job(job));
            if here.is_some_and(|job| job.lease().is_none()) {
                self.look_at(desk, name);
            }
        }
        self.look_for_missing(desk, &listed, turn);
        self.comment(desk);
    }

    /// Where all jobs stand. What was never listed, or is listed no more, takes a look at all.
    pub(super) fn take_briefs(&mut self, desk: &mut Desk, briefs: Vec<SlurmBrief>, turn: u64) {
        // What was listed before the last look at all says nothing after it.
        if turn < self.taken {
            return;
        }
        let stays: BTreeSet<String> = self.stays.values().map(|stay| stay.name.clone()).collect();
        for brief in briefs {
            let name = brief.name_there.clone();
            if self.flies(&name) {
                continue;
            }
            let Some(seen) = self.seen.get_mut(&name) else {
                self.look_fully |= !matches!(brief.stands, Stands::Over(_));
                continue;
            };
            if seen.touched > turn {
                continue;
            }
            let job = &mut seen.job;
            // With which code it failed is told by a full look only.
            if brief.stands == Stands::Over(End::Failed) && job.stands != brief.stands {
                self.look_fully = true;
                continue;
            }
            if let Stands::Over(end) = brief.stands {
                job.exit_code = (end == End::Finished).then_some(0);
            }
            let came_back = job.stands != brief.stands && brief.stands == Stands::Waits;
            let changed = job.stands != brief.stands || job.partition != brief.partition;
            let held = job.priority != brief.priority || job.reason != brief.reason;
            // What it was moved with, or comes after, is told by a full look only.
            let let_go = AFTER.contains(&job.reason.as_str()) && job.reason != brief.reason;
            (job.stands, job.partition) = (brief.stands, brief.partition);
            (job.priority, job.reason) = (brief.priority, brief.reason);
            (job.started, job.ended) = (brief.started, brief.ended);
            if matches!(brief.stands, Stands::Runs | Stands::Over(_)) && job.on != brief.on {
                // What it has there is told by a full look only.
                job.gpus_on.clear();
                job.given.clear();
                job.on = brief.on;
            }
            self.look_fully |= came_back || let_go;
            if (changed && !came_back) || held || stays.contains(&name) {
                self.look_at(desk, &name);
            }
        }
    }

    /// Brings what is known here of a job in line with what Slurm says, or Slurm with what was
    /// decided here.
    pub(super) fn look_at(&mut self, desk: &mut Desk, name: &str) {
        let Some(seen) = self.seen.get(name) else { return };
        let (stands, in_room) = (seen.job.stands, self.is_in_room(&seen.job));
        let here = self.job_here(desk, name);
        let lease = here.and_then(|job| desk.state().job(job)?.lease());
        match (stands, lease) {
            (Stands::Waits, None) if in_room => self.waits(desk, name, here),
            (Stands::Waits, Some(lease)) if in_room => self.is_back(desk, name, lease),
            (Stands::Waits, Some(lease)) => self.is_outside(desk, name, lease),
            (Stands::Waits, None) => self.waits_elsewhere(desk, name, here),
            (Stands::Begins | Stands::Runs, Some(lease)) => self.runs(desk, name, lease),
            (Stands::Begins | Stands::Runs, None) => self.runs_unasked(desk, name, here),
            (Stands::Ends, _) => {}
            (Stands::Over(end), _) => {
                if let Some(job) = here {
                    self.over(desk, name, job, lease, end);
                }
            }
        }
    }

    pub(super) fn is_in_room(&self, job: &SlurmJob) -> bool {
        job.partition == self.settings.waiting_room
    }

    /// A job waits where it should.
    fn waits(&mut self, desk: &mut Desk, name: &str, here: Option<JobId>) {
        let job = self.seen[name].job.clone();
        let asked = match &job.required[..] {
            [] => self.ask(&job),
            nodes => Err(format!("it asks for `--nodelist={}`", clean(&nodes.join(",")))),
        };
        let (here, why) = match asked {
            Ok(ask) => {
                let (request, listed) = (self.request(&job, &ask, true), listed(&job));
                let here = here.filter(|job| !self.is_another(desk, *job, &listed, &request));
                let here = here.or_else(|| self.enter_listed(desk, &job, request, listed));
                (here, kept_by(&job, desk.now()))
            }
            // What it is known with still holds once it can be placed again.
            Err(fault) => {
                let plain = JobRequest { name: clean(&job.name), ..JobRequest::default() };
                let here = here.or_else(|| self.enter(desk, &job, plain));
                (here, Some(self.not_placed(name, &fault)))
            }
        };
        let (Some(here), now) = (here, desk.now()) else { return };
        match (why, self.tries.get(&here)) {
            (Some(why), _) => desk.keep_back(here, Some(&why)),
            (None, Some((until, _))) if *until > now => {}
            (None, _) => desk.keep_back(here, None),
        }
    }

    /// Whether a job was changed there since it was found; then it is another one from now on.
    ///
    /// What is asked of each node may follow from which nodes there are, and what is listed may
    /// have been set by an earlier start. So it is the same job as long as either is the same, and
    /// some node can still hold what it is known with.
    fn is_another(&self, desk: &mut Desk, job: JobId, listed: &str, now: &JobRequest) -> bool {
        let Some(row) = desk.job_row(job) else { return false };
        let was = &row.request;
        let same = (was.gpus, &was.gpu_models, was.cpus, was.mem_mib, was.tasks, was.estimate_secs)
            == (now.gpus, &now.gpu_models, now.cpus, now.mem_mib, now.tasks, now.estimate_secs);
        let is_listed = row.facts.asked_there == listed;
        if is_listed && (same || self.some_node_holds(was)) {
            return false;
        }
        if let Some(facts) = desk.job_facts(job) {
            listed.clone_into(&mut facts.asked_there);
            if !same {
                facts.reason = format!("{THERE}it was changed, and goes on under another number");
            }
            desk.job_changed(job);
        }
        if !same {
            desk.fact(Event::Cancelled { job });
        }
        !same
    }

    fn not_placed(&self, name: &str, fault: &str) -> String {
        let (room, run) = (&self.settings.waiting_room, &self.settings.partition);
        format!(
            "Hostler does not place it: {fault}; `scontrol update jobid={name} partition={run}` \
             as an operator takes it out of `{room}`"
        )
    }

    /// A job enters that will be compared with what Slurm lists later.
    fn enter_listed(
        &mut self,
        desk: &mut Desk,
        job: &SlurmJob,
        request: JobRequest,
        listed: String,
    ) -> Option<JobId> {
        let here = self.enter(desk, job, request)?;
        if let Some(facts) = desk.job_facts(here) {
            facts.asked_there = listed;
        }
        Some(here)
    }

    /// A job enters, unless it is over here: then it is ended there, if a person said so.
    fn enter(&mut self, desk: &mut Desk, job: &SlurmJob, request: JobRequest) -> Option<JobId> {
        let name = &job.name_there;
        let mut by = name.clone();
        let mut before = desk.found_over(&by).ok()?;
        for again in 2.. {
            let Some(row) = before else { break };
            let submitted = job.submitted.saturating_mul(1_000_000);
            let late = row.ended.is_some_and(|ended| submitted > ended + CLOCKS * 1_000_000);
            let by_person = !row.facts.reason.starts_with(THERE);
            if row.state == JobState::Cancelled && !late && by_person {
                self.want(name, Deed::Cancel);
                return None;
            }
            by = format!("{name}{AGAIN}{again}");
            before = desk.found_over(&by).ok()?;
        }
        let array = job.array.and_then(|(array, most)| Some((array, most?)));
        let tenant = clean(&self.settings.tenant(&job.account, &job.user));
        let found = FoundJob {
            by,
            tenant,
            user: clean(&job.user),
            request,
            submitted: Some(moment(job.submitted)),
            array: array
                .map(|(array, most)| FoundArray { first: self.arrays.get(&array).copied(), most }),
        };
        match desk.find_job(found) {
            Ok(Some(id)) => {
                self.refused.remove(&job.name_there);
                if let Some((array, _)) = array {
                    self.arrays.entry(array).or_insert(id);
                }
                Some(id)
            }
            Ok(None) => None,
            Err(fault) => {
                let why = match fault {
                    HostError::Busy => "there are more jobs than it can look at".to_owned(),
                    fault => format!("Hostler cannot take it in: {fault}"),
                };
                self.tell_once(format!("a job that is left out: {why}"));
                self.refused.insert(job.name_there.clone(), why);
                None
            }
        }
    }

    /// A job waits in another partition: Slurm starts it, if an operator took it there. What was
    /// left there half way is brought back.
    fn waits_elsewhere(&mut self, desk: &mut Desk, name: &str, here: Option<JobId>) {
        let (Some(here), job) = (here, &self.seen[name].job) else { return };
        if self.was_left_outside(job) {
            return self.want(name, Deed::MoveBack(None));
        }
        let why = format!("it was taken to partition `{}`, where Slurm starts it", job.partition);
        desk.keep_back(here, Some(&why));
    }

    /// A job runs that was not started here: it holds what it holds.
    pub(super) fn runs_unasked(&mut self, desk: &mut Desk, name: &str, here: Option<JobId>) {
        let job = self.seen[name].job.clone();
        let parts = self.parts(desk, &job);
        if parts.is_empty() {
            return;
        }
        let held = self.held(&job);
        let request = self.request(&job, &held, self.is_in_room(&job));
        let Some(here) = here.or_else(|| self.enter(desk, &job, request)) else { return };
        let began = job.started.map_or(desk.now(), moment);
        let ran = desk.now().since(began);
        match desk.adopt(here, &parts, ran) {
            Ok(lease) => {
                let stay = SlurmStay { name: name.to_owned(), ..SlurmStay::default() };
                self.stays.insert(lease, stay);
            }
            // Whoever was to have its place will not be started there; then it is free. Until then
            // nobody may think that it waits.
            Err(fault) => {
                tracing::debug!(job = name, %fault, "not yet booked");
                desk.keep_back(here, Some("it runs in Slurm where others were to start"));
            }
        }
    }

    /// Jobs that Slurm lists no more.
    fn look_for_missing(&mut self, desk: &mut Desk, listed: &BTreeSet<String>, turn: u64) {
        let missing: Vec<(String, JobId)> = desk
            .found_jobs()
            .map(|(by, job)| (name_there(by).to_owned(), job))
            .filter(|(name, _)| !listed.contains(name) && !self.flies(name))
            .filter(|(name, _)| self.seen.get(name).is_none_or(|seen| seen.touched <= turn))
            .collect();
        let mut forgotten = Vec::new();
        for (name, job) in missing {
            match desk.state().job(job).and_then(|job| job.lease()) {
                Some(_) => forgotten.push(name),
                None => self.gone_there(desk, job, "its queue does not have it any more"),
            }
        }
        self.remember(desk, forgotten);
    }

    /// A job that waited here is over there. Should it come back, nobody here wants it to end.
    pub(super) fn gone_there(&mut self, desk: &mut Desk, job: JobId, why: &str) {
        if let Some(facts) = desk.job_facts(job) {
            facts.reason = format!("{THERE}{why}");
        }
        desk.fact(Event::Cancelled { job });
    }

    /// Lets jobs go that Slurm would not start, once enough time has passed.
    pub(super) fn try_again(&mut self, desk: &mut Desk) {
        let now = desk.now();
        let due = self.tries.iter().filter(|(_, (until, _))| *until <= now);
        let due: Vec<JobId> = due.map(|(job, _)| *job).collect();
        for job in due {
            // Something else may keep it by now.
            let by = desk.job_row(job).and_then(|row| row.origin.found());
            if let Some(name) = by.map(|by| name_there(by).to_owned()) {
                self.look_at(desk, &name);
            }
            // How often it was tried is of interest while it waits.
            let waits = desk.state().job(job).is_some_and(|job| job.lease().is_none());
            let long_ago = |until: hostler_core::units::Time| now.since(until) > LONG;
            if !waits || self.tries.get(&job).is_some_and(|(until, _)| long_ago(*until)) {
                self.tries.remove(&job);
            }
        }
    }
}

/// Time after which it counts as a new trouble.
const LONG: Span = Span::from_secs(1800);

/// What orders names as numbers.
fn number(name: &str) -> (u64, u64) {
    let (id, task) = name.split_once('_').unwrap_or((name, "0"));
    (id.parse().unwrap_or(u64::MAX), task.parse().unwrap_or(u64::MAX))
}
