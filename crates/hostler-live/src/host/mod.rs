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
mod estimates;
mod follow;
mod found;
mod input;
mod jobs;
mod keys;
mod many;
mod metrics;
mod needs;
mod nodes;
mod reader;
mod reasons;
mod recover;
mod request;
mod reservations;
mod tenants;
mod thread;
mod tokens;
mod usage;
mod view;

use std::sync::Arc;

use hostler_core::decision::Decision;
use hostler_core::event::Event;
use hostler_core::policy::Policy;
use hostler_core::record::Record;
use hostler_core::solve::SolverQuestion;
use hostler_core::state::{ClusterState, Snapshot};
use hostler_core::units::{Span, Time};
use hostler_core::verify::Violation;

pub use desk::Desk;
pub use estimates::Experience;
pub use found::{FoundArray, FoundJob, FoundPart};
pub use input::{
    Answer, Change, Changed, Command, DEFAULT_TENANT, DEFAULT_TENANT_NUMBER, Effect, HostError,
    Input, OutputPiece, Principal, SessionId,
};
pub use metrics::{Figures, Histogram};
pub use nodes::features;
pub use request::grace_of;
pub use thread::{AgentLink, AgentVoice, Changes, Ear, HostHandle, HostThread};
pub use tokens::{Secret, hash_of, stranger};
pub use view::{JobFilter, NodeView, TenantView, TokenView, of_row};

use crate::driver::Driver;
use crate::limits::{FOLLOW_UPS_MAX, KEYS_PER_TOKEN_MAX};
use crate::notice::NotifyEvent;
use crate::store::Row;

/// Makes a policy from TOML, or says what is wrong with it.
pub type PolicyBuilder = Arc<dyn Fn(&str) -> Result<Box<dyn Policy>, String> + Send + Sync>;

/// How a host behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The policy of a new store, as TOML; later ones come by command and are in the store.
    pub policy: String,
    /// The policy that takes over from one that breaks a rule, as TOML.
    pub fallback: String,
    /// Time between beats of an agent.
    pub beat: Span,
    /// Time without an answered beat after which an agent ends its jobs.
    pub fence: Span,
    /// Time without a beat after which a node is given up; longer than `fence` by what ending
    /// jobs may take.
    pub dead: Span,
    /// Time without a beat after which a node gets no new jobs.
    pub silent: Span,
    /// Work that a job without checkpoints may lose in all by being stopped in favour of others;
    /// none: it is never stopped for that.
    pub lost_work_max: Option<Span>,
    /// Bytes of log after which the state is saved anew.
    pub snapshot_bytes: usize,
    /// Idempotency keys that are remembered of each token.
    pub keys_max: usize,
    /// Whether only jobs of [`DEFAULT_TENANT`] are taken: those that run here could read secrets.
    pub only_default_tenant: bool,
    /// What is told of every job, whether it asked for it or not.
    pub notify_always: Vec<NotifyEvent>,
}

impl Settings {
    /// The usual times and bounds, with a policy for a new store, which is also the one that takes
    /// over from others that break a rule.
    pub fn new(policy: impl Into<String>) -> Settings {
        let policy = policy.into();
        Settings {
            fallback: policy.clone(),
            policy,
            beat: Span::from_secs(5),
            fence: FENCE,
            dead: Span::from_secs(960),
            silent: Span::from_secs(30),
            lost_work_max: None,
            snapshot_bytes: 8 << 20,
            keys_max: KEYS_PER_TOKEN_MAX,
            only_default_tenant: false,
            notify_always: Vec::new(),
        }
    }
}

