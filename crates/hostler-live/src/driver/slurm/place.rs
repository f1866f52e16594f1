//! Stays of jobs: whether Slurm started what was to be started, and stopped what was to be stopped.

use hostler_core::event::{Event, Outcome};
use hostler_core::id::LeaseId;
use hostler_core::units::{Mib, Milli, Span};

use super::ask::moment;
use super::calls::Deed;
use super::read::{SlurmJob, Stands};
use super::{SlurmDriver, SlurmStay};
use crate::host::{Desk, FoundPart};

/// Time after which Slurm is asked again to end a job.
const ASK_AGAIN: Span = Span::from_secs(10);

/// Times that a job may be found where it was before although it was moved.
const BACK_MAX: u32 = 3;

/// Time after which a job that Slurm would not start is tried again; it doubles each time.
const PAUSE: Span = Span::from_secs(15);

/// The longest of these.
const PAUSE_MAX: Span = Span::from_secs(600);

/// What Slurm calls reasons that go away by themselves in a moment.
const PASSING: [&str; 7] =
    ["None", "Priority", "Resources", "Prolog", "Cleaning", "BeginTime", "JobArrayTaskLimit"];

impl SlurmDriver {
    fn stay(&mut self, name: &str, lease: LeaseId) -> &mut SlurmStay {
        let stay = self.stays.entry(lease).or_default();
        name.clone_into(&mut stay.name);
        stay
    }

    /// A job with a lease waits where nothing starts it: its stop is done, its start was not.
    pub(super) fn is_back(&mut self, desk: &mut Desk, name: &str, lease: LeaseId) {
        let Some(known) = desk.state().lease(lease) else { return };
        let (stops, ran) = (known.stop.is_some(), known.started.is_some());
        if stops || ran {
            return self.interrupted(desk, lease);
        }
        let stay = self.stay(name, lease);
        if let Some(why) = stay.hopeless.clone() {
            return self.give_up(desk, lease, &why);
        }
        // It was moved before, and somebody or something moved it back.
        stay.back += u32::from(stay.moved.take().is_some());
        if stay.back >= BACK_MAX {
            return self.give_up(desk, lease, "Slurm does not keep it where it was moved to");
        }
        self.want(name, Deed::Start(lease));
    }

    /// A job with a lease waits where Slurm can start it.
    pub(super) fn is_outside(&mut self, desk: &mut Desk, name: &str, lease: LeaseId) {
        let Some(known) = desk.state().lease(lease) else { return };
        // One that ran was requeued by Slurm, or by a person.
        if known.stop.is_some() || known.started.is_some() {
            return self.want(name, Deed::MoveBack);
        }
        let (now, patience) = (desk.now(), self.settings.patience());
        let reason = self.seen[name].job.reason.clone();
        let (moved, passing) = {
            let stay = self.stay(name, lease);
            let moved = *stay.moved.get_or_insert(now);
            (moved, PASSING.contains(&reason.as_str()))
        };
        let waited = now.since(moved);
        let enough = if passing { patience } else { Span(patience.0 / 4) };
        let hopeless = self.stay(name, lease).hopeless.is_some();
        if waited >= enough || hopeless {
            let why = format!("Slurm did not start it: {reason}");
            self.stay(name, lease).hopeless.get_or_insert(why);
            self.want(name, Deed::MoveBack);
        }
    }

    /// A job with a lease runs, or is about to.
    pub(super) fn runs(&mut self, desk: &mut Desk, name: &str, lease: LeaseId) {
        let Some(known) = desk.state().lease(lease) else { return };
        let (stops, started) = (known.stop.is_some(), known.started.is_some());
        let job = &self.seen[name].job;
        if job.stands == Stands::Begins {
            return;
        }
        if !self.is_at_its_place(desk, job, lease) {
            // Whoever moved it knows why. It is booked where it is before anybody decides again.
            let here = known.job;
            self.interrupted(desk, lease);
            return self.runs_unasked(desk, name, Some(here));
        }
        if stops {
            let now = desk.now();
            let asked = self.stay(name, lease).stop_asked;
            if asked.is_some_and(|asked| now.since(asked) < ASK_AGAIN) {
                return;
            }
            self.stay(name, lease).stop_asked = Some(now);
            if let Some(deed) = self.deed_to_stop(desk, lease) {
                // It was to be moved back before it ran, and ran.
                let deed = if deed == Deed::MoveBack { Deed::Requeue } else { deed };
                self.want(name, deed);
            }
        } else if !started {
            let known = desk.state().lease(lease).map(|lease| lease.job);
            if let Some(job) = known {
                self.tries.remove(&job);
                if let Some(facts) = desk.job_facts(job) {
                    facts.reason.clear();
                }
                desk.job_touched(job);
            }
            desk.fact(Event::Started { lease });
        }
    }

    fn is_at_its_place(&self, desk: &Desk, job: &SlurmJob, lease: LeaseId) -> bool {
        let Some(known) = desk.state().lease(lease) else { return false };
        let name = |node| &*desk.state().node(node).spec.name;
        let mut booked: Vec<&str> =
            known.placement.parts.iter().map(|part| name(part.node)).collect();
        // Of nodes that are not looked at nothing is booked.
        let mut there: Vec<&str> = job
            .on
            .iter()
            .map(String::as_str)
            .filter(|name| desk.node_row(name).is_some())
            .collect();
        booked.sort_unstable();
        there.sort_unstable();
        booked == there
    }

    /// What a job holds, on nodes that are known.
    pub(super) fn parts(&self, desk: &Desk, job: &SlurmJob) -> Vec<FoundPart> {
        let held = self.held(job);
        let is_told = job.gpus_on.len() == job.on.len();
        let part = |(at, name): (usize, &String)| {
            let row = desk.node_row(name)?;
            let gpus = if is_told { job.gpus_on[at] } else { held.gpus };
            Some(FoundPart {
                node: hostler_core::id::NodeId(row.id),
                gpus: gpus.min(row.machine.gpus),
                cpu: Milli(held.cpus.saturating_mul(1000)),
                mem: Mib(u32::try_from(held.mem_mib).unwrap_or(u32::MAX)),
            })
        };
        job.on.iter().enumerate().filter_map(part).collect()
    }

    /// Nothing of a stay runs any more, and its job waits again.
    fn interrupted(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(known) = desk.state().lease(lease) else { return };
        let job = desk.state().job(known.job).expect("a lease belongs to a job");
        let believed = known.believed_done(job.spec.checkpoint, desk.now());
        let saves = !job.spec.checkpoint.never && known.started.is_some();
        let done = if saves { believed } else { job.ledger.done };
        let lost = believed.saturating_sub(done);
        desk.fact(Event::Stopped { lease, outcome: Outcome::Interrupted, done, lost });
    }

    /// Slurm does not start a job: others may have its place, and it is tried again later.
    fn give_up(&mut self, desk: &mut Desk, lease: LeaseId, why: &str) {
        let Some(job) = desk.state().lease(lease).map(|lease| lease.job) else { return };
        let before = self.tries.get(&job).map_or(0, |(_, times)| *times);
        let pause = Span(PAUSE.0 << before.min(6)).min(PAUSE_MAX);
        self.tries.insert(job, (desk.now() + pause, before + 1));
        self.interrupted(desk, lease);
        desk.keep_back(job, Some(why));
    }

    /// Time that a job ran, as Slurm counts it.
    pub(super) fn ran(job: &SlurmJob) -> Option<Span> {
        let (started, ended) = (job.started?, job.ended?);
        Some(moment(ended).since(moment(started)))
    }
}
