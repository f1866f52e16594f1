//! How nodes are: when one rests, when it is given up, and by which fence its jobs may go.

use hostler_core::cluster::Health;
use hostler_core::event::Event;
use hostler_core::id::NodeId;

use super::{AgentDriver, NodeLive};
use crate::driver::Driver;
use crate::host::{Desk, Effect, SessionId};

/// Characters of a sentence of an agent that are kept.
const SENTENCE_CHARS_MAX: usize = 500;

impl AgentDriver {
    /// Brings what the scheduler thinks of a node in line with what it should.
    pub(super) fn refresh_health(&mut self, desk: &mut Desk, id: NodeId) {
        let Some(live) = self.agents.nodes.get(&id) else { return };
        let Some(row) = desk.node_row(&live.name).filter(|row| row.id == id.0) else {
            return;
        };
        let silence = desk.now().since(live.last_beat);
        let unable = desk.now() < live.rests_until || live.unable.is_some();
        let silent = silence >= self.settings.silent;
        // Which leases it knows is told by its first words, and what it is told by a connection.
        let deaf = live.session.is_none();
        let rests = row.draining || live.changed.is_some() || silent || unable || deaf;
        let node = desk.state().node(id);
        let before = node.health;
        if node.health == Health::Down && live.session.is_some() {
            let spec = node.spec.clone();
            self.fact(desk, Event::NodeUp { node: id, spec });
        }
        let drain = |draining| Event::NodeDrain { node: id, draining };
        match (desk.state().node(id).health, rests) {
            (Health::Up, true) => self.fact(desk, drain(true)),
            (Health::Draining, false) => self.fact(desk, drain(false)),
            (Health::Up, false) | (Health::Draining, true) | (Health::Down, _) => {}
        }
        if desk.state().node(id).health != before {
            self.announce(desk, id);
        }
    }

    /// A node is in no state to start jobs, and would take the whole queue; it is tried again when
    /// a silent one would have been left alone for as long.
    pub(super) fn quarantine(&mut self, desk: &mut Desk, id: NodeId, why: String) {
        if let Some(live) = self.agents.nodes.get_mut(&id) {
            (live.rests_until, live.rests_for) = (desk.now() + self.settings.silent, why);
            self.refresh_health(desk, id);
        }
    }

    /// Why a node gets no jobs, besides what a person wants.
    pub(super) fn why_it_rests(&self, desk: &Desk, live: &NodeLive) -> String {
        let silence = desk.now().since(live.last_beat);
        if live.challenger.is_some() {
            return format!(
                "another agent asks for it and has to wait: the one before had another data folder \
                 and may still run its jobs; it counts as gone after {:.0} s without a word",
                self.settings.dead.secs_f64()
            );
        }
        if silence >= self.settings.silent {
            return format!("its agent was not heard for {:.0} s", silence.secs_f64());
        }
        if live.is_cut_off() {
            return format!(
                "its agent is not connected; it was last heard {:.0} s ago",
                silence.secs_f64()
            );
        }
        if let Some(unable) = &live.unable {
            return unable.clone();
        }
        if desk.now() < live.rests_until {
            return live.rests_for.clone();
        }
        if live.last_session == SessionId(0) {
            return "its agent has not connected since the daemon was started".to_owned();
        }
        match &live.changed {
            Some(_) => "its machine has changed, and jobs still rely on what it was".to_owned(),
            None => String::new(),
        }
    }

    fn announce(&self, desk: &mut Desk, id: NodeId) {
        let silent = self.node(desk, id).silent;
        desk.announce_node(id, silent);
    }

    /// Gives nodes up that said nothing for too long, and lets silent ones rest.
    pub(super) fn look_at_late(&mut self, desk: &mut Desk) {
        let silent = self.settings.silent.min(self.settings.dead);
        let late = self.agents.nodes.iter().filter(|(_, node)| {
            let unheard = node.last_session == SessionId(0);
            desk.now().since(node.last_beat) >= silent || node.changed.is_some() || unheard
        });
        let late: Vec<NodeId> = late.map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.look_at(desk, id));
    }

    fn look_at(&mut self, desk: &mut Desk, id: NodeId) {
        let live = &self.agents.nodes[&id];
        let row = desk.node_row(&live.name).filter(|row| row.id == id.0);
        let Some(token) = row.map(|row| row.token) else {
            // The machine goes by another number now; nothing is expected of this one.
            self.agents.nodes.remove(&id);
            return;
        };
        let node = desk.state().node(id);
        let silence = desk.now().since(live.last_beat);
        let session = live.session;
        let patience = self.settings.dead + live.fence.saturating_sub(self.settings.fence);
        if silence >= patience && node.health != Health::Down {
            if let Some(session) = session {
                self.agents.lost(session);
                desk.effect(Effect::Close(session));
            }
            desk.figures_mut().nodes_given_up += 1;
            self.fact(desk, Event::NodeDown { node: id });
            self.parts_gone(desk, id);
            return self.announce(desk, id);
        }
        if let (Some(machine), Some(session), Some(token), true) =
            (live.changed.clone(), session, token, node.leases.is_empty())
        {
            // Nothing relies on the old machine any more: the agent joins anew as what it is.
            self.agents.lost(session);
            return self.welcome(desk, session, token, machine, Vec::new());
        }
        self.refresh_health(desk, id);
    }

    /// Forgets a longer fence of the past when nothing on any node can go by it any more.
    pub(super) fn shorten_fence(&mut self, desk: &mut Desk) {
        let ours = self.settings.fence;
        if self.fence <= ours {
            return;
        }
        let (state, now) = (desk.state(), desk.now());
        for (id, live) in &mut self.agents.nodes {
            let down = state.node(*id).health == Health::Down;
            if down || live.fence_until.is_some_and(|until| until <= now) {
                live.fence = ours;
            }
        }
        if self.agents.nodes.values().all(|live| live.fence <= ours) {
            self.fence = ours;
            desk.set_fence(ours);
        }
    }
}

/// What an agent says, as people may see it on a terminal.
pub(super) fn sentence(said: &str) -> String {
    said.chars().filter(|letter| !letter.is_control()).take(SENTENCE_CHARS_MAX).collect()
}
