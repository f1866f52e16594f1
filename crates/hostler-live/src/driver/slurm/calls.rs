//! What Slurm is asked for: looks when they are due, and changes, a few at a time.

use hostler_core::decision::StopWhy;
use hostler_core::id::LeaseId;
use hostler_core::units::Span;

use super::read::{Memory, SlurmJob, Stands};
use super::{CallFault, Sight, SlurmCall, SlurmDriver};
use crate::driver::Call;
use crate::host::{Desk, Effect};

/// The highest priority that is given to a job. Those above mean something else to Slurm.
const PRIORITY_MAX: u32 = 0xffff_fffd;

/// Priorities that are given, counted down from there. All are above those of Slurm's own, which
/// begin at `0xffff_0000`: so they tell who was moved by Hostler.
const PRIORITIES: u32 = 0xf000;

/// Time between two looks at nodes.
const NODES: Span = Span::from_secs(3);

/// Looks at all jobs are at least so much further apart than one takes.
const FULL_PAUSE: u64 = 5;

/// Something to do about a job, the later ones only where nothing else is to be done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// End it.
    Cancel,
    /// End a stay of it, and let it wait again.
    Requeue(LeaseId),
    /// Let it wait where Slurm does not start it; for the sake of a stay, or because of none.
    MoveBack(Option<LeaseId>),
    /// Start it where its lease says.
    Start(LeaseId),
    /// Tell its user why it waits.
    Comment(String),
}

impl Deed {
    /// The stay that it is about.
    pub(super) fn lease(&self) -> Option<LeaseId> {
        match self {
            Deed::Requeue(lease) | Deed::Start(lease) => Some(*lease),
            Deed::MoveBack(lease) => *lease,
            Deed::Cancel | Deed::Comment(_) => None,
        }
    }
}

/// How a comment is written.
const ADMIN_COMMENT: &str = "AdminComment=";

/// What our comments begin with.
pub const COMMENT: &str = "hostler: ";

/// Whether a job has a priority that Hostler gave it.
pub fn is_moved(job: &SlurmJob) -> bool {
    job.priority > u64::from(PRIORITY_MAX - PRIORITIES)
}

/// Whether Slurm said that somebody may not do this.
fn is_denied(fault: &str) -> bool {
    fault.to_ascii_lowercase().contains("permission denied")
}

/// A change that is being made.
pub(super) struct Flight {
    /// What commands call the job.
    pub(super) name: String,
    pub(super) deed: Deed,
    /// Whether a comment goes with it, which not everybody may write.
    comments: bool,
}

impl SlurmDriver {
    /// Asks for looks whose time has come.
    pub(super) fn read_what_is_due(&mut self, desk: &mut Desk) {
        if self.counts_memory.is_none() {
            return self.look(desk, Sight::Config, Span::from_secs(1));
        }
        self.look(desk, Sight::Nodes, NODES);
        if self.nodes.is_empty() {
            return;
        }
        let every = Span::from_secs(self.settings.look_secs);
        let full = Span::from_secs(self.settings.full_secs);
        let reads_all = self.reads.contains_key(&Sight::Jobs);
        // A look at all costs Slurm more the more jobs it has: it is not kept busy with that.
        let every_full = every.max(Span(self.full_took.0.saturating_mul(FULL_PAUSE)));
        self.look(desk, Sight::Jobs, if self.look_fully { every_full } else { full });
        if !reads_all && !self.reads.contains_key(&Sight::Jobs) {
            self.look(desk, Sight::Briefs, every);
        }
    }

    fn look(&mut self, desk: &mut Desk, what: Sight, every: Span) {
        let last = self.read_at.get(&what);
        let due = last.is_none_or(|last| desk.now().since(*last) >= every);
        if !due || self.reads.contains_key(&what) {
            return;
        }
        let number = self.next_turn();
        self.reads.insert(what, (number, number));
        self.read_at.insert(what, desk.now());
        if what == Sight::Jobs {
            self.look_fully = false;
        }
        desk.effect(Effect::Call(Call::Slurm(SlurmCall::Read { number, what })));
    }

    pub(super) fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Notes what is to be done about a job. What was noted before is over.
    pub(super) fn want(&mut self, name: &str, deed: Deed) {
        let flies = self.flights.values().any(|flight| flight.name == name && flight.deed == deed);
        let urgent = self.wanted.get(name).is_some_and(|before| *before < deed);
        let is_comment = matches!(deed, Deed::Comment(_));
        if !(flies || urgent && is_comment) {
            self.wanted.insert(name.to_owned(), deed);
        }
    }

