//! Nodes and the agents that speak for them: connections, beats, and when a node is given up.

use std::collections::BTreeMap;

use hostler_core::border::{self};
use hostler_core::cluster::{GpuModel, Health, NodeSpec};
use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId, ModelId, NodeId};
use hostler_core::limits::{JOB_NUMBER_GAP_MAX, LEASE_NUMBER_GAP_MAX};
use hostler_core::units::{Mib, Milli, Span, Time};

use super::request::check_name;
use super::{Answer, Change, Changed, Effect, Host, HostError, OutputPiece, SessionId};
use crate::store::{NodeRow, Row};
use crate::wire::{FromAgent, LeaseReport, Machine, PROTOCOL, ToAgent};

/// How long a read of output waits for an agent.
const OUTPUT_PATIENCE: Span = Span::from_secs(20);

/// Time between looks at all nodes.
const CLOCK: Span = Span::from_millis(250);

/// All nodes, and who is connected.
#[derive(Default)]
pub(super) struct Agents {
    rows: BTreeMap<String, NodeRow>,
    /// By number; a machine that changed has more than one.
    nodes: BTreeMap<NodeId, NodeLive>,
    sessions: BTreeMap<SessionId, NodeId>,
    /// Reads of output that wait for an answer: the slot, the connection and since when.
    reads: BTreeMap<u64, (u64, SessionId, Time)>,
    next_read: u64,
    /// The longest fence by which a node may still go, as it is in the store.
    fence: Span,
    /// Numbers of leases that were left out for agents, in this life of the daemon.
    skipped: u32,
    /// The same of jobs.
    skipped_jobs: u32,
}

struct NodeLive {
    name: String,
    session: Option<SessionId>,
    /// The latest connection, gone or not; connections count up from one.
    last_session: SessionId,
    last_beat: Time,
    gpu_use: Vec<u8>,
    /// Until when it gets no jobs because it is in no state to start them.
    rests_until: Time,
    /// What the machine has become, while leases still rely on what it was.
    changed: Option<Machine>,
    /// The longest fence by which its shims may go.
    fence: Span,
    /// When that one has run out for all of them, once the agent has taken on a shorter one.
    fence_until: Option<Time>,
}

impl Agents {
    /// The nodes of the store; each gets the full time from now on to say something, by the
    /// longest fence that it may have been told.
    pub(super) fn restore(rows: Vec<NodeRow>, now: Time, fence: Span) -> Agents {
        let mut agents = Agents { fence, ..Agents::default() };
        for row in rows {
            agents.put(row, now, fence);
        }
        agents
    }

    fn put(&mut self, row: NodeRow, now: Time, fence: Span) {
        let node = NodeLive {
            name: row.name.clone(),
            session: None,
            last_session: SessionId(0),
            last_beat: now,
            gpu_use: Vec::new(),
            rests_until: Time::ZERO,
            changed: None,
            fence,
            fence_until: None,
        };
        self.nodes.entry(NodeId(row.id)).or_insert(node);
        self.rows.insert(row.name.clone(), row);
    }

    pub(super) fn row(&self, name: &str) -> Option<&NodeRow> {
        self.rows.get(name)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &NodeRow> {
        self.rows.values()
    }

    pub(super) fn session(&self, node: NodeId) -> Option<SessionId> {
        self.nodes.get(&node)?.session
    }

    /// Whether a machine is not what the scheduler still takes it for.
    pub(super) fn has_changed(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.changed.is_some())
    }

    pub(super) fn gpu_use(&self, node: NodeId) -> &[u8] {
        self.nodes.get(&node).map_or(&[], |node| &node.gpu_use)
    }

    pub(super) fn last_beat(&self, node: NodeId) -> Option<Time> {
        self.nodes.get(&node).map(|node| node.last_beat)
    }

    pub(super) fn connected(&self) -> usize {
        self.sessions.len()
    }

    /// Address at which other nodes reach a node.
    pub(super) fn address(&self, node: NodeId) -> String {
        let name = self.nodes.get(&node).map(|node| &node.name);
        let row = name.and_then(|name| self.rows.get(name));
        row.map_or_else(String::new, |row| row.machine.address.clone())
    }

    /// The latest connection that spoke for a node.
    fn last_session(&self, name: &str) -> SessionId {
        let node = self.rows.get(name).and_then(|row| self.nodes.get(&NodeId(row.id)));
        node.map_or(SessionId(0), |node| node.last_session)
    }

