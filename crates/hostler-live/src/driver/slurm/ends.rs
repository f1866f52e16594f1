//! How jobs ended: by the queue while it lists them, by the accounts when it does no more.

use std::collections::BTreeSet;

use hostler_core::event::{Event, Outcome};
use hostler_core::id::{JobId, LeaseId};
use hostler_core::units::Span;

use super::ask::moment;
use super::read::{End, SlurmJob, Stands};
use super::{CallFault, SlurmCall, SlurmDriver};
use crate::driver::Call;
use crate::host::{Desk, Effect};

/// Jobs whose end is asked for at a time.
const ASKED_AT_ONCE: usize = 500;

/// Time after which nobody waits any more for what the accounts say of a job that the queue does
/// not have: its nodes are free.
const PATIENCE: Span = Span::from_secs(600);

/// Time in which the accounts mostly come to know of it: so long they are asked at every look.
const SOON: Span = Span::from_secs(15);

impl SlurmDriver {
    /// A job is over there.
    pub(super) fn over(
        &mut self,
        desk: &mut Desk,
        name: &str,
        job: JobId,
        lease: Option<LeaseId>,
        end: End,
    ) {
        let listed = self.seen[name].job.clone();
        self.concluded(desk, &listed, job, lease, (end, words_of(end)));
    }

    fn concluded(
        &mut self,
        desk: &mut Desk,
        listed: &SlurmJob,
        job: JobId,
        lease: Option<LeaseId>,
        (end, why): (End, &str),
    ) {
        let Some(lease) = lease else {
            return self.gone_there(desk, job, "it ended before it was started here");
        };
        let Some(known) = desk.state().lease(lease) else { return };
        let (stopped, started) = (known.stop.is_some(), known.started.is_some());
        let now = desk.now();
        if end == End::TimedOut && !stopped && self.will_be_stopped(desk, lease) {
            // The limit is known here, too, and ends it as what it is in a moment.
            return;
        }
        // One that was ended before it ran has a time of its start, too, but no nodes.
        let ran = !listed.on.is_empty() || !matches!(end, End::Cancelled | End::TimedOut);
        if !started && !stopped && ran {
            desk.fact(Event::Started { lease });
        }
        let known = desk.state().lease(lease).expect("looked up above");
        let row = desk.state().job(job).expect("a lease belongs to a job");
        let ran = SlurmDriver::ran(listed);
        let believed = known.believed_done(row.spec.checkpoint, now).max(known.base);
        let done = ran.map_or(believed, |ran| known.base + ran);
        let outcome = match end {
            End::Finished => Outcome::Finished,
            End::Failed | End::Lost => Outcome::Failed,
            End::Cancelled => Outcome::Interrupted,
            End::TimedOut if stopped => Outcome::Interrupted,
            End::TimedOut => Outcome::Failed,
        };
        if let Some(facts) = desk.job_facts(job) {
            facts.exit_code = listed.exit_code.filter(|_| end != End::Cancelled);
            why.clone_into(&mut facts.reason);
            desk.job_changed(job);
        }
        if let Some(ended) = listed.ended {
            desk.job_ended_at(job, moment(ended));
        }
        if end == End::Cancelled {
            if let Some(facts) = desk.job_facts(job).filter(|_| !stopped) {
                facts.reason = "in Slurm: it was cancelled".to_owned();
            }
            desk.fact(Event::Cancelled { job });
        }
        let done = if outcome == Outcome::Finished { done } else { Span::ZERO };
        desk.fact(Event::Stopped { lease, outcome, done, lost: Span::ZERO });
    }

    /// Whether the state will soon end a stay for its time limit by itself.
    fn will_be_stopped(&self, desk: &Desk, lease: LeaseId) -> bool {
        let limit = || {
            let known = desk.state().lease(lease)?;
            let limit = desk.state().job(known.job)?.spec.time_limit?;
            Some(known.started? + limit)
        };
        limit().is_some_and(|limit| limit <= desk.now() + Span::from_secs(5))
    }

