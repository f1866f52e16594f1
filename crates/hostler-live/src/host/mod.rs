//! The daemon as a state machine: inputs in, effects out, everything safe in between.
//!
//! [`Host::handle`] turns a batch of inputs into facts, lets the engine step, writes records and
//! rows in one transaction, and only then hands out effects. It has no clock, thread or socket, so
//! a simulation can run it, lose its messages and kill it at any point. What runs jobs is its
//! driver; everything else is on its [`Desk`]. What either keeps besides the engine is in the store
//! or follows from what is heard from outside after a restart.
//!
//! When the store fails the host is over: nothing that was not written was acknowledged, and what
//! is in memory may be ahead of the store, so it must not be used again.

mod clock;
mod commands;
mod desk;
mod follow;
mod found;
mod holds;
mod input;
mod jobs;
mod keys;
mod many;
mod metrics;
mod nodes;
mod reader;
mod recover;
mod request;
mod starts;
mod thread;
mod tokens;
mod view;

use std::sync::Arc;

use hostler_core::decision::{Decision, StopHow, StopWhy};
use hostler_core::policy::Policy;
use hostler_core::reason::Reason;
use hostler_core::record::Record;
use hostler_core::solve::SolverQuestion;
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};

pub use desk::Desk;
pub use found::FoundJob;
pub use input::{
    Answer, Change, Changed, Command, DEFAULT_TENANT, Effect, HostError, Input, OutputPiece,
    Principal, SessionId,
};
pub use metrics::{Figures, Histogram};
pub use request::grace_of;
pub use thread::{AgentLink, AgentVoice, Changes, HostHandle, HostThread};
pub use tokens::{Secret, hash_of};
pub use view::{JobFilter, NodeView, TenantView, TokenView, of_row};

use crate::driver::Driver;
use crate::limits::{FOLLOW_UPS_MAX, KEYS_PER_TOKEN_MAX};

/// Makes a policy from TOML, or says what is wrong with it.
pub type PolicyBuilder = Arc<dyn Fn(&str) -> Result<Box<dyn Policy>, String> + Send + Sync>;

/// How a host behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The policy of a new store, as TOML; later ones come by command and are in the store.
    pub policy: String,
    /// Time between beats of an agent.
    pub beat: Span,
    /// Time without an answered beat after which an agent ends its jobs.
    pub fence: Span,
    /// Time without a beat after which a node is given up; longer than `fence` by what ending
    /// jobs may take.
    pub dead: Span,
    /// Time without a beat after which a node gets no new jobs.
    pub silent: Span,
    /// Bytes of log after which the state is saved anew.
    pub snapshot_bytes: usize,
    /// Idempotency keys that are remembered of each token.
    pub keys_max: usize,
}

impl Settings {
    /// The usual times and bounds, with a policy for a new store.
    pub fn new(policy: impl Into<String>) -> Settings {
        Settings {
            policy: policy.into(),
            beat: Span::from_secs(5),
            fence: FENCE,
            dead: Span::from_secs(960),
            silent: Span::from_secs(30),
            snapshot_bytes: 8 << 20,
            keys_max: KEYS_PER_TOKEN_MAX,
        }
    }
}

/// Time without an answered beat after which an agent ends its jobs, where nothing else is said.
const FENCE: Span = Span::from_secs(900);

/// Time after which housekeeping that did not help is tried again.
const HOUSEKEEPING: Span = Span::from_secs(10);

/// Time between two looks of the driver at the clock.
const CLOCK: Span = Span::from_millis(250);

/// The daemon's state machine.
pub struct Host {
    desk: Desk,
    driver: Box<dyn Driver>,
    clock_next: Time,
    not_before: Time,
    failed: Option<HostError>,
}

impl Host {
    /// Takes in a batch of inputs, in order, and says what to do about them.
    pub fn handle(&mut self, now: Time, inputs: Vec<Input>) -> Result<Vec<Effect>, HostError> {
        if let Some(fault) = &self.failed {
            return Err(HostError::Stopped { fault: fault.to_string() });
        }
        // A wall clock that is set back stands still until it catches up.
        self.desk.now = self.desk.now.max(now);
        for input in inputs {
            self.take(input);
        }
        self.look_at_the_clock();
        self.settle();
        self.desk.write_jobs();
        self.answer_about_jobs();
        let done = self.desk.commit(false).and_then(|()| self.desk.check_store());
        if let Err(fault) = &done {
            self.failed = Some(fault.clone());
        }
        done.map(|()| std::mem::take(&mut self.desk.draft.effects))
    }

    /// Saves the state, so that the next start is quick.
    pub fn close(&mut self) -> Result<(), HostError> {
        match &self.failed {
            Some(fault) => Err(fault.clone()),
            None => self.desk.commit(true),
        }
    }

    /// The time by which the host wants to be called for the scheduler, if nothing happens before.
    /// For silent nodes it wants a tick now and then in any case.
    pub fn wake(&self) -> Option<Time> {
        self.desk.engine.wake().map(|at| at.max(self.not_before))
    }