    /// A connection is gone.
    pub(super) fn lost(&mut self, session: SessionId) {
        if let Some(node) = self.sessions.remove(&session)
            && let Some(live) = self.nodes.get_mut(&node)
            && live.session == Some(session)
        {
            live.session = None;
        }
    }
}

impl Host {
    pub(super) fn agent_connected(
        &mut self,
        session: SessionId,
        token: u32,
        protocol: u32,
        machine: Machine,
        held: Vec<LeaseReport>,
        last_job: Option<JobId>,
    ) {
        // A greeting that comes twice, or after that of a later connection, tells what was true
        // before the orders that followed it.
        if session <= self.agents.last_session(&machine.name) {
            return;
        }
        let admitted = self.admit(token, protocol, &machine);
        let known = admitted.and_then(|()| self.skip_leases(&held));
        match known.and_then(|()| self.skip_jobs(last_job)) {
            Ok(()) => self.welcome(session, token, machine, held),
            Err(fault) => {
                let refused = ToAgent::Refused { fault, retry: false };
                self.draft.effects.push(Effect::Tell(session, refused));
                self.draft.effects.push(Effect::Close(session));
            }
        }
    }

    /// Whether an agent may speak for the node that it names.
    fn admit(&self, token: u32, protocol: u32, machine: &Machine) -> Result<(), String> {
        if protocol != PROTOCOL {
            return Err(format!("it speaks protocol {protocol}, this daemon {PROTOCOL}; upgrade"));
        }
        // A store of before may hold several for one name: the one that spoke first goes on.
        let spoke = self.agents.row(&machine.name).and_then(|row| self.tokens.get(row.token));
        let spoke = spoke.filter(|row| row.revoked.is_none());
        let speaks = spoke.or_else(|| self.tokens.of_node(&machine.name));
        if speaks.is_none_or(|row| row.id != token) {
            return Err(format!("its token does not speak for node `{}`; enrol it", machine.name));
        }
        check_name("node", &machine.name).map_err(|fault| fault.to_string())?;
        check_words(machine)?;
        let state = self.engine.state();
        let known = state.models().iter().any(|model| *model.name == *machine.gpu_model);
        if machine.gpus > 0 && !known {
            let next = ModelId(state.models().len() as u32);
            let event = Event::ModelAdded { model: next, spec: model_of(machine) };
            border::check(state, &event).map_err(|fault| fault.to_string())?;
        }
        let sane = (machine.gpus == 0) == machine.gpu_model.is_empty() && machine.gpus <= 64;
        if sane { Ok(()) } else { Err("its GPUs and their model do not go together".to_owned()) }
    }

    /// Leaves out numbers of leases that the agent knows and the store does not: after a backup was
    /// restored they were given out before, and the agent would take a new lease for the old one.
    fn skip_leases(&mut self, held: &[LeaseReport]) -> Result<(), String> {
        let last = held.iter().map(|report| report.lease).max();
        let known = self.engine.state().next_lease();
        let Some(last) = last.filter(|last| *last >= known) else { return Ok(()) };
        let event = Event::LeasesSkipped { next: LeaseId(last.0.saturating_add(1)) };
        let left = LEASE_NUMBER_GAP_MAX.saturating_sub(self.agents.skipped);
        let skipped = last.0 - known.0;
        if skipped >= left || border::check(self.engine.state(), &event).is_err() {
            return Err(format!(
                "it knows {last:?}, the store none from {known:?} on; restore a newer backup, or \
                 empty the agent's data folder"
            ));
        }
        self.agents.skipped += skipped + 1;
        self.fact(event);
        Ok(())
    }

    /// Leaves out numbers of jobs that the agent has files of and the store does not know, for the
    /// same reason: a new job would find the folder and the checkpoints of the old one.
    fn skip_jobs(&mut self, last: Option<JobId>) -> Result<(), String> {
        let known = self.next_job;
        let Some(last) = last.filter(|last| last.0 >= known) else { return Ok(()) };
        let left = JOB_NUMBER_GAP_MAX.saturating_sub(self.agents.skipped_jobs);
        let skipped = last.0 - known;
        let event = Event::JobsSkipped { next: JobId(last.0.saturating_add(1)) };
        // The state of an empty store counts from 0, while no job has that number: what one more
        // would let in here could not be read back from the log.
        if skipped >= left || border::check(self.engine.state(), &event).is_err() {
            return Err(format!(
                "it has files of job {}, the store knows none from {known} on; restore a newer \
                 backup, or move `jobs` and `checkpoints` of the agent's data folder away",
                last.0
            ));
        }
        self.agents.skipped_jobs += skipped + 1;
        self.next_job = last.0.saturating_add(1);
        self.fact(event);
        Ok(())
    }