    /// Asks how jobs ended that the queue has forgotten.
    pub(super) fn remember(&mut self, desk: &mut Desk, mut jobs: Vec<String>) {
        if jobs.is_empty() || self.remembering.is_some() {
            return;
        }
        // Who was asked about before waits for the accounts.
        let waits: BTreeSet<&str> = self
            .stays
            .values()
            .filter(|stay| stay.missed.is_some())
            .map(|stay| stay.name.as_str())
            .collect();
        jobs.sort_by_key(|name| waits.contains(name.as_str()));
        jobs.truncate(ASKED_AT_ONCE);
        let number = self.next_turn();
        self.remembering = Some((number, jobs.iter().cloned().collect()));
        desk.effect(Effect::Call(Call::Slurm(SlurmCall::Remember { number, jobs })));
    }

    /// How they ended. Of those that the accounts do not know nobody can say anything.
    pub(super) fn remembered(&mut self, desk: &mut Desk, ends: Vec<SlurmJob>) {
        for (name, job, lease) in self.asked_and_gone(desk) {
            let known = ends.iter().find(|end| end.name_there == name);
            match known.map(|end| (end, end.stands)) {
                Some((listed, Stands::Over(end))) => {
                    self.concluded(desk, listed, job, Some(lease), (end, words_of(end)));
                }
                // The accounts lag behind the queue, and may not know of it at all yet.
                Some(_) | None if self.may_wait(desk, lease) => {}
                Some(_) | None => self.ended_somehow(desk, job, lease),
            }
        }
    }

    /// There are no accounts, or they did not answer.
    pub(super) fn forgotten(&mut self, desk: &mut Desk, fault: CallFault) {
        let silent = matches!(fault, CallFault::Silent(_));
        let fault = fault.words();
        self.tell_once(format!("the ends of jobs are not known: `sacct` says {fault}"));
        for (_, job, lease) in self.asked_and_gone(desk) {
            if !(silent && self.may_wait(desk, lease)) {
                self.ended_somehow(desk, job, lease);
            }
        }
    }

    /// Whether the accounts may still come to know of a job; they are asked again.
    fn may_wait(&mut self, desk: &Desk, lease: LeaseId) -> bool {
        let now = desk.now();
        let stay = self.stays.entry(lease).or_default();
        let waited = now.since(*stay.missed.get_or_insert(now));
        self.look_fully |= waited < SOON;
        waited < PATIENCE
    }

    /// Those of the jobs that were asked about which are not listed again meanwhile.
    fn asked_and_gone(&mut self, desk: &Desk) -> Vec<(String, JobId, LeaseId)> {
        let (_, asked) = self.remembering.take().unwrap_or_default();
        let mut gone = self.gone(desk);
        gone.retain(|(name, _, _)| asked.contains(name));
        gone
    }

    fn ended_somehow(&mut self, desk: &mut Desk, job: JobId, lease: LeaseId) {
        let end = (End::Finished, "it is over in Slurm, which forgot how it ended");
        self.concluded(desk, &SlurmJob::default(), job, Some(lease), end);
    }

    /// Jobs with a lease that are not listed any more.
    fn gone(&self, desk: &Desk) -> Vec<(String, JobId, LeaseId)> {
        let found = desk.found_jobs().filter_map(|(by, job)| {
            let name = super::look::name_there(by).to_owned();
            let lease = desk.state().job(job)?.lease()?;
            Some((name, job, lease))
        });
        found.filter(|(name, _, _)| !self.seen.contains_key(name) && !self.flies(name)).collect()
    }
}

/// Why a job ended so, where that says more than its end.
fn words_of(end: End) -> &'static str {
    match end {
        End::Lost => "Slurm ended it: its node failed, or others came first",
        End::TimedOut => "it ran into its time limit",
        End::Finished | End::Failed | End::Cancelled => "",
    }
}