    /// The scheduler's state.
    pub fn state(&self) -> &ClusterState {
        self.desk.state()
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Command { slot, by, command } => {
                self.desk.figures.commands += 1;
                if let Err(fault) = self.command(slot, &by, *command) {
                    self.desk.effect(Effect::Reply(slot, Err(fault)));
                }
            }
            Input::Driver(word) => self.driver.hear(&mut self.desk, word),
            Input::Solved { number, answer } => {
                // One that another policy asked for, or an earlier life, is of no use.
                if self.desk.solving.take_if(|(asked, _)| *asked == number).is_some() {
                    self.desk.fact(answer);
                }
            }
            Input::Tick => {}
        }
        self.tell_ended();
    }

    /// Tells the driver which leases are over.
    fn tell_ended(&mut self) {
        for lease in self.desk.take_ended() {
            self.driver.forget(&mut self.desk, lease);
        }
    }

    fn look_at_the_clock(&mut self) {
        if self.desk.now < self.clock_next {
            return;
        }
        self.clock_next = self.desk.now + CLOCK;
        self.driver.tick(&mut self.desk);
        self.desk.resume_paused();
        self.tell_ended();
        let old_keys = self.desk.keys.tidy(self.desk.now);
        self.desk.draft.rows.extend(old_keys);
    }

    /// Steps until nothing follows from what happened.
    fn settle(&mut self) {
        let is_due = |desk: &Desk| desk.engine.wake().is_some_and(|at| at <= desk.now);
        let mut housekeeping = is_due(&self.desk) && self.desk.now >= self.not_before;
        for _ in 0..FOLLOW_UPS_MAX {
            self.desk.hold_unplaceable();
            self.desk.open_gates();
            self.desk.drain();
            self.tell_ended();
            if self.desk.draft.facts.is_none() && !housekeeping {
                break;
            }
            housekeeping = false;
            self.step();
        }
        assert!(self.desk.draft.facts.is_none(), "a batch comes to an end");
        self.desk.ask_solver();
        if is_due(&self.desk) {
            self.not_before = self.desk.now + HOUSEKEEPING;
        }
    }

    /// What a solver is to answer, on a copy of the state; none when nobody waits for it any more.
    pub fn question(&self, number: u64) -> Option<SolverQuestion> {
        self.desk.solving.filter(|(asked, _)| *asked == number)?;
        self.desk.engine.question_to_solver()
    }

    fn step(&mut self) {
        let begun = (self.desk.stopwatch)();
        let (at, asked, decisions) = self.desk.decide();
        self.tell_ended();
        for decision in &decisions {
            self.act(decision);
        }
        self.desk.draft.records.push(Record::Output { at, asked, decisions });
        let took = (self.desk.stopwatch)().saturating_sub(begun);
        self.desk.figures.decisions.add(took);
    }

    fn act(&mut self, decision: &Decision) {
        match decision {
            Decision::Start { lease, .. } => self.driver.start(&mut self.desk, *lease),
            Decision::Stop { lease, how, .. } => self.driver.stop(&mut self.desk, *lease, *how),
            Decision::Admit { .. }
            | Decision::Reject { .. }
            | Decision::Hold { .. }
            | Decision::Extend { .. }
            | Decision::Turns { .. }
            | Decision::Solve { .. }
            | Decision::WakeAt { .. } => {}
            Decision::Resize { .. }
            | Decision::SetShare { .. }
            | Decision::Repartition { .. }
            | Decision::SetPower { .. } => unreachable!("`supported` leaves none"),
        }
        self.tell_ended();
    }
}

impl Desk {
    /// Takes the step that all facts since the last one ask for.
    fn decide(&mut self) -> (Time, bool, Vec<Decision>) {
        let events = match self.draft.facts.take() {
            Some(events) => events,
            None => {
                self.engine.begin(self.now);
                Vec::new()
            }
        };
        let at = self.engine.state().now();
        let (asked, decisions) = self.engine.propose();
        let decisions = self.supported(decisions);
        let decisions = self.engine.commit(asked, decisions);
        self.gather();
        self.draft.records.push(Record::Input { at, events });
        (at, asked, decisions)
    }

    /// Makes decisions into ones that agents can carry out.
    ///
    /// A stay cannot move or change its shares while it runs: it is stopped instead and starts
    /// anew, and starts that may rely on the room wait for the next question. What no node can
    /// hold is not turned away, since nodes may still join.
    fn supported(&mut self, decisions: Vec<Decision>) -> Vec<Decision> {
        let moves = |decision: &Decision| {
            matches!(decision, Decision::Resize { .. } | Decision::SetShare { .. })
        };
        let moving = decisions.iter().any(moves);
        let supported = decisions.into_iter().filter_map(|decision| match decision {
            Decision::Resize { lease, .. } | Decision::SetShare { lease, .. } => {
                let (how, why) = (StopHow::Checkpoint, StopWhy::Preempted);
                let stoppable = self.engine.state().lease(lease)?.stop.is_none();
                stoppable.then_some(Decision::Stop { lease, how, why })
            }
            Decision::Start { .. } if moving => None,
            Decision::Reject { job, reason } if is_unplaceable(reason) => {
                self.draft.unplaceable_jobs.push((job.0, reason));
                Some(Decision::Hold { job, reason })
            }
            Decision::Repartition { .. } | Decision::SetPower { .. } => None,
            other => Some(other),
        });
        supported.collect()
    }
}

/// Whether nodes that join later may help.
fn is_unplaceable(reason: Reason) -> bool {
    matches!(reason, Reason::TooLarge { .. } | Reason::NoSuchModel | Reason::NodeTooSmall { .. })
}