    fn welcome(
        &mut self,
        session: SessionId,
        token: u32,
        machine: Machine,
        held: Vec<LeaseReport>,
    ) {
        let node = self.join(token, machine);
        if let Some(old) = self.agents.session(node).filter(|old| *old != session) {
            self.agents.lost(old);
            self.draft.effects.push(Effect::Close(old));
        }
        self.agents.sessions.insert(session, node);
        let live = self.agents.nodes.get_mut(&node).expect("it joined just now");
        (live.session, live.last_beat) = (Some(session), self.now);
        live.last_session = session;
        self.tell_welcome(session, node);
        self.refresh_health(node);
        let reported: Vec<LeaseId> = held.iter().map(|report| report.lease).collect();
        held.into_iter().for_each(|report| self.report(node, report));
        let leases = self.engine.state().node(node).leases.clone();
        for lease in leases {
            if reported.contains(&lease) {
                let run = self.lease_runs.get(&lease).filter(|run| !run.parts[&node].is_over());
                if let Some(how) = run.and_then(|run| run.stop) {
                    self.tell_stop(lease, node, how);
                }
            } else {
                self.not_held(node, lease);
            }
        }
    }

    fn tell_welcome(&mut self, session: SessionId, node: NodeId) {
        let beat_ms = self.settings.beat.0 / 1000;
        let fence_ms = self.settings.fence.0 / 1000;
        let welcome = ToAgent::Welcome { node, beat_ms, fence_ms };
        self.draft.effects.push(Effect::Tell(session, welcome));
    }

    /// The number of a machine's node; new machines get one.
    fn join(&mut self, token: u32, machine: Machine) -> NodeId {
        let spec = self.node_spec(&machine);
        let known = self.agents.rows.get(&machine.name).map(|row| NodeId(row.id));
        if let Some(id) = known {
            let node = self.engine.state().node(id);
            let (same, busy) = (node.spec == spec, !node.leases.is_empty());
            if same || busy {
                let row = self.agents.rows.get_mut(&machine.name).expect("looked up above");
                if row.token != token || row.machine.address != machine.address {
                    row.token = token;
                    row.machine.address.clone_from(&machine.address);
                    let row = row.clone();
                    self.draft.rows.push(Row::Node(row));
                }
                let live = self.agents.nodes.get_mut(&id).expect("known nodes are listed");
                live.changed = (!same).then_some(machine);
                return id;
            }
            self.fact(Event::NodeDown { node: id });
            self.fact(Event::NodeRetired { node: id });
            self.leave_behind(id);
        }
        let id = NodeId(self.engine.state().nodes().len() as u32);
        let draining = self.agents.row(&machine.name).is_some_and(|row| row.draining);
        let row = NodeRow { name: machine.name.clone(), id: id.0, token, draining, machine };
        self.agents.put(row.clone(), self.now, self.settings.fence);
        self.draft.rows.push(Row::Node(row));
        self.fact(Event::NodeUp { node: id, spec });
        self.release_unplaceable();
        id
    }

    /// A machine goes by another number from now on: nobody speaks for the old one any more.
    fn leave_behind(&mut self, id: NodeId) {
        if let Some(session) = self.agents.nodes.remove(&id).and_then(|live| live.session) {
            self.agents.sessions.remove(&session);
            self.draft.effects.push(Effect::Close(session));
        }
    }

    fn node_spec(&mut self, machine: &Machine) -> NodeSpec {
        let models = self.engine.state().models();
        let known = models.iter().position(|model| *model.name == *machine.gpu_model);
        let model = ModelId(known.unwrap_or(models.len()) as u32);
        if known.is_none() && machine.gpus > 0 {
            self.fact(Event::ModelAdded { model, spec: model_of(machine) });
        }
        NodeSpec {
            name: machine.name.as_str().into(),
            cpu: Milli(machine.cpu_milli),
            mem: Mib(machine.mem_mib),
            gpu_model: (machine.gpus > 0).then_some(model),
            gpus: machine.gpus,
            island_gpus: 0,
            rack: machine.rack,
            base_watts: 0,
        }
    }