    /// Whether a change of a job is being made.
    pub(super) fn flies(&self, name: &str) -> bool {
        self.flights.values().any(|flight| flight.name == name)
    }

    /// Has changes made that wait, as far as calls are free: what frees room first.
    pub(super) fn give(&mut self, desk: &mut Desk) {
        let free = self.settings.calls_max.saturating_sub(self.flights.len());
        if free == 0 || self.wanted.is_empty() || self.counts_memory.is_none() {
            return;
        }
        let mut waiting: Vec<(Deed, String)> = self
            .wanted
            .iter()
            .filter(|(name, _)| !self.flies(name))
            .map(|(name, deed)| (deed.clone(), name.clone()))
            .collect();
        waiting.sort_unstable();
        for (deed, name) in waiting {
            if self.flights.len() >= self.settings.calls_max {
                break;
            }
            if self.is_void(desk, &name, &deed) {
                self.wanted.remove(&name);
                continue;
            }
            // Who it is and what it asks for is known once it was listed.
            let Some(steps) = self.steps(desk, &name, &deed) else {
                if matches!(deed, Deed::Comment(_)) {
                    self.wanted.remove(&name);
                }
                continue;
            };
            self.wanted.remove(&name);
            let number = self.next_turn();
            let comments = steps.iter().flatten().any(|word| word.starts_with(ADMIN_COMMENT));
            self.flights.insert(number, Flight { name, deed, comments });
            desk.effect(Effect::Call(Call::Slurm(SlurmCall::Change { number, steps })));
        }
    }

    /// Whether what a deed was for is over: the next stay of a job must not suffer for the last.
    fn is_void(&self, desk: &Desk, name: &str, deed: &Deed) -> bool {
        let known = |lease: LeaseId| desk.state().lease(lease);
        let seen = self.seen.get(name).map(|seen| &seen.job);
        match deed {
            Deed::Cancel | Deed::Comment(_) => false,
            Deed::Requeue(lease) => known(*lease).is_none_or(|lease| lease.stop.is_none()),
            Deed::MoveBack(Some(lease)) | Deed::Start(lease) => known(*lease).is_none(),
            Deed::MoveBack(None) => !seen.is_some_and(|job| self.was_left_outside(job)),
        }
    }

    /// Whether a job waits where Slurm starts it, because it was moved there and not brought back.
    pub(super) fn was_left_outside(&self, job: &SlurmJob) -> bool {
        let outside = job.partition == self.settings.partition;
        job.stands == Stands::Waits && outside && is_moved(job)
    }

    /// The commands of a deed.
    fn steps(&self, desk: &Desk, name: &str, deed: &Deed) -> Option<Vec<Vec<String>>> {
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let job = format!("jobid={name}");
        let room = format!("partition={}", self.settings.waiting_room);
        let back = command(&["scontrol", "update", &job, &room, "ReqNodeList="]);
        match deed {
            Deed::Cancel => Some(vec![command(&["scancel", name])]),
            // Without that word one that came to its end a moment ago would run once more.
            Deed::Requeue(_) => {
                Some(vec![command(&["scontrol", "requeue", "incomplete", name]), back])
            }
            Deed::MoveBack(_) => Some(vec![back]),
            Deed::Comment(text) => {
                let job = format!("jobid={}", self.comment_target(name)?);
                let text = format!("{ADMIN_COMMENT}{text}");
                Some(vec![command(&["scontrol", "update", &job, &text])])
            }
            Deed::Start(lease) => self.start_step(desk, name, *lease).map(|step| vec![step]),
        }
    }

