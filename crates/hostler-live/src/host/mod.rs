//! The daemon as a state machine: inputs in, effects out, everything safe in between.
//!
//! [`Host::handle`] turns a batch of inputs into facts, lets the engine step, writes records and
//! rows in one transaction, and only then hands out effects. It has no clock, thread or socket, so
//! a simulation can run it, lose its messages and kill it at any point. What it keeps besides the
//! engine either is in the store or follows from what agents say when they connect again.
//!
//! When the store fails the host is over: nothing that was not written was acknowledged, and what
//! is in memory may be ahead of the store, so it must not be used again.

mod agents;
mod clock;
mod commands;
mod follow;
mod gang;
mod holds;
mod input;
mod jobs;
mod keys;
mod many;
mod metrics;
mod orders;
mod progress;
mod reader;
mod recover;
mod request;
mod speeds;
mod starts;
mod thread;
mod tokens;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hostler_core::decision::{Decision, StopHow, StopWhy};
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::id::LeaseId;
use hostler_core::policy::Policy;
use hostler_core::reason::Reason;
use hostler_core::record::Record;
use hostler_core::solve::SolverQuestion;
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};

pub use input::{
    Answer, Change, Changed, Command, DEFAULT_TENANT, Effect, HostError, Input, OutputPiece,
    Principal, SessionId,
};
pub use metrics::{Figures, Histogram};
pub use thread::{AgentLink, AgentVoice, Changes, HostHandle, HostThread};
pub use tokens::{Secret, hash_of};
pub use view::{JobFilter, NodeView, TenantView, TokenView, of_row};

use agents::Agents;
use follow::Gathered;
use gang::LeaseRun;
use holds::Tenants;
use jobs::LiveJob;
use keys::Keys;
use many::ManyReply;
use starts::FailedStarts;
use tokens::Tokens;

use crate::limits::{FOLLOW_UPS_MAX, KEYS_PER_TOKEN_MAX};
use crate::store::{Batch, Row, Store};

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

/// Time between looks at whether the store is still this daemon's alone. While it is not, beats
/// that are answered keep jobs from the fence that the next daemon relies on; so it is shorter
/// than the least time between a fence and giving a node up.
const STORE_CHECKED: Span = Span::from_secs(1);

/// The daemon's state machine.
pub struct Host {
    engine: Engine<Gathered>,
    store: Box<dyn Store>,
    builder: PolicyBuilder,
    settings: Settings,
    cluster: String,
    policy: String,
    now: Time,
    next_job: u32,
    jobs: BTreeMap<u32, LiveJob>,
    /// Who waits for a job.
    dependents: BTreeMap<u32, BTreeSet<u32>>,
    tenants: Tenants,
    tokens: Tokens,
    groups: BTreeMap<String, u32>,
    keys: Keys,
    clock_next: Time,
    store_checked: Time,
    /// The question that a solver is at work on, and the step that it is about.
    solving: Option<(u64, u64)>,
    questions: u64,
    agents: Agents,
    lease_runs: BTreeMap<LeaseId, LeaseRun>,
    failed_starts: FailedStarts,
    draft: Draft,
    last_record: u64,
    last_change: u64,
    log_bytes: usize,
    snapshot_bytes: usize,
    not_before: Time,
    failed: Option<HostError>,
    figures: Figures,
}

/// What the present batch has come to so far.
#[derive(Default)]
struct Draft {
    /// Facts of the step that is not taken yet.
    facts: Option<Vec<Event>>,
    /// Facts that follow from others and are not taken in yet.
    later: VecDeque<Event>,
    records: Vec<Record>,
    rows: Vec<Row>,
    effects: Vec<Effect>,
    /// Replies that show a job as it is after the batch.
    job_replies: Vec<(u64, u32)>,
    many_replies: Vec<ManyReply>,
    /// Jobs that may have changed.
    touched: BTreeSet<u32>,
    /// Jobs that ended in this batch, to show them once more.
    ended: BTreeMap<u32, crate::store::JobRow>,
    /// Jobs that no node can hold.
    unplaceable_jobs: Vec<(u32, Reason)>,
}

impl Host {
    /// Takes in a batch of inputs, in order, and says what to do about them.
    pub fn handle(&mut self, now: Time, inputs: Vec<Input>) -> Result<Vec<Effect>, HostError> {
        if let Some(fault) = &self.failed {
            return Err(HostError::Stopped { fault: fault.to_string() });
        }
        // A wall clock that is set back stands still until it catches up.
        self.now = self.now.max(now);
        for input in inputs {
            self.take(input);
        }
        self.look_at_the_clock();
        self.settle();
        self.write_jobs();
        let done = self.commit(false).and_then(|()| self.check_store());
        if let Err(fault) = &done {
            self.failed = Some(fault.clone());
        }
        done.map(|()| std::mem::take(&mut self.draft.effects))
    }

    /// Saves the state, so that the next start is quick.
    pub fn close(&mut self) -> Result<(), HostError> {
        match &self.failed {
            Some(fault) => Err(fault.clone()),
            None => self.commit(true),
        }
    }

    /// The time by which the host wants to be called for the scheduler, if nothing happens before.
    /// For silent nodes it wants a tick now and then in any case.
    pub fn wake(&self) -> Option<Time> {
        self.engine.wake().map(|at| at.max(self.not_before))
    }