    /// Brings what the scheduler thinks of a node in line with what it should.
    fn refresh_health(&mut self, id: NodeId) {
        let Some(live) = self.agents.nodes.get(&id) else { return };
        let Some(row) = self.agents.rows.get(&live.name).filter(|row| row.id == id.0) else {
            return;
        };
        let silence = self.now.since(live.last_beat);
        let unable = self.now < live.rests_until;
        let silent = silence >= self.settings.silent;
        // Which leases it knows is told by its first words.
        let unheard = live.last_session == SessionId(0);
        let rests = row.draining || live.changed.is_some() || silent || unable || unheard;
        let node = self.engine.state().node(id);
        let before = node.health;
        if node.health == Health::Down && live.session.is_some() {
            let spec = node.spec.clone();
            self.fact(Event::NodeUp { node: id, spec });
        }
        match (self.engine.state().node(id).health, rests) {
            (Health::Up, true) => self.fact(Event::NodeDrain { node: id, draining: true }),
            (Health::Draining, false) => self.fact(Event::NodeDrain { node: id, draining: false }),
            (Health::Up, false) | (Health::Draining, true) | (Health::Down, _) => {}
        }
        if self.engine.state().node(id).health != before {
            self.announce_node(id);
        }
    }

    /// A node is in no state to start jobs, and would take the whole queue; it is tried again when
    /// a silent one would have been left alone for as long.
    pub(super) fn quarantine(&mut self, id: NodeId) {
        if let Some(live) = self.agents.nodes.get_mut(&id) {
            live.rests_until = self.now + self.settings.silent;
            self.refresh_health(id);
        }
    }

    fn announce_node(&mut self, id: NodeId) {
        let (number, at) = (self.next_change(), self.now.secs_f64());
        let node = self.engine.state().node(id).spec.name.to_string();
        let health = self.node_health(id).to_owned();
        let what = Changed::Node { node, health };
        self.draft.effects.push(Effect::Changed(Change { number, at, what }));
    }

    pub(super) fn drain_node(&mut self, name: &str, draining: bool) -> Result<(), HostError> {
        let Some(row) = self.agents.rows.get_mut(name) else {
            return Err(HostError::Unknown { what: "node", name: name.to_owned() });
        };
        row.draining = draining;
        let row = row.clone();
        let id = NodeId(row.id);
        self.draft.rows.push(Row::Node(row));
        self.refresh_health(id);
        Ok(())
    }

    pub(super) fn agent_said(&mut self, session: SessionId, message: FromAgent) {
        // Words of a connection that was given up are not heard any more.
        let Some(node) = self.agents.sessions.get(&session).copied() else { return };
        match message {
            FromAgent::Hello { .. } => self.draft.effects.push(Effect::Close(session)),
            FromAgent::Beat { number, gpu_use } => {
                let Some(live) = self.agents.nodes.get_mut(&node) else { return };
                (live.last_beat, live.gpu_use) = (self.now, gpu_use);
                live.gpu_use.truncate(64);
                if live.fence > self.settings.fence && live.fence_until.is_none() {
                    // Who beats was welcomed, so the agent goes by our fence from here on. A shim
                    // looks at it when the one that it knows has run out.
                    live.fence_until = Some(self.now + live.fence);
                }
                self.draft.effects.push(Effect::Tell(session, ToAgent::BeatSeen { number }));
                self.refresh_health(node);
                self.tell_again(node);
            }
            FromAgent::Report(report) => self.report(node, report),
            FromAgent::Progress { lease, step, total, saved } => {
                self.progress(node, lease, step, total, saved);
            }
            FromAgent::Output { request, offset, text, bytes, last, fault } => {
                // Numbers of requests can be guessed: only the agent that was asked answers.
                let asked = self.agents.reads.get(&request).copied();
                let Some((slot, ..)) = asked.filter(|(_, asked, _)| *asked == session) else {
                    return;
                };
                self.agents.reads.remove(&request);
                let answer = match fault {
                    Some(fault) => Err(HostError::NoOutput { fault }),
                    None => Ok(Answer::Output(OutputPiece { offset, text, bytes, last })),
                };
                self.draft.effects.push(Effect::Reply(slot, answer));
            }
        }
    }

    /// Notes a read of output and gives it a number.
    pub(super) fn expect_output(
        &mut self,
        slot: u64,
        session: SessionId,
    ) -> Result<u64, HostError> {
        if self.agents.reads.len() >= crate::limits::OUTPUT_WAITING_MAX {
            return Err(HostError::Busy);
        }
        self.agents.next_read += 1;
        let number = self.agents.next_read;
        self.agents.reads.insert(number, (slot, session, self.now));
        Ok(number)
    }

