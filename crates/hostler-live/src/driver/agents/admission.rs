//! How an agent comes in: whether it may speak for its node, what it must not be given twice, and
//! the node that its machine becomes.

use hostler_core::border;
use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::limits::{JOB_NUMBER_GAP_MAX, LEASE_NUMBER_GAP_MAX};

use super::AgentDriver;
use super::copies::Refusal;
use crate::host::{Desk, Effect, SessionId, features};
use crate::store::NodeRow;
use crate::wire::{LeaseReport, Machine, PROTOCOL, PROTOCOL_OLDEST, Programs, ToAgent};

impl AgentDriver {
    /// The latest connection that spoke for a node.
    pub(super) fn last_session(&self, desk: &Desk, name: &str) -> SessionId {
        let row = desk.node_row(name);
        let node = row.and_then(|row| self.agents.nodes.get(&NodeId(row.id)));
        node.map_or(SessionId(0), |node| node.last_session)
    }

    #[allow(clippy::too_many_arguments, reason = "they are the greeting, word by word")]
    pub(super) fn greeted(
        &mut self,
        desk: &mut Desk,
        session: SessionId,
        token: u32,
        protocol: u32,
        machine: Machine,
        held: Vec<LeaseReport>,
        last_job: Option<JobId>,
    ) {
        let admitted = admit(desk, token, protocol, &machine).map_err(Refusal::lasting);
        let alone = admitted.and_then(|()| self.check_copy(desk, &machine));
        let known = alone
            .and_then(|()| self.skip_leases(desk, &held).map_err(Refusal::lasting))
            .and_then(|()| self.skip_jobs(desk, last_job).map_err(Refusal::lasting));
        match known {
            Ok(()) => self.welcome(desk, session, token, machine, held),
            Err(Refusal { fault, retry }) => {
                let refused = ToAgent::Refused { fault, retry };
                desk.effect(Effect::Tell(session, refused));
                desk.effect(Effect::Close(session));
            }
        }
    }

    /// Leaves out numbers of leases that the agent knows and the store does not: after a backup was
    /// restored they were given out before, and the agent would take a new lease for the old one.
    fn skip_leases(&mut self, desk: &mut Desk, held: &[LeaseReport]) -> Result<(), String> {
        let last = held.iter().map(|report| report.lease).max();
        let known = desk.state().next_lease();
        let Some(last) = last.filter(|last| *last >= known) else { return Ok(()) };
        let event = Event::LeasesSkipped { next: LeaseId(last.0.saturating_add(1)) };
        let left = LEASE_NUMBER_GAP_MAX.saturating_sub(self.skipped);
        let skipped = last.0 - known.0;
        if skipped >= left || border::check(desk.state(), &event).is_err() {
            return Err(format!(
                "it knows {last:?}, the store none from {known:?} on; restore a newer backup, or \
                 empty the agent's data folder"
            ));
        }
        self.skipped += skipped + 1;
        self.fact(desk, event);
        Ok(())
    }

    /// Leaves out numbers of jobs that the agent has files of and the store does not know, for the
    /// same reason: a new job would find the folder and the checkpoints of the old one.
    fn skip_jobs(&mut self, desk: &mut Desk, last: Option<JobId>) -> Result<(), String> {
        let known = desk.next_job();
        let Some(last) = last.filter(|last| *last >= known) else { return Ok(()) };
        let left = JOB_NUMBER_GAP_MAX.saturating_sub(self.skipped_jobs);
        let skipped = last.0 - known.0;
        let next = JobId(last.0.saturating_add(1));
        // The state of an empty store counts from 0, while no job has that number: what one more
        // would let in here could not be read back from the log.
        let sane = border::check(desk.state(), &Event::JobsSkipped { next });
        if skipped >= left || sane.is_err() {
            return Err(format!(
                "it has files of job {}, the store knows none from {} on; restore a newer \
                 backup, or move `jobs` and `checkpoints` of the agent's data folder away",
                last.0, known.0
            ));
        }
        self.skipped_jobs += skipped + 1;
        desk.skip_jobs(next);
        Ok(())
    }

    pub(super) fn welcome(
        &mut self,
        desk: &mut Desk,
        session: SessionId,
        token: u32,
        machine: Machine,
        held: Vec<LeaseReport>,
    ) {
        let node = self.join(desk, token, machine);
        if let Some(old) = self.agents.session(node).filter(|old| *old != session) {
            self.agents.lost(old);
            desk.effect(Effect::Close(old));
        }
        self.agents.sessions.insert(session, node);
        let live = self.agents.nodes.get_mut(&node).expect("it joined just now");
        (live.session, live.last_beat) = (Some(session), desk.now());
        live.last_session = session;
        self.tell_welcome(desk, session, node);
        self.refresh_health(desk, node);
        let reported: Vec<LeaseId> = held.iter().map(|report| report.lease).collect();
        held.into_iter().for_each(|report| self.report(desk, node, report));
        let leases = desk.state().node(node).leases.clone();
        for lease in leases {
            if reported.contains(&lease) {
                let run = self.lease_runs.get(&lease).filter(|run| !run.parts[&node].is_over());
                if let Some(how) = run.and_then(|run| run.stop) {
                    self.tell_stop(desk, lease, node, how);
                }
            } else {
                self.not_held(desk, node, lease);
            }
        }
    }

