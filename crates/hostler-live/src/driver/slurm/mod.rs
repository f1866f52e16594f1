//! The driver of Slurm: it decides nothing about how jobs run there, and everything about when and
//! where they start.
//!
//! Jobs wait in a partition that is down, so that Slurm starts none of them by itself. To start one
//! it is moved to a partition that is up, with the very nodes that were decided; to stop one in
//! favour of others it is requeued and moved back. What is to be follows at each look from the
//! state and from what Slurm lists: the driver has no memory that matters, each change may be asked
//! for twice, and what Slurm or its operator did meanwhile is found out and accepted.

mod ask;
pub mod caller;
pub mod calls;
mod comments;
mod ends;
pub mod glance;
mod look;
mod nodes;
mod place;
pub mod read;
mod settings;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::ability::Abilities;
use hostler_core::decision::StopHow;
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::units::{Span, Time};

use super::{Driver, NodeStatus, OutputRead, StreamOpen, Word};
use crate::host::{Desk, Effect, HostError};
use crate::store::JobOrigin;
pub use caller::SlurmCaller;
use calls::{Deed, Flight};
use nodes::NodeSeen;
use read::{SlurmBrief, SlurmJob, SlurmNode};
pub use settings::{SlurmSettings, TenantBy};

/// Time without an answer after which nodes count as silent.
const SILENT: Span = Span::from_secs(30);

/// Something to ask Slurm for; the answer carries its number.
#[derive(Clone, Debug, PartialEq)]
pub enum SlurmCall {
    /// To tell something.
    Read {
        /// Its number.
        number: u64,
        /// What.
        what: Sight,
    },
    /// To tell how jobs ended that its queue has forgotten.
    Remember {
        /// Its number.
        number: u64,
        /// The jobs.
        jobs: Vec<String>,
    },
    /// To change something: commands with their arguments, one after the other until one fails.
    Change {
        /// Its number.
        number: u64,
        /// The commands.
        steps: Vec<Vec<String>>,
    },
}

/// What Slurm can be asked to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// Its configuration.
    Config,
    /// Its nodes.
    Nodes,
    /// All about all jobs.
    Jobs,
    /// Where all jobs stand.
    Briefs,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum SlurmWord {
    /// What it told.
    Told {
        /// The number of the call.
        number: u64,
        /// What, or why not.
        told: Result<Told, CallFault>,
    },
    /// Whether something is changed.
    Changed {
        /// The number of the call.
        number: u64,
        /// Or why not.
        done: Result<(), CallFault>,
    },
}

/// What Slurm told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Whether memory of nodes is counted there.
    Config {
        /// It is.
        counts_memory: bool,
    },
    /// Its nodes.
    Nodes(Vec<SlurmNode>),
    /// Its jobs.
    Jobs(Vec<SlurmJob>),
    /// Where they stand.
    Briefs(Vec<SlurmBrief>),
    /// How jobs ended.
    Ends(Vec<SlurmJob>),
}

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// Slurm refused, in its words.
    Refused(String),
    /// It did not answer, or the command could not be run: it may have been done or not.
    Silent(String),
}

impl CallFault {
    /// What is said of it, alone.
    pub fn words(self) -> String {
        match self {
            CallFault::Refused(fault) | CallFault::Silent(fault) => fault,
        }
    }
}

/// Runs jobs by Slurm.
pub struct SlurmDriver {
    settings: SlurmSettings,
    /// Whether Slurm counts memory; nothing is entered before that is known.
    counts_memory: Option<bool>,
    /// Nodes of the partition in which jobs run, as Slurm lists them.
    nodes: BTreeMap<String, SlurmNode>,
    /// What is wrong with nodes, by name.
    nodes_seen: BTreeMap<String, NodeSeen>,
    /// Jobs as they were last listed.
    seen: BTreeMap<String, Seen>,
    /// Stays of jobs that were found, and what is known of them besides the state.
    stays: BTreeMap<LeaseId, SlurmStay>,
    /// Jobs that Slurm would not start: when they are tried again, and how often they were.
    tries: BTreeMap<JobId, (Time, u32)>,
    /// The first job of each array.
    arrays: BTreeMap<u32, JobId>,
    /// Jobs that wait there and could not be taken in, and why.
    refused: BTreeMap<String, String>,
    /// The last job whose user was told something.
    commented: String,
    /// What is to be done about a job as soon as a call is free.
    wanted: BTreeMap<String, Deed>,
    flights: BTreeMap<u64, Flight>,
    reads: BTreeMap<Sight, (u64, u64)>,
    read_at: BTreeMap<Sight, Time>,
    /// Whether something was seen that only a full look explains.
    look_fully: bool,
    /// The call by which the ends of jobs are asked for, and which.
    remembering: Option<(u64, BTreeSet<String>)>,
    /// When the last look at all was asked for, by turn, and how long it took.
    taken: u64,
    full_took: Span,
    /// Counts calls and what came of them: what was listed before a change says nothing after it.
    turn: u64,
    /// When Slurm last told something.
    heard: BTreeMap<Sight, Time>,
    /// What was wrong when it last did not; none: when something was to be changed.
    faults: BTreeMap<Option<Sight>, String>,
    /// Faults that were told already.
    told: BTreeSet<String>,
}

