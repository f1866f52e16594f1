//! What keeps tasks: it starts, ends and suspends them, and dies.

use hostler_core::id::LeaseId;
use hostler_live::agent::core::{AgentInput, Alive};
use hostler_live::wire::Stage;

use super::{Happening, ShimState, World, nothing_left};

impl World {
    pub(super) fn shim_starts(&mut self, node: usize, lease: LeaseId) {
        let at = &mut self.nodes[node];
        let Some(shim) = at.shims.get_mut(&lease) else { return };
        if shim.state != ShimState::Launching {
            return;
        }
        shim.alive = at.alive;
        let fenced = at.alive.is_none_or(|alive| alive.is_over(self.now));
        if self.dice.chance(10) {
            let fault = "no such program".to_owned();
            let of_machine = self.dice.chance(300);
            shim.state = ShimState::Over(Stage::NotStarted { fault, of_machine });
        } else if fenced || shim.stopping {
            shim.state = ShimState::Over(nothing_left());
        } else {
            shim.state = ShimState::Running;
            self.truth.begin(node, &shim.order);
            let stays = self.dice.chance(200);
            let high = if stays { 40_000 } else { 6_000 };
            self.soon(10, high, Happening::ShimEnds(node, lease));
        }
        self.shim_tells(node, lease);
    }

    pub(super) fn shim_ends(&mut self, node: usize, lease: LeaseId, by_itself: bool) {
        let Some(shim) = self.nodes[node].shims.get_mut(&lease) else { return };
        // Who stands still does not come to an end of its own.
        let works = matches!(shim.state, ShimState::Running | ShimState::Leaving);
        if !works && (by_itself || !shim.state.lives()) {
            return;
        }
        let code = by_itself.then_some(shim.code);
        let stage = if by_itself { shim.own_end() } else { shim.forced_end() };
        if std::mem::replace(&mut shim.state, ShimState::Over(stage)).is_on_gpus() {
            self.truth.end(node, &shim.order, code);
        }
        self.say(|| format!("{lease:?} ends on m{node}: {code:?}"));
        self.shim_tells(node, lease);
    }

    /// Tasks that were told to leave their GPUs have done so, or cannot.
    pub(super) fn shim_has_left(&mut self, node: usize, lease: LeaseId) {
        let Some(shim) = self.nodes[node].shims.get_mut(&lease) else { return };
        if shim.state != ShimState::Leaving {
            return;
        }
        if self.dice.chance(100) {
            shim.state = ShimState::Running;
            let fault = "not supported".to_owned();
            self.say(|| format!("{lease:?} cannot be suspended on m{node}"));
            return self.tell_agent(node, vec![AgentInput::SuspendRefused { lease, fault }]);
        }
        shim.state = ShimState::Suspended;
        shim.worked_for = shim.order.lease;
        self.truth.end(node, &shim.order, None);
        let back_for = shim.back_for.take();
        self.say(|| format!("{lease:?} is suspended on m{node}"));
        match back_for {
            Some(now_for) => self.shim_returns(node, lease, now_for),
            None => self.shim_tells(node, lease),
        }
    }

    pub(super) fn shim_returns(&mut self, node: usize, lease: LeaseId, now_for: LeaseId) {
        let Some(shim) = self.nodes[node].shims.get_mut(&lease) else { return };
        match shim.state {
            ShimState::Suspended if !shim.stopping => {
                shim.state = ShimState::Returning;
                shim.order.lease = now_for;
                self.truth.go_on(node, &shim.order);
                self.soon(1, 2_000, Happening::ShimIsBack(node, lease));
            }
            ShimState::Leaving => shim.back_for = Some(now_for),
            ShimState::Running => self.shim_tells(node, lease),
            _ => {}
        }
    }

    pub(super) fn shim_is_back(&mut self, node: usize, lease: LeaseId) {
        let Some(shim) = self.nodes[node].shims.get_mut(&lease) else { return };
        if shim.state != ShimState::Returning {
            return;
        }
        self.say(|| format!("{lease:?} goes on on m{node}"));
        if self.dice.chance(30) {
            return self.shim_ends(node, lease, false);
        }
        let shim = self.nodes[node].shims.get_mut(&lease).expect("looked up above");
        shim.state = ShimState::Running;
        self.shim_tells(node, lease);
        self.soon(10, 6_000, Happening::ShimEnds(node, lease));
    }

    pub(super) fn shim_tells(&mut self, node: usize, lease: LeaseId) {
        let stage = self.nodes[node].shims[&lease].stage();
        self.tell_agent(node, vec![AgentInput::Seen { lease, stage }]);
    }

    /// Shims look at the fence by themselves, whether there is an agent or not.
    pub(super) fn fence(&mut self, node: usize) {
        let (at, now) = (&mut self.nodes[node], self.now);
        let is_over = |alive: Option<Alive>| alive.is_some_and(|alive| alive.is_over(now));
        let mut ended = Vec::new();
        for (lease, shim) in &mut at.shims {
            if shim.state.lives() && is_over(shim.alive) {
                shim.alive = at.alive;
                if is_over(shim.alive) {
                    ended.push(*lease);
                }
            }
        }
        for lease in ended {
            self.say(|| format!("{lease:?} meets the fence on m{node}"));
            self.soon(0, 1_000, Happening::ShimIsForced(node, lease));
        }
    }

    /// Its tasks die with it, and it leaves no record.
    pub(super) fn shim_is_killed(&mut self, node: usize, lease: LeaseId) {
        let Some(shim) = self.nodes[node].shims.get_mut(&lease) else { return };
        match shim.state {
            ShimState::Running | ShimState::Leaving | ShimState::Returning => {
                self.truth.end(node, &shim.order, None);
            }
            ShimState::Launching | ShimState::Suspended => {}
            ShimState::Over(_) | ShimState::Killed => return,
        }
        shim.state = ShimState::Killed;
        self.say(|| format!("the shim of {lease:?} on m{node} is killed"));
        self.shim_tells(node, lease);
    }
}