    /// One update that moves a job to where it is started, with nodes and place in the order.
    fn start_step(&self, desk: &Desk, name: &str, lease: LeaseId) -> Option<Vec<String>> {
        let seen = self.seen.get(name).filter(|seen| seen.job.stands == Stands::Waits)?;
        let known = desk.state().lease(lease).filter(|lease| lease.stop.is_none())?;
        let on: Vec<&str> = known
            .placement
            .parts
            .iter()
            .map(|part| &*desk.state().node(part.node).spec.name)
            .collect();
        let on = on.join(",");
        let mut step = vec!["scontrol".to_owned(), "update".to_owned(), format!("jobid={name}")];
        step.push(format!("partition={}", self.settings.partition));
        step.push(format!("ReqNodeList={on}"));
        let nodes = known.placement.parts.len() as u32;
        if seen.job.nodes_max != Some(nodes) || nodes != seen.job.nodes {
            step.push(format!("NumNodes={nodes}-{nodes}"));
        }
        // Slurm is told of memory that is booked although nobody asked for any.
        let mem = desk.job_row(known.job).map_or(0, |row| row.request.mem_mib);
        if seen.job.mem == Memory::Unsaid && mem > 0 {
            step.push(format!("MinMemoryNode={mem}"));
        }
        step.push("StartTime=now".to_owned());
        step.push(format!("Priority={}", PRIORITY_MAX - lease.0 % PRIORITIES));
        if self.comments_on(&seen.job) {
            step.push(format!("{ADMIN_COMMENT}{COMMENT}started on {on}"));
        }
        Some(step)
    }

    /// What ends a stay, if anything is to be done about it.
    pub(super) fn deed_to_stop(&self, desk: &Desk, lease: LeaseId) -> Option<Deed> {
        let known = desk.state().lease(lease)?;
        let cancelled = desk.state().job(known.job).is_some_and(|job| job.cancelled);
        match known.stop?.why {
            _ if cancelled => Some(Deed::Cancel),
            StopWhy::Cancelled => Some(Deed::Cancel),
            // Slurm keeps the limits itself, by its own clock.
            StopWhy::TimeLimit => None,
            StopWhy::Preempted
            | StopWhy::NodeFailed
            | StopWhy::NoAnswer
            | StopWhy::LeaseEnded
            | StopWhy::Evicted => match known.started {
                // What Slurm would refuse to start again, and what is not ours, runs to its end.
                Some(_) => self.requeues(lease),
                None => Some(Deed::MoveBack(Some(lease))),
            },
        }
    }

    /// The end of a stay for others, where Slurm would go along.
    pub(super) fn requeues(&self, lease: LeaseId) -> Option<Deed> {
        let seen = self.stays.get(&lease).and_then(|stay| self.seen.get(&stay.name));
        let may = seen.is_some_and(|seen| seen.job.requeues && self.is_of_ours(&seen.job));
        may.then_some(Deed::Requeue(lease))
    }

    fn is_of_ours(&self, job: &SlurmJob) -> bool {
        [&self.settings.partition, &self.settings.waiting_room].contains(&&job.partition)
    }

    /// A change was made, or not.
    pub(super) fn changed(&mut self, desk: &mut Desk, number: u64, done: Result<(), CallFault>) {
        let Some(Flight { name, deed, comments }) = self.flights.remove(&number) else { return };
        let turn = self.next_turn();
        if let Some(seen) = self.seen.get_mut(&name) {
            seen.touched = turn;
        }
        match (done, deed) {
            (Ok(()), Deed::Start(lease)) => {
                self.has_told(desk, None);
                if let Some(stay) = self.stays.get_mut(&lease) {
                    stay.moved = Some(desk.now());
                }
            }
            (Ok(()), Deed::Comment(text)) => self.was_told(&name, &text),
            (Ok(()), Deed::Cancel | Deed::Requeue(_) | Deed::MoveBack(_)) => {
                self.has_told(desk, None);
            }
            (Err(CallFault::Refused(fault)), deed @ (Deed::Start(_) | Deed::Comment(_)))
                if comments && is_denied(&fault) =>
            {
                // An operator of Slurm's accounts may do all but this.
                self.settings.comments = false;
                self.tell_once(format!("users are not told why their jobs wait: {fault}"));
                if let Deed::Start(_) = deed {
                    self.want(&name, deed);
                }
            }
            (Err(CallFault::Refused(fault)), Deed::Start(lease)) => {
                // It may have been moved all the same: the next look tells.
                self.look_fully = true;
                if let Some(stay) = self.stays.get_mut(&lease) {
                    stay.hopeless = Some(format!("Slurm refuses to start it: {fault}"));
                }
            }
            (Err(CallFault::Refused(fault)), deed) => {
                self.look_fully = true;
                tracing::info!(fault, job = name, ?deed, "slurm refused");
            }
            (Err(CallFault::Silent(fault)), _) => self.unheard(None, fault),
        }
    }
}
