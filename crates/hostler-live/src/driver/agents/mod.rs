//! The driver of agents: one on each machine, which starts and watches the tasks of jobs.
//!
//! Agents connect, say what they hold, beat, and report. Nothing of that is in the store but the
//! nodes and the longest fence: agents repeat what they know at each connection.

mod admission;
mod copies;
mod gang;
mod health;
mod orders;
mod output;
mod pairs;
mod progress;
mod slurm;
mod speeds;
mod starts;
mod suspend;
mod suspend_times;

use std::collections::BTreeMap;

use hostler_core::ability::Abilities;
use hostler_core::decision::StopHow;
use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::limits::DEVICES_PER_NODE_MAX;
use hostler_core::suspend::SuspendCost;
use hostler_core::units::{Span, Time};

use super::{Driver, NodeStatus, OutputRead, StreamOpen, Word};
use crate::host::{Desk, Effect, FENCE, HostError, Input, SessionId, Settings};
use crate::store::NodeRow;
use crate::wire::{FromAgent, Instance, LeaseReport, Machine, StreamOrder, ToAgent};

use gang::LeaseRun;
use output::Reads;
use starts::FailedStarts;
use suspend::SuspendedRun;
use suspend_times::SuspendTimes;

/// What agents say, and what is known of their connections.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentWord {
    /// An agent connected and said its first words.
    Connected {
        /// The connection.
        session: SessionId,
        /// The token that it showed.
        token: u32,
        /// The protocol that it speaks.
        protocol: u32,
        /// What it runs on.
        machine: Machine,
        /// Every lease that it holds.
        held: Vec<LeaseReport>,
        /// The highest job that it has files of.
        last_job: Option<JobId>,
    },
    /// An agent said something.
    Said {
        /// The connection.
        session: SessionId,
        /// What.
        message: FromAgent,
    },
    /// A connection is gone.
    Lost {
        /// Which.
        session: SessionId,
    },
}

impl From<AgentWord> for Input {
    fn from(word: AgentWord) -> Input {
        Input::Driver(Word::Agent(word))
    }
}

/// Runs jobs by agents.
pub struct AgentDriver {
    settings: Settings,
    agents: Agents,
    lease_runs: BTreeMap<LeaseId, LeaseRun>,
    /// Leases that are over in the state while their tasks wait in main memory.
    suspended: BTreeMap<LeaseId, SuspendedRun>,
    suspend_times: SuspendTimes,
    failed_starts: FailedStarts,
    reads: Reads,
    /// The longest fence by which a node may still go, as it is in the store.
    fence: Span,
    /// Numbers of leases that were left out for agents, in this life of the daemon.
    skipped: u32,
    /// The same of jobs.
    skipped_jobs: u32,
}

/// All nodes, and who is connected.
#[derive(Default)]
struct Agents {
    /// By number; a machine that changed has more than one.
    nodes: BTreeMap<NodeId, NodeLive>,
    sessions: BTreeMap<SessionId, NodeId>,
}

struct NodeLive {
    name: String,
    session: Option<SessionId>,
    /// The latest connection, gone or not; connections count up from one.
    last_session: SessionId,
    last_beat: Time,
    gpu_use: Vec<u8>,
    /// Until when it gets no jobs because it is in no state to start them, and what showed that.
    rests_until: Time,
    rests_for: String,
    /// Why its agent says that it can start none.
    unable: Option<String>,
    /// What the machine has become, while leases still rely on what it was.
    changed: Option<Machine>,
    /// The last other agent that wanted to speak for it, and since when.
    challenger: Option<(Instance, Time)>,
    /// The longest fence by which its shims may go.
    fence: Span,
    /// When that one has run out for all of them, once the agent has taken on a shorter one.
    fence_until: Option<Time>,
}

impl Agents {
    fn put(&mut self, row: &NodeRow, now: Time, fence: Span) {
        let node = NodeLive {
            name: row.name.clone(),
            session: None,
            last_session: SessionId(0),
            last_beat: now,
            gpu_use: Vec::new(),
            rests_until: Time::ZERO,
            rests_for: String::new(),
            unable: None,
            changed: None,
            challenger: None,
            fence,
            fence_until: None,
        };
        self.nodes.entry(NodeId(row.id)).or_insert(node);
    }