/// A job as it was last listed.
struct Seen {
    job: SlurmJob,
    /// The last change of it that was asked for came to an end then.
    touched: u64,
}

/// What is known of a stay besides the state.
#[derive(Default)]
struct SlurmStay {
    /// What Slurm calls the job.
    name: String,
    /// Since when Slurm has been able to start it.
    moved: Option<Time>,
    /// How often it was found where it was before.
    back: u32,
    /// Why it will not be started.
    hopeless: Option<String>,
    /// When it was last asked to be stopped.
    stop_asked: Option<Time>,
    /// Since when the queue has not had it, and the accounts have not known its end.
    missed: Option<Time>,
}

impl SlurmDriver {
    /// A driver that has not looked yet.
    pub fn new(settings: SlurmSettings) -> SlurmDriver {
        SlurmDriver {
            settings,
            counts_memory: None,
            nodes: BTreeMap::new(),
            nodes_seen: BTreeMap::new(),
            seen: BTreeMap::new(),
            stays: BTreeMap::new(),
            tries: BTreeMap::new(),
            arrays: BTreeMap::new(),
            refused: BTreeMap::new(),
            commented: String::new(),
            wanted: BTreeMap::new(),
            flights: BTreeMap::new(),
            reads: BTreeMap::new(),
            read_at: BTreeMap::new(),
            look_fully: true,
            remembering: None,
            taken: 0,
            full_took: Span::ZERO,
            turn: 0,
            heard: BTreeMap::new(),
            faults: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Tells the operator once of something that goes on.
    fn tell_once(&mut self, fault: String) {
        if self.told.len() < 1000 && self.told.insert(fault.clone()) {
            tracing::warn!(fault, "slurm");
        }
    }

    fn told(&mut self, desk: &mut Desk, number: u64, told: Result<Told, CallFault>) {
        let read = self.reads.iter().find(|(_, (asked, _))| *asked == number);
        let read = read.map(|(what, (_, turn))| (*what, *turn));
        if let Some((what, _)) = read {
            self.reads.remove(&what);
        }
        let what = read.map(|(what, _)| what);
        let told = match told {
            Ok(told) => told,
            Err(fault) if self.remembering.as_ref().is_some_and(|(asked, _)| *asked == number) => {
                return self.forgotten(desk, fault);
            }
            Err(fault) => return self.unheard(what, fault.words()),
        };
        if what == Some(Sight::Jobs) {
            let asked = self.read_at.get(&Sight::Jobs).copied();
            self.full_took = asked.map_or(Span::ZERO, |asked| desk.now().since(asked));
        }
        self.has_told(desk, what);
        match (told, read) {
            (Told::Config { counts_memory }, _) => self.counts_memory = Some(counts_memory),
            (Told::Nodes(nodes), _) => self.take_nodes(desk, nodes),
            (Told::Jobs(jobs), Some((_, turn))) => self.take_jobs(desk, jobs, turn),
            (Told::Briefs(briefs), Some((_, turn))) => self.take_briefs(desk, briefs, turn),
            (Told::Ends(ends), _) => self.remembered(desk, ends),
            (Told::Jobs(_) | Told::Briefs(_), None) => {}
        }
    }

    /// It answered this, or made a change.
    fn has_told(&mut self, desk: &Desk, what: Option<Sight>) {
        if let Some(what) = what {
            self.heard.insert(what, desk.now());
        }
        if let Some(fault) = self.faults.remove(&what) {
            tracing::info!(fault, ?what, "slurm answers again");
        }
    }

    fn unheard(&mut self, what: Option<Sight>, fault: String) {
        self.look_fully = true;
        if self.faults.get(&what) != Some(&fault) {
            tracing::warn!(fault, ?what, "slurm does not answer");
        }
        self.faults.insert(what, fault);
    }

    /// How long it has not told what has to be known of nodes and of jobs.
    fn silence(&self, now: Time) -> Span {
        let last = |what: Sight| self.heard.get(&what).copied().unwrap_or(Time::ZERO);
        let jobs = last(Sight::Jobs).max(last(Sight::Briefs));
        now.since(last(Sight::Nodes).min(jobs))
    }

    fn is_silent(&self, now: Time) -> bool {
        self.silence(now) >= SILENT
    }
}

impl Driver for SlurmDriver {
    fn abilities(&self) -> Abilities {
        Abilities {
            resize: false,
            power: false,
            repartition: false,
            shares: false,
            grows: true,
            tells_nodes: true,
            suspend: None,
            lost_work_max: None,
        }
    }

    /// Nothing is done about anything before Slurm has said what there is.
    fn restore(&mut self, desk: &mut Desk) {
        let found: BTreeMap<JobId, String> =
            desk.found_jobs().map(|(by, job)| (job, look::name_there(by).to_owned())).collect();
        for lease in desk.state().leases() {
            if let Some(name) = found.get(&lease.job) {
                let stay = SlurmStay { name: name.clone(), ..SlurmStay::default() };
                self.stays.insert(lease.id, stay);
            }
        }
        for job in desk.state().jobs() {
            if let (Some(limit), Some(name)) = (job.spec.array, found.get(&job.id))
                && let Some(array) = name.split('_').next().and_then(|array| array.parse().ok())
            {
                self.arrays.insert(array, limit.first);
            }
        }
    }

    fn hear(&mut self, desk: &mut Desk, word: Word) {
        match word {
            Word::Slurm(SlurmWord::Told { number, told }) => self.told(desk, number, told),
            Word::Slurm(SlurmWord::Changed { number, done }) => self.changed(desk, number, done),
            // Agents have no business here.
            Word::Agent(super::AgentWord::Connected { session, .. }) => {
                desk.effect(Effect::Close(session));
            }
            Word::Agent(_) => {}
        }
        self.give(desk);
    }

    fn start(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(name) = self.name_of(desk, lease) else { return };
        self.stays.insert(lease, SlurmStay { name: name.clone(), ..SlurmStay::default() });
        self.want(&name, Deed::Start(lease));
        self.give(desk);
    }

    fn stop(&mut self, desk: &mut Desk, lease: LeaseId, _: StopHow) {
        let Some(name) = self.name_of(desk, lease) else { return };
        let stay = self.stays.entry(lease).or_default();
        stay.name.clone_from(&name);
        stay.stop_asked = Some(desk.now());
        if let Some(deed) = self.deed_to_stop(desk, lease) {
            self.want(&name, deed);
            self.give(desk);
        }
    }

    fn forget(&mut self, _: &mut Desk, lease: LeaseId) {
        if let Some(stay) = self.stays.remove(&lease)
            && self.wanted.get(&stay.name).is_some_and(|deed| deed.lease() == Some(lease))
        {
            self.wanted.remove(&stay.name);
        }
    }

    fn tick(&mut self, desk: &mut Desk) {
        self.read_what_is_due(desk);
        self.try_again(desk);
        self.give(desk);
    }

    fn drain(&mut self, desk: &mut Desk, node: NodeId) {
        let name = desk.state().node(node).spec.name.to_string();
        self.refresh_node(desk, &name);
    }

    fn revoked(&mut self, _: &mut Desk, _: u32) {}

    fn read_output(&mut self, desk: &mut Desk, read: OutputRead) -> Result<(), HostError> {
        let name = self.name_of(desk, read.lease);
        let name = name.unwrap_or_else(|| "ID".to_owned());
        let fault = format!("Slurm writes it to a file; `scontrol show job {name}` names it");
        Err(HostError::NoOutput { fault })
    }

    fn open_stream(&mut self, desk: &mut Desk, open: StreamOpen) -> Result<u32, HostError> {
        let name = self.name_of(desk, open.lease).unwrap_or_else(|| "ID".to_owned());
        let fault = format!("runs under Slurm; `srun --jobid={name} --overlap --pty` leads there");
        let job = desk.state().lease(open.lease).map_or(0, |lease| lease.job.0);
        Err(HostError::WrongState { job, fault })
    }

    fn node(&self, desk: &Desk, node: NodeId) -> NodeStatus {
        let name = &*desk.state().node(node).spec.name;
        let silence = self.silence(desk.now());
        let mut reason = self.why_it_rests(desk, node, name);
        if let Some(fault) = self.faults.values().next().filter(|_| self.is_silent(desk.now())) {
            reason = format!("Slurm does not answer: {fault}");
        }
        NodeStatus {
            connected: !self.is_silent(desk.now()),
            silence,
            silent: self.is_silent(desk.now()),
            gpu_use: Vec::new(),
            reason,
        }
    }

    fn connected(&self) -> usize {
        usize::from(self.faults.is_empty() && !self.heard.is_empty())
    }

    fn runs(&self, origin: &JobOrigin) -> bool {
        origin.found().is_some()
    }

    fn takes_no_jobs(&self) -> Option<String> {
        let room = &self.settings.waiting_room;
        Some(format!("jobs come by Slurm here: `sbatch --partition={room} ..`"))
    }
}