    /// Gives nodes up that said nothing for too long, and lets silent ones rest.
    pub(super) fn look_at_the_clock(&mut self) {
        if self.now < self.clock_next {
            return;
        }
        self.clock_next = self.now + CLOCK;
        let silent = self.settings.silent.min(self.settings.dead);
        let late = self.agents.nodes.iter().filter(|(_, node)| {
            let unheard = node.last_session == SessionId(0);
            self.now.since(node.last_beat) >= silent || node.changed.is_some() || unheard
        });
        let late: Vec<NodeId> = late.map(|(id, _)| *id).collect();
        for id in late {
            self.look_at(id);
        }
        self.answer_old_reads();
        self.shorten_fence();
        self.resume_paused();
        self.draft.rows.extend(self.keys.tidy(self.now));
    }

    /// Forgets a longer fence of the past when nothing on any node can go by it any more.
    fn shorten_fence(&mut self) {
        let ours = self.settings.fence;
        if self.agents.fence <= ours {
            return;
        }
        let state = self.engine.state();
        for (id, live) in &mut self.agents.nodes {
            let down = state.node(*id).health == Health::Down;
            if down || live.fence_until.is_some_and(|until| until <= self.now) {
                live.fence = ours;
            }
        }
        if self.agents.nodes.values().all(|live| live.fence <= ours) {
            self.agents.fence = ours;
            self.draft.rows.push(Row::Fence(ours.0));
        }
    }

    fn look_at(&mut self, id: NodeId) {
        let live = &self.agents.nodes[&id];
        let current = self.agents.rows.get(&live.name).is_some_and(|row| row.id == id.0);
        if !current {
            // The machine goes by another number now; nothing is expected of this one.
            self.agents.nodes.remove(&id);
            return;
        }
        let node = self.engine.state().node(id);
        let silence = self.now.since(live.last_beat);
        let session = live.session;
        let patience = self.settings.dead + live.fence.saturating_sub(self.settings.fence);
        if silence >= patience && node.health != Health::Down {
            if let Some(session) = session {
                self.agents.lost(session);
                self.draft.effects.push(Effect::Close(session));
            }
            self.figures.nodes_given_up += 1;
            self.fact(Event::NodeDown { node: id });
            self.parts_gone(id);
            return self.announce_node(id);
        }
        if let (Some(machine), Some(session), true) =
            (live.changed.clone(), session, node.leases.is_empty())
        {
            // Nothing relies on the old machine any more: the agent joins anew as what it is.
            let token = self.agents.rows[&machine.name].token;
            self.agents.lost(session);
            return self.welcome(session, token, machine, Vec::new());
        }
        self.refresh_health(id);
    }

    fn answer_old_reads(&mut self) {
        let old = |(_, session, since): &(u64, SessionId, Time)| {
            self.now.since(*since) >= OUTPUT_PATIENCE || !self.agents.sessions.contains_key(session)
        };
        let old = self.agents.reads.iter().filter(|(_, read)| old(read));
        let old: Vec<u64> = old.map(|(number, _)| *number).collect();
        for number in old {
            if let Some((slot, _, _)) = self.agents.reads.remove(&number) {
                let fault = "its agent did not answer in time".to_owned();
                self.draft.effects.push(Effect::Reply(slot, Err(HostError::NoOutput { fault })));
            }
        }
    }
}

/// People see these words on their terminals, and jobs in their environment.
fn check_words(machine: &Machine) -> Result<(), String> {
    if machine.gpus > 0 {
        check_name("gpu_model", &machine.gpu_model).map_err(|fault| fault.to_string())?;
    }
    match machine.address.contains(char::is_control) {
        true => Err(format!("its address makes no sense: {:?}", machine.address)),
        false => Ok(()),
    }
}

fn model_of(machine: &Machine) -> GpuModel {
    GpuModel {
        name: machine.gpu_model.as_str().into(),
        mem: Mib(machine.gpu_mem_mib),
        tier: 0,
        mig_slices: 0,
        idle_watts: 0,
        busy_watts: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_agent_do_nothing_to_a_terminal() {
        let machine = |model: &str, address: &str| Machine {
            name: "n1".to_owned(),
            address: address.to_owned(),
            cpu_milli: 1000,
            mem_mib: 1000,
            gpu_model: model.to_owned(),
            gpu_mem_mib: 1000,
            gpus: u32::from(!model.is_empty()),
            rack: 0,
        };
        assert_eq!(check_words(&machine("NVIDIA H100 80GB HBM3", "10.0.0.1")), Ok(()));
        assert_eq!(check_words(&machine("", "fd00::1")), Ok(()));
        assert!(check_words(&machine("V100\u{1b}[2J", "10.0.0.1")).is_err());
        assert!(check_words(&machine("V100", "10.0.0.1\n")).is_err());
    }
}
