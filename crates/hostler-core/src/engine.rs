//! The loop body: facts in, decisions out, nothing lost in between.
//!
//! One step is taken in three moves that recovery and replay use one by one: `take_in` the facts,
//! `propose` decisions, `commit` them.

use crate::capacity::Refusal;
use crate::decision::{Decision, StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::limits::{STEPS_PER_INSTANT_MAX, STOP_ATTEMPTS_MAX};
use crate::plan::{Plan, PlanError};
use crate::policy::{Cadence, Policy, Wake};
use crate::predict::Predict;
use crate::record::Record;
use crate::state::ClusterState;
use crate::units::{Span, Time};
use crate::verify::verify;
use crate::view::View;
use crate::watch::Watch;

/// Takes each record of the log.
pub type Recorder = Box<dyn FnMut(&Record) + Send>;

/// Makes a policy from the TOML of a `PolicyChanged` event.
pub type Builder = Box<dyn FnMut(&str) -> Box<dyn Policy> + Send>;

/// The state, the policy that decides on it, and those who look on.
pub struct Engine<Watcher> {
    state: ClusterState,
    policy: Box<dyn Policy>,
    predict: Option<Box<dyn Predict>>,
    recorder: Option<Recorder>,
    builder: Option<Builder>,
    watch: Watcher,
    matters: bool,
    steps_at_instant: u32,
    events: u64,
}

impl<Watcher: Watch> Engine<Watcher> {
    /// An engine on an empty cluster.
    pub fn new(policy: Box<dyn Policy>, watch: Watcher) -> Engine<Watcher> {
        Engine {
            state: ClusterState::default(),
            policy,
            predict: None,
            recorder: None,
            builder: None,
            watch,
            matters: false,
            steps_at_instant: 0,
            events: 0,
        }
    }

    /// Lets `predict` estimate every submitted job.
    pub fn with_predictor(mut self, predict: Box<dyn Predict>) -> Engine<Watcher> {
        self.predict = Some(predict);
        self
    }

    /// Hands every record to `recorder`, before it takes effect.
    pub fn with_recorder(mut self, recorder: Recorder) -> Engine<Watcher> {
        self.recorder = Some(recorder);
        self
    }

    /// Builds policies for `PolicyChanged` events with `builder`.
    pub fn with_builder(mut self, builder: Builder) -> Engine<Watcher> {
        self.builder = Some(builder);
        self
    }

    /// The state.
    pub fn state(&self) -> &ClusterState {
        &self.state
    }

    /// The watcher.
    pub fn watch(&self) -> &Watcher {
        &self.watch
    }

    /// The watcher and the state, at the end.
    pub fn into_parts(self) -> (ClusterState, Watcher) {
        (self.state, self.watch)
    }

    /// Facts taken in so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Puts another policy in place, as a restart would.
    pub fn replace_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
    }

    /// The time by which the engine wants to be called, if nothing happens before.
    pub fn wake(&self) -> Option<Time> {
        let round = match self.policy.cadence() {
            Cadence::Rounds(span) if self.state.job_count() > 0 => Some(self.next_round(span)),
            Cadence::Rounds(_) | Cadence::EveryEvent => None,
        };
        [round, self.state.wake_at(), self.state.next_due()].into_iter().flatten().min()
    }

    /// One step: facts of one instant in, decisions out.
    pub fn step(&mut self, at: Time, mut events: Vec<Event>) -> Vec<Decision> {
        self.enrich(at, &mut events);
        self.take_in(at, events);
        let (asked, decisions) = self.propose();
        self.commit(asked, decisions)
    }

    /// Records and applies facts.
    pub fn take_in(&mut self, at: Time, events: Vec<Event>) {
        let same_instant = self.state.step() > 0 && at <= self.state.now();
        self.steps_at_instant = if same_instant { self.steps_at_instant + 1 } else { 0 };
        let steps = self.steps_at_instant;
        assert!(steps < STEPS_PER_INSTANT_MAX, "time stands still at {at} s: {steps} steps");
        let record = Record::Input { at, events };
        if let Some(recorder) = &mut self.recorder {
            recorder(&record);
        }
        self.fold(&record);
    }

    /// Applies a record that was logged before. The policy is not asked.
    pub fn fold(&mut self, record: &Record) {
        match record {
            Record::Input { at, events } => {
                self.begin(*at);
                events.iter().for_each(|event| self.take_fact(event));
            }
            Record::Output { asked, decisions, .. } => {
                if *asked {
                    self.state.note_question();
                    self.state.journal.clear();
                    self.matters = false;
                }
                for decision in decisions {
                    self.state.apply_decision(decision, &mut self.watch);
                }
            }
        }
    }

    /// Moves to the instant of the next facts.
    pub(crate) fn begin(&mut self, at: Time) {
        self.matters |= self.state.begin_step(at);
    }

    /// Applies one fact of the instant.
    pub(crate) fn take_fact(&mut self, event: &Event) {
        self.matters |= event.matters();
        self.state.apply_event(event, &mut self.watch);
        self.change_policy(event);
        self.events += 1;
        self.state.drop_settled_starts();
    }

    /// Whether all placements of the decisions are free together. Changes nothing.
    pub(crate) fn check_free(&mut self, decisions: &[Decision]) -> Result<(), Refusal> {
        let free = std::mem::take(&mut self.state.capacity);
        let mut plan = Plan::new(&self.state, free);
        let mut result = Ok(());
        for decision in decisions {
            let booked = match decision {
                Decision::Start { placement, .. } => plan.claim((**placement).clone()),
                Decision::Resize { lease, placement } | Decision::SetShare { lease, placement } => {
                    plan.lift(*lease);
                    plan.claim((**placement).clone())
                }
                _ => Ok(()),
            };
            if let Err(PlanError::Taken(refusal)) = booked {
                result = Err(refusal);
                break;
            }
        }
        let (_, free) = plan.finish();
        self.state.capacity = free;
        result
    }

    /// What housekeeping and, if it is its turn, the policy want. Changes nothing.
    pub fn propose(&mut self) -> (bool, Vec<Decision>) {
        let wake = self.question();
        if wake.is_none() && self.nothing_due() {
            return (false, Vec::new());
        }
        let free = std::mem::take(&mut self.state.capacity);
        let mut plan = Plan::new(&self.state, free);
        keep_house(&self.state, &mut plan);
        if let Some(wake) = wake {
            self.policy.decide(&View::new(&self.state), wake, &mut plan);
        }
        let (decisions, free) = plan.finish();
        self.state.capacity = free;
        (wake.is_some(), decisions)
    }

    /// Verifies, records and applies decisions, and hands them on.
    pub fn commit(&mut self, asked: bool, decisions: Vec<Decision>) -> Vec<Decision> {
        if let Err(violation) = verify(&self.state, &decisions) {
            panic!("the policy breaks a rule of the cluster: {violation}");
        }
        let record = Record::Output { at: self.state.now(), asked, decisions };
        if let Some(recorder) = &mut self.recorder {
            recorder(&record);
        }
        self.fold(&record);
        let Record::Output { decisions, .. } = record else { unreachable!("made above") };
        decisions
    }

    /// Why the policy is to be asked now, if it is.
    fn question(&self) -> Option<Wake> {
        match self.policy.cadence() {
            Cadence::EveryEvent => self.matters.then_some(Wake::Event),
            Cadence::Rounds(span) => {
                let round = |at: Time| at.0 / span.0.max(1);
                let due =
                    self.state.asked_at().is_none_or(|at| round(at) < round(self.state.now()));
                (due && self.state.job_count() > 0).then_some(Wake::Round)
            }
        }
    }

    fn nothing_due(&self) -> bool {
        self.state.doomed().next().is_none() && self.state.due().next().is_none()
    }

    fn next_round(&self, span: Span) -> Time {
        let span = span.0.max(1);
        match self.state.asked_at() {
            Some(at) => Time((at.0 / span + 1) * span).max(self.state.now()),
            None => self.state.now(),
        }
    }

    fn change_policy(&mut self, event: &Event) {
        if let (Event::PolicyChanged { settings }, Some(builder)) = (event, &mut self.builder) {
            self.policy = builder(settings);
        }
    }

    /// Adds facts that follow from facts: estimates, and nodes that no longer answer.
    fn enrich(&mut self, at: Time, events: &mut Vec<Event>) {
        if let Some(predict) = &mut self.predict {
            let count = events.len();
            for position in 0..count {
                let estimate = match &events[position] {
                    Event::Submitted { job, spec } => {
                        predict.estimate(*job, spec).map(|estimate| (*job, estimate))
                    }
                    Event::Stopped { lease, outcome: Outcome::Finished, done, .. } => {
                        let job = self.state.lease(*lease).map(|lease| lease.job);
                        if let Some(job) = job.and_then(|job| self.state.job(job)) {
                            predict.observe(job.id, &job.spec, *done);
                        }
                        None
                    }
                    _ => None,
                };
                if let Some((job, estimate)) = estimate {
                    events.push(Event::Estimated { job, estimate });
                }
            }
        }
        let silent = self.state.silent_nodes(at);
        events.extend(silent.into_iter().map(|node| Event::NodeDown { node }));
    }
}

/// Ends what must end whatever the policy says, and repeats what was not answered.
fn keep_house(state: &ClusterState, plan: &mut Plan<'_>) {
    for (lease, why) in state.doomed() {
        // Decided on already is as good.
        let _ = plan.stop(lease, StopHow::Kill, why);
    }
    for lease in state.due() {
        let (how, why) = match (&lease.stop, lease.started) {
            (Some(stop), _) if stop.asked >= STOP_ATTEMPTS_MAX => continue,
            (Some(stop), _) => (StopHow::Kill, stop.why),
            (None, None) => (StopHow::Kill, StopWhy::NoAnswer),
            (None, Some(_)) if lease.until.is_some_and(|until| until <= state.now()) => {
                (StopHow::Checkpoint, StopWhy::LeaseEnded)
            }
            (None, Some(_)) => (StopHow::Kill, StopWhy::TimeLimit),
        };
        let _ = plan.stop_again(lease.id, how, why);
    }
}