    /// The scheduler's state.
    pub fn state(&self) -> &ClusterState {
        self.engine.state()
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Command { slot, by, command } => {
                self.figures.commands += 1;
                if let Err(fault) = self.command(slot, &by, *command) {
                    self.draft.effects.push(Effect::Reply(slot, Err(fault)));
                }
            }
            Input::AgentConnected { session, token, protocol, machine, held, last_job } => {
                self.agent_connected(session, token, protocol, machine, held, last_job);
            }
            Input::AgentSaid { session, message } => self.agent_said(session, message),
            Input::AgentLost { session } => self.agents.lost(session),
            Input::Solved { number, answer } => {
                // One that another policy asked for, or an earlier life, is of no use.
                if self.solving.take_if(|(asked, _)| *asked == number).is_some() {
                    self.fact(answer);
                }
            }
            Input::Tick => {}
        }
    }

    /// Enters a fact; the state shows it, and what follows from it, at once.
    fn fact(&mut self, event: Event) {
        self.later(event);
        self.drain();
    }

    /// Lets a fact enter at the next opportunity, from where one is being taken in already.
    fn later(&mut self, event: Event) {
        self.draft.later.push_back(event);
    }

    fn drain(&mut self) {
        while let Some(event) = self.draft.later.pop_front() {
            if self.draft.facts.is_none() {
                self.engine.begin(self.now);
            }
            if matches!(event, Event::PolicyChanged { .. }) {
                self.solving = None;
            }
            self.engine.take_fact(&event);
            self.draft.facts.get_or_insert_default().push(event);
            self.gather();
        }
    }

    /// Steps until nothing follows from what happened.
    fn settle(&mut self) {
        let mut housekeeping = self.engine.wake().is_some_and(|at| at <= self.now);
        housekeeping &= self.now >= self.not_before;
        for _ in 0..FOLLOW_UPS_MAX {
            self.hold_unplaceable();
            self.open_gates();
            self.drain();
            if self.draft.facts.is_none() && !housekeeping {
                break;
            }
            housekeeping = false;
            self.step();
        }
        assert!(self.draft.facts.is_none(), "a batch comes to an end");
        self.ask_solver();
        if self.engine.wake().is_some_and(|at| at <= self.now) {
            self.not_before = self.now + HOUSEKEEPING;
        }
    }

    /// Has a solver asked for, unless it is at work on this question already. What an earlier life
    /// asked is asked again.
    fn ask_solver(&mut self) {
        let known = self.solving.map(|(_, based_on)| based_on);
        if self.engine.state().solve_asked() == known {
            return;
        }
        self.solving = None;
        if let Some(based_on) = self.engine.wants_solver() {
            self.questions += 1;
            self.solving = Some((self.questions, based_on));
            self.draft.effects.push(Effect::Solve(self.questions));
        }
    }

    /// What a solver is to answer, on a copy of the state; none when nobody waits for it any more.
    pub fn question(&self, number: u64) -> Option<SolverQuestion> {
        self.solving.filter(|(asked, _)| *asked == number)?;
        self.engine.question_to_solver()
    }

    fn step(&mut self) {
        let begun = std::time::Instant::now();
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
        for decision in &decisions {
            self.act(decision);
        }
        self.draft.records.push(Record::Output { at, asked, decisions });
        self.figures.decisions.add(begun.elapsed());
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

    fn act(&mut self, decision: &Decision) {
        match decision {
            Decision::Start { lease, .. } => self.begin_run(*lease),
            Decision::Stop { lease, how, .. } => self.end_run(*lease, *how),
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
    }

    /// Writes everything of this batch durably.
    fn commit(&mut self, closing: bool) -> Result<(), HostError> {
        let mut batch = Batch { rows: std::mem::take(&mut self.draft.rows), ..Batch::default() };
        for record in self.draft.records.drain(..) {
            let text = serde_json::to_string(&record).expect("records are plain data");
            self.log_bytes += text.len();
            self.last_record += 1;
            batch.records.push((self.last_record, text));
        }
        let due = self.log_bytes >= self.settings.snapshot_bytes.max(2 * self.snapshot_bytes);
        if due || (closing && self.log_bytes > 0) {
            let state = serde_json::to_string(&self.engine.snapshot());
            let mut state = state.expect("a state is plain data");
            // It grew by doubling; what is too much is given back before the store copies from it.
            state.shrink_to_fit();
            (self.snapshot_bytes, self.log_bytes) = (state.len(), 0);
            batch.snapshot = Some((self.last_record, state));
        }
        if batch.is_empty() {
            return Ok(());
        }
        let begun = std::time::Instant::now();
        self.store.commit(&batch)?;
        self.figures.commits.add(begun.elapsed());
        self.figures.records = self.last_record;
        Ok(())
    }

    /// Finds out whether another daemon may be the writer, although there is nothing to write.
    fn check_store(&mut self) -> Result<(), HostError> {
        if self.now.since(self.store_checked) >= STORE_CHECKED {
            self.store.check()?;
            self.store_checked = self.now;
        }
        Ok(())
    }

    /// A number for a change, larger than every one before, over restarts too.
    fn next_change(&mut self) -> u64 {
        let records = self.last_record + self.draft.records.len() as u64;
        self.last_change = (self.last_change + 1).max(records << 20);
        self.last_change
    }
}

/// Whether nodes that join later may help.
fn is_unplaceable(reason: Reason) -> bool {
    matches!(reason, Reason::TooLarge { .. } | Reason::NoSuchModel | Reason::NodeTooSmall { .. })
}