    fn session(&self, node: NodeId) -> Option<SessionId> {
        self.nodes.get(&node)?.session
    }

    /// Whether a machine is not what the scheduler still takes it for.
    fn has_changed(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.changed.is_some())
    }

    /// A connection is gone; the node that it spoke for till the end.
    fn lost(&mut self, session: SessionId) -> Option<NodeId> {
        let node = self.sessions.remove(&session)?;
        let live = self.nodes.get_mut(&node).filter(|live| live.session == Some(session))?;
        live.session = None;
        Some(node)
    }
}

impl NodeLive {
    /// Whether its agent was connected to this daemon, and is no more.
    fn is_cut_off(&self) -> bool {
        self.session.is_none() && self.last_session != SessionId(0)
    }
}

impl AgentDriver {
    /// A driver that knows no node yet.
    pub fn new(settings: Settings) -> AgentDriver {
        AgentDriver {
            fence: settings.fence,
            settings,
            agents: Agents::default(),
            lease_runs: BTreeMap::new(),
            suspended: BTreeMap::new(),
            suspend_times: SuspendTimes::new(SuspendCost::default()),
            failed_starts: FailedStarts::default(),
            reads: Reads::default(),
            skipped: 0,
            skipped_jobs: 0,
        }
    }

    /// Enters a fact, and forgets at once what it ended.
    fn fact(&mut self, desk: &mut Desk, event: Event) {
        desk.fact(event);
        self.forget_ended(desk);
    }

    fn forget_ended(&mut self, desk: &mut Desk) {
        desk.take_ended().into_iter().for_each(|lease| self.forget(desk, lease));
    }

    /// A connection is gone: what runs there goes on, but nothing new is sent to nobody.
    fn lost(&mut self, desk: &mut Desk, session: SessionId) {
        if let Some(node) = self.agents.lost(session) {
            self.refresh_health(desk, node);
        }
    }

    fn said(&mut self, desk: &mut Desk, session: SessionId, message: FromAgent) {
        // Words of a connection that was given up are not heard any more.
        let Some(node) = self.agents.sessions.get(&session).copied() else { return };
        match message {
            FromAgent::Hello { .. } => desk.effect(Effect::Close(session)),
            FromAgent::Beat { number, gpu_use, unable } => {
                let Some(live) = self.agents.nodes.get_mut(&node) else { return };
                (live.last_beat, live.gpu_use) = (desk.now(), gpu_use);
                live.unable = unable.map(|fault| health::sentence(&fault));
                live.gpu_use.truncate(DEVICES_PER_NODE_MAX);
                if live.fence > self.settings.fence && live.fence_until.is_none() {
                    // Who beats was welcomed, so the agent goes by our fence from here on. A shim
                    // looks at it when the one that it knows has run out.
                    live.fence_until = Some(desk.now() + live.fence);
                }
                desk.effect(Effect::Tell(session, ToAgent::BeatSeen { number }));
                self.refresh_health(desk, node);
                self.tell_again(desk, node);
            }
            FromAgent::Programs(programs) => self.tried(desk, session, node, programs),
            FromAgent::Report(report) => self.report(desk, node, report),
            FromAgent::SuspendRefused { lease, fault } => {
                self.suspend_refused(desk, node, lease, &health::sentence(&fault));
            }
            FromAgent::Progress { lease, step, total, saved } => {
                self.progress(desk, node, lease, step, total, saved);
            }
            FromAgent::Output { request, offset, text, base64, bytes, last, fault } => {
                let piece = crate::host::OutputPiece { offset, text, base64, bytes, last };
                self.reads.answer(desk, session, request, fault.map_or(Ok(piece), Err));
            }
        }
    }
}

impl Driver for AgentDriver {
    fn abilities(&self) -> Abilities {
        Abilities {
            resize: false,
            power: false,
            repartition: false,
            shares: true,
            grows: true,
            tells_nodes: true,
            // Nodes say by their features which of them do.
            suspend: Some(self.suspend_times.cost()),
            lost_work_max: self.settings.lost_work_max,
        }
    }

