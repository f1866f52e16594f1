//! Stays of jobs: whether Slurm started what was to be started, and stopped what was to be stopped.

use hostler_core::decision::StopWhy;
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
const PASSING: [&str; 8] = [
    "None",
    "Priority",
    "Resources",
    "Prolog",
    "Cleaning",
    "BeginTime",
    "JobArrayTaskLimit",
    // It is still said of a job that was moved a moment ago.
    "PartitionDown",
];

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
            return self.want(name, Deed::MoveBack(Some(lease)));
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
            self.want(name, Deed::MoveBack(Some(lease)));
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
            self.runs_on(desk, name, lease);
        } else if !started {
            let job = known.job;
            self.tries.remove(&job);
            if let Some(facts) = desk.job_facts(job) {
                facts.reason.clear();
            }
            desk.job_touched(job);
            desk.fact(Event::Started { lease });
        }
    }

    /// A job runs that is to give way or to end.
    fn runs_on(&mut self, desk: &mut Desk, name: &str, lease: LeaseId) {
        let deed = match self.deed_to_stop(desk, lease) {
            // It was to be moved back before it ran, and ran.
            Some(Deed::MoveBack(_)) => self.requeues(lease),
            deed => deed,
        };
        let Some(deed) = deed else { return self.is_not_stopped(desk, name, lease) };
        let now = desk.now();
        let asked = self.stay(name, lease).stop_asked;
        if asked.is_none_or(|asked| now.since(asked) >= ASK_AGAIN) {
            self.stay(name, lease).stop_asked = Some(now);
            self.want(name, deed);
        }
    }

    /// A job that was to give way may not be requeued any more. Nobody waits for its place: it is
    /// another job from now on, which gives way to nobody.
    fn is_not_stopped(&mut self, desk: &mut Desk, name: &str, lease: LeaseId) {
        let Some(known) = desk.state().lease(lease) else { return };
        let (job, why) = (known.job, known.stop.map(|stop| stop.why));
        match why {
            Some(StopWhy::Preempted | StopWhy::LeaseEnded | StopWhy::NoAnswer) => {
                self.interrupted(desk, lease);
                self.gone_there(desk, job, "it gives way no more, and goes on as another job");
                self.runs_unasked(desk, name, None);
            }
            Some(StopWhy::Evicted | StopWhy::NodeFailed) => {
                let why = "is to leave its nodes, and Slurm may not requeue it";
                self.tell_once(format!("job {name} {why}: it runs to its end"));
            }
            Some(StopWhy::TimeLimit | StopWhy::Cancelled) | None => {}
        }
    }

    /// Whether a job is where it is booked, with as many GPUs on each node.
    fn is_at_its_place(&self, desk: &Desk, job: &SlurmJob, lease: LeaseId) -> bool {
        let Some(known) = desk.state().lease(lease) else { return false };
        // Slurm may not have told of its GPUs yet: the next full look does.
        let is_told = tells_gpus(job);
        let gpus = |count: usize| if is_told { count } else { 0 };
        let parts = &known.placement.parts;
        let mut booked: Vec<_> =
            parts.iter().map(|part| (part.node, gpus(part.slices.len()))).collect();
        // Of nodes that are not looked at nothing is booked.
        let there = self.parts(desk, job);
        let mut there: Vec<_> =
            there.iter().map(|part| (part.node, gpus(part.gpus as usize))).collect();
        booked.sort_unstable();
        there.sort_unstable();
        booked == there
    }

    /// What a job holds, on nodes that are known.
    pub(super) fn parts(&self, desk: &Desk, job: &SlurmJob) -> Vec<FoundPart> {
        let held = self.held(job);
        let is_told = tells_gpus(job);
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

/// Whether the last full look told how many GPUs a job has on each of its nodes.
fn tells_gpus(job: &SlurmJob) -> bool {
    !job.on.is_empty() && job.gpus_on.len() == job.on.len()
}