    fn tell_welcome(&self, desk: &mut Desk, session: SessionId, node: NodeId) {
        let beat_ms = self.settings.beat.0 / 1000;
        let fence_ms = self.settings.fence.0 / 1000;
        let welcome = ToAgent::Welcome { node, beat_ms, fence_ms };
        desk.effect(Effect::Tell(session, welcome));
    }

    /// The number of a machine's node; new machines get one.
    fn join(&mut self, desk: &mut Desk, token: u32, mut machine: Machine) -> NodeId {
        if let Some(before) = desk.node_row(&machine.name).filter(|_| machine.untried) {
            machine.runtimes.clone_from(&before.machine.runtimes);
            machine.unusable_runtimes.clone_from(&before.machine.unusable_runtimes);
        }
        machine.untried = false;
        let mut spec = desk.node_spec(&machine);
        if let Some(row) = desk.node_row(&machine.name).cloned() {
            let row = with_version(desk, row, &machine.version);
            let id = NodeId(row.id);
            let node = desk.state().node(id);
            let (features, before) = (spec.features, node.spec.features);
            spec.features = before;
            let (same, busy) = (node.spec == spec, !node.leases.is_empty());
            if same || busy {
                let mut now = row.clone();
                now.token = Some(token);
                now.machine.address.clone_from(&machine.address);
                now.machine.instance.clone_from(&machine.instance);
                now.machine.abilities.clone_from(&machine.abilities);
                now.machine.cannot_suspend.clone_from(&machine.cannot_suspend);
                now.machine.runtimes.clone_from(&machine.runtimes);
                now.machine.unusable_runtimes.clone_from(&machine.unusable_runtimes);
                if now != row {
                    desk.put_node(now);
                }
                if features != before {
                    self.fact(desk, Event::FeaturesChanged { node: id, features });
                }
                let live = self.agents.nodes.get_mut(&id).expect("known nodes are listed");
                live.changed = (!same).then_some(machine);
                return id;
            }
            self.fact(desk, Event::NodeDown { node: id });
            self.fact(desk, Event::NodeRetired { node: id });
            self.leave_behind(desk, id);
        }
        let name = machine.name.clone();
        let id = desk.add_node(machine, Some(token));
        let row = desk.node_row(&name).expect("it was added just now");
        self.agents.put(row, desk.now(), self.settings.fence);
        id
    }

    /// An agent has tried out what runs images on its machine.
    pub(super) fn tried(
        &mut self,
        desk: &mut Desk,
        session: SessionId,
        node: NodeId,
        programs: Programs,
    ) {
        let known = desk.state().node(node);
        let (name, before) = (known.spec.name.to_string(), known.spec.features);
        let Some(mut row) = desk.node_row(&name).filter(|row| row.id == node.0).cloned() else {
            return;
        };
        row.machine.tell_programs(programs.clone());
        if desk.check_machine(&row.machine).is_err() {
            return desk.effect(Effect::Close(session));
        }
        let features = features(&row.machine);
        if desk.node_row(&name) != Some(&row) {
            desk.put_node(row);
        }
        if features != before {
            self.fact(desk, Event::FeaturesChanged { node, features });
        }
        let live = self.agents.nodes.get_mut(&node);
        if let Some(changed) = live.and_then(|live| live.changed.as_mut()) {
            changed.tell_programs(programs);
        }
    }

    /// A machine goes by another number from now on: nobody speaks for the old one any more.
    fn leave_behind(&mut self, desk: &mut Desk, id: NodeId) {
        if let Some(session) = self.agents.nodes.remove(&id).and_then(|live| live.session) {
            self.agents.sessions.remove(&session);
            desk.effect(Effect::Close(session));
        }
    }
}

/// The row of a node whose agent may have been upgraded.
fn with_version(desk: &mut Desk, mut row: NodeRow, version: &str) -> NodeRow {
    if row.machine.version != version {
        version.clone_into(&mut row.machine.version);
        desk.put_node(row.clone());
    }
    row
}

/// Whether an agent may speak for the node that it names.
fn admit(desk: &Desk, token: u32, protocol: u32, machine: &Machine) -> Result<(), String> {
    if protocol > PROTOCOL {
        return Err(format!(
            "it speaks protocol {protocol}, this daemon {PROTOCOL}; upgrade the daemon first"
        ));
    }
    if protocol < PROTOCOL_OLDEST {
        return Err(format!(
            "it speaks protocol {protocol}, this daemon {PROTOCOL_OLDEST} to {PROTOCOL}; upgrade \
             the agent"
        ));
    }
    // A store of before may hold several for one name: the one that spoke first goes on.
    let spoke = desk.node_row(&machine.name).and_then(|row| desk.token(row.token?));
    let spoke = spoke.filter(|row| row.revoked.is_none());
    let speaks = spoke.or_else(|| desk.token_of_node(&machine.name));
    if speaks.is_none_or(|row| row.id != token) {
        return Err(format!("its token does not speak for node `{}`; enrol it", machine.name));
    }
    desk.check_machine(machine)
}