    /// Each node gets the full time from now on to say something, by the longest fence that it may
    /// have been told.
    fn restore(&mut self, desk: &mut Desk) {
        let told = match desk.fence() {
            Some(fence) => fence,
            None if desk.is_fresh() => self.settings.fence,
            None => FENCE,
        };
        self.fence = told.max(self.settings.fence);
        for row in desk.node_rows() {
            self.agents.put(row, desk.now(), self.fence);
        }
        let runs = desk.state().leases().map(|lease| (lease.id, LeaseRun::new(lease)));
        self.lease_runs = runs.collect();
        self.suspended = suspend::restored(desk.state());
        if let Some(learnt) = desk.state().abilities().suspend {
            self.suspend_times = SuspendTimes::new(learnt);
        }
        if desk.fence() != Some(self.fence) {
            // Safe before the first agent is welcomed with it.
            desk.set_fence(self.fence);
        }
    }

    fn hear(&mut self, desk: &mut Desk, word: Word) {
        let Word::Agent(word) = word else { return };
        match word {
            AgentWord::Connected { session, token, protocol, machine, held, last_job } => {
                // A greeting that comes twice, or after that of a later connection, tells what was
                // true before the orders that followed it.
                if session > self.last_session(desk, &machine.name) {
                    self.greeted(desk, session, token, protocol, machine, held, last_job);
                }
            }
            AgentWord::Said { session, message } => self.said(desk, session, message),
            AgentWord::Lost { session } => self.lost(desk, session),
        }
    }

    fn start(&mut self, desk: &mut Desk, lease: LeaseId) {
        self.begin_run(desk, lease);
    }

    fn stop(&mut self, desk: &mut Desk, lease: LeaseId, how: StopHow) {
        self.end_run(desk, lease, how);
    }

    fn forget(&mut self, desk: &mut Desk, lease: LeaseId) {
        self.forget_run(desk, lease);
    }

    fn tick(&mut self, desk: &mut Desk) {
        self.look_at_late(desk);
        self.end_forgotten_suspensions(desk);
        self.reads.give_up_old(desk, &self.agents.sessions);
        self.shorten_fence(desk);
    }

    fn drain(&mut self, desk: &mut Desk, node: NodeId) {
        self.refresh_health(desk, node);
    }

    /// The connection of an agent whose token is revoked ends.
    fn revoked(&mut self, desk: &mut Desk, token: u32) {
        let nodes = desk.node_rows().filter(|row| row.token == Some(token));
        let sessions = nodes.filter_map(|row| self.agents.session(NodeId(row.id)));
        let sessions: Vec<SessionId> = sessions.collect();
        for session in sessions {
            self.lost(desk, session);
            desk.effect(Effect::Close(session));
        }
    }

    fn read_output(&mut self, desk: &mut Desk, read: OutputRead) -> Result<(), HostError> {
        let node = desk.node_row(&read.node).map(|row| NodeId(row.id));
        let Some(session) = node.and_then(|node| self.agents.session(node)) else {
            return Err(HostError::Silent { node: read.node });
        };
        self.reads.ask(desk, session, &read)
    }

    fn open_stream(&mut self, desk: &mut Desk, open: StreamOpen) -> Result<u32, HostError> {
        let StreamOpen { number, lease, node, request } = open;
        let row = desk.node_row(&node).cloned();
        let session = row.as_ref().and_then(|row| self.agents.session(NodeId(row.id)));
        let (Some(row), Some(session)) = (row, session) else {
            return Err(HostError::Silent { node });
        };
        let (true, Some(token)) = (row.machine.can(crate::stream::ABILITY), row.token) else {
            return Err(HostError::OldAgent { node });
        };
        let order = Box::new(StreamOrder { number, lease, request });
        desk.effect(Effect::Tell(session, ToAgent::OpenStream(order)));
        Ok(token)
    }

    fn node(&self, desk: &Desk, node: NodeId) -> NodeStatus {
        let Some(live) = self.agents.nodes.get(&node) else {
            let reason = "its agent is not connected".to_owned();
            return NodeStatus { silent: true, reason, ..NodeStatus::default() };
        };
        let silence = desk.now().since(live.last_beat);
        NodeStatus {
            connected: live.session.is_some(),
            silence,
            silent: silence >= self.settings.silent || live.is_cut_off(),
            gpu_use: live.gpu_use.clone(),
            reason: self.why_it_rests(desk, live),
        }
    }

    fn connected(&self) -> usize {
        self.agents.sessions.len()
    }
}