/// Time without an answered beat after which an agent ends its jobs, where nothing else is said.
pub(crate) const FENCE: Span = Span::from_secs(900);

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

    /// Saves the state, so that the next start is quick, and leaves the store in one piece.
    pub fn close(&mut self) -> Result<(), HostError> {
        match &self.failed {
            Some(fault) => Err(fault.clone()),
            None => {
                self.desk.commit(true)?;
                Ok(self.desk.store.close()?)
            }
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

    /// The same as it can be saved, and gone on from elsewhere.
    pub fn snapshot(&self) -> Snapshot {
        self.desk.engine.snapshot()
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
            Input::Solved { number, answer } => self.desk.solved(number, answer),
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
        self.tell_ended();
        let old_keys = self.desk.keys.tidy(self.desk.now);
        self.desk.draft.rows.extend(old_keys);
    }

    /// Steps until nothing follows from what happened.
    fn settle(&mut self) {
        let is_due = |desk: &Desk| desk.engine.wake().is_some_and(|at| at <= desk.now);
        let mut housekeeping = is_due(&self.desk) && self.desk.now >= self.not_before;
        for follow_up in 1.. {
            self.desk.drain();
            self.tell_ended();
            if !self.desk.engine.has_input() && !housekeeping {
                break;
            }
            housekeeping = false;
            self.step();
            if follow_up % FOLLOW_UPS_MAX == 0 {
                // What one policy does again and again the next may not, and nobody at all cannot.
                self.desk.fall_back(Violation::StandsStill(FOLLOW_UPS_MAX));
            }
        }
        self.desk.ask_solver();
        // Who turned others away is asked again without delay: each time fewer wait.
        if is_due(&self.desk) && !self.desk.engine.is_policy_due() {
            self.not_before = self.desk.now + HOUSEKEEPING;
        }
    }

    /// What a solver is to answer, on a copy of the state; none when nobody waits for it any more.
    pub fn question(&self, number: u64) -> Option<Result<SolverQuestion, Violation>> {
        self.desk.solving.filter(|(asked, _)| *asked == number)?;
        self.desk.engine.question_to_solver().transpose()
    }

    fn step(&mut self) {
        let begun = (self.desk.stopwatch)();
        let decisions = self.desk.decide();
        self.tell_ended();
        for decision in &decisions {
            self.act(decision);
        }
        let took = (self.desk.stopwatch)().saturating_sub(begun);
        self.desk.figures.decisions.add(took);
    }

    fn act(&mut self, decision: &Decision) {
        match decision {
            Decision::Start { lease, .. } => self.driver.start(&mut self.desk, *lease),
            Decision::Stop { lease, how, .. } => self.driver.stop(&mut self.desk, *lease, *how),
            Decision::Reject { .. }
            | Decision::SetAside { .. }
            | Decision::Hold { .. }
            | Decision::BeginRound
            | Decision::WeighPast { .. }
            | Decision::Turns { .. }
            | Decision::Solve { .. }
            | Decision::WakeAt { .. } => {}
            Decision::Resize { .. } | Decision::Repartition { .. } | Decision::SetPower { .. } => {
                unreachable!("the host says that it cannot, and `verify` checks that")
            }
        }
        self.tell_ended();
    }
}

impl Desk {
    /// Takes the step that all facts since the last one ask for.
    fn decide(&mut self) -> Vec<Decision> {
        if !self.engine.has_input() {
            self.engine.begin(self.now);
        }
        let input = self.engine.end_input();
        self.draft.records.push(input);
        self.gather();
        let proposal = self.engine.propose();
        let (asked, violation) = (proposal.asked, proposal.violation);
        let decisions = self.engine.commit(proposal);
        self.gather();
        let at = self.engine.state().now();
        let output = Record::Output { at, asked, decisions: decisions.clone() };
        self.draft.records.push(output);
        if let Some(violation) = violation {
            self.fall_back(violation);
        }
        decisions
    }

    /// A policy broke a rule: it is not listened to any more. The one that the operator named for
    /// this takes over; where that is the culprit itself, nobody decides until a person says who.
    fn fall_back(&mut self, violation: Violation) {
        self.figures.violations += 1;
        let culprit = self.policy.replace('\n', " ");
        tracing::error!(%violation, policy = culprit.trim(), "a policy broke a rule");
        let fault = format!("{violation} (`{}`)", culprit.trim());
        self.leave_policy(fault);
    }

    /// The policy is not listened to any more, for this reason.
    pub(super) fn leave_policy(&mut self, fault: String) {
        let (number, at) = (self.next_change(), self.now.secs_f64());
        self.effect(Effect::Changed(Change { number, at, what: Changed::Policy }));
        let takes_over = self.policy != self.settings.fallback;
        if takes_over {
            self.policy.clone_from(&self.settings.fallback);
            self.draft.rows.push(Row::Policy(self.policy.clone()));
        }
        let fallback = takes_over.then(|| self.policy.as_str().into());
        self.later(Event::PolicyBroke { fault: fault.into(), fallback });
    }

    /// Takes in what a solver answered. What another policy asked for, or an earlier life, is of
    /// no use.
    fn solved(&mut self, number: u64, answer: Result<Event, Violation>) {
        if self.solving.take_if(|(asked, _)| *asked == number).is_none() {
            return;
        }
        let answer = answer.and_then(|answer| self.engine.check_answer(&answer).map(|()| answer));
        match answer {
            Ok(answer) => self.fact(answer),
            Err(violation) => self.fall_back(violation),
        }
    }
}
