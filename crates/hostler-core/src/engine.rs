//! The loop body: facts in, decisions out, nothing lost in between.
//!
//! One step is taken in three moves that recovery and replay use one by one: `take_in` the facts,
//! `propose` decisions, `commit` them.

use std::sync::Arc;

use crate::capacity::Refusal;
use crate::decision::{Decision, StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::job::{Job, Phase};
use crate::limits::{STEPS_PER_INSTANT_MAX, STOP_ATTEMPTS_MAX};
use crate::observe::{observed, unfit};
use crate::plan::{Plan, PlanError};
use crate::policy::{Cadence, Policy, Wake};
use crate::predict::{Observed, Predict};
use crate::record::Record;
use crate::solve::SolverQuestion;
use crate::state::{ClusterState, Snapshot};
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

    /// The watcher, to take out what it gathered.
    pub fn watch_mut(&mut self) -> &mut Watcher {
        &mut self.watch
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

    /// The facts of the state, to save them.
    pub fn snapshot(&self) -> Snapshot {
        self.state.snapshot(self.matters)
    }

    /// Puts saved facts in place of the state, for a policy that has not been asked yet; watchers
    /// are not told.
    pub fn restore(&mut self, snapshot: Snapshot) {
        self.matters = snapshot.matters;
        self.state = ClusterState::restore(snapshot);
    }

    /// The time by which the engine wants to be called, if nothing happens before.
    pub fn wake(&self) -> Option<Time> {
        let round = match self.policy.cadence() {
            Cadence::Rounds(span) => self.next_round(span),
            Cadence::EveryEvent => None,
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

    /// Answers a solver's question on the state as it is, if the policy has asked one.
    ///
    /// A host whose time goes on does the same on a thread, with [`Engine::question_to_solver`].
    pub fn solve(&mut self) -> Option<Event> {
        let based_on = self.state.solve_asked()?;
        let solution = Arc::new(self.policy.solver()?.solve(&View::new(&self.state)));
        Some(Event::Solved { based_on, solution })
    }

    /// Whether the policy has asked a solver and can be given one: the step that it asked at.
    pub fn wants_solver(&self) -> Option<u64> {
        self.state.solve_asked().filter(|_| self.policy.solver().is_some())
    }

    /// A solver's question on a clone of the state, if the policy has asked one.
    pub fn question_to_solver(&self) -> Option<SolverQuestion> {
        let based_on = self.state.solve_asked()?;
        Some(SolverQuestion::new(based_on, self.policy.solver()?, self.state.clone()))
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

    /// Moves to the instant of the next facts, for a host that records by itself.
    pub fn begin(&mut self, at: Time) {
        self.matters |= self.state.begin_step(at);
    }

    /// Applies one fact of the instant.
    pub fn take_fact(&mut self, event: &Event) {
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
                Decision::Start { placement, .. } => plan.claim(Arc::clone(placement)),
                Decision::Resize { lease, placement } | Decision::SetShare { lease, placement } => {
                    plan.lift(*lease);
                    plan.claim(Arc::clone(placement))
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
                // Without jobs there is nothing to give turns to, unless the executor says so.
                let told = self.state.round().is_some_and(|round| round.over);
                let over = (told || self.state.job_count() > 0) && self.state.round_is_over(span);
                match over && (self.matters || self.next_round(span).is_some()) {
                    true => Some(Wake::Round),
                    false => self.matters.then_some(Wake::Event),
                }
            }
        }
    }

    fn nothing_due(&self) -> bool {
        self.state.must_stop().next().is_none() && self.state.due().next().is_none()
    }

    /// When the next round may begin, unless the policy was asked at that time already. Time alone
    /// changes nothing while nobody runs.
    fn next_round(&self, span: Span) -> Option<Time> {
        let round = self.state.round().filter(|_| self.state.lease_count() > 0)?;
        // A lone job has nobody to take turns with, and may run for years.
        if self.state.job_count() == 1 && !self.state.solution_is_stale() {
            return None;
        }
        let at = round.began + span;
        self.state.asked_at().is_none_or(|asked| asked < at).then_some(at)
    }

    fn change_policy(&mut self, event: &Event) {
        if let (Event::PolicyChanged { settings }, Some(builder)) = (event, &mut self.builder) {
            self.policy = builder(settings);
        }
    }

    /// Adds facts that follow from facts: estimates, speeds, and nodes that no longer answer.
    fn enrich(&mut self, at: Time, events: &mut Vec<Event>) {
        if let Some(predict) = &mut self.predict {
            for position in 0..events.len() {
                let beliefs = believe(&mut **predict, &self.state, at, &events[position]);
                events.extend(beliefs);
            }
        }
        let silent = self.state.silent_nodes(at);
        events.extend(silent.into_iter().map(|node| Event::NodeDown { node }));
    }
}

/// What a predictor believes after a fact that the state has not taken in yet.
fn believe(predict: &mut dyn Predict, state: &ClusterState, at: Time, event: &Event) -> Vec<Event> {
    match event {
        Event::Submitted { job, spec } => {
            let estimate = predict.estimate(*job, spec);
            estimate.map(|estimate| Event::Estimated { job: *job, estimate }).into_iter().collect()
        }
        Event::Stopped { lease, outcome, done, lost } => {
            let job = state.lease(*lease).and_then(|lease| state.job(lease.job));
            let finished = job.filter(|_| *outcome == Outcome::Finished);
            let mut beliefs = finished.map_or(Vec::new(), |job| learn(predict, state, job, *done));
            if !predict.wants_speeds() {
                return beliefs;
            }
            let observed = observed(state, at, *lease, *outcome, (*done, *lost));
            beliefs.extend(profiled(predict, observed));
            beliefs
        }
        Event::StartFailed { lease } if predict.wants_speeds() => {
            profiled(predict, unfit(state, *lease))
        }
        _ => Vec::new(),
    }
}

/// Teaches a predictor the speed of a stay.
fn profiled(predict: &mut dyn Predict, observed: Option<Observed>) -> Vec<Event> {
    let profiles = observed.map_or(Vec::new(), |observed| predict.observe_speed(&observed));
    profiles.into_iter().map(|(key, profile)| Event::Profiled { key, profile }).collect()
}

/// Teaches a predictor what a job took, and asks again about jobs that wait and that it sees
/// otherwise now.
fn learn(predict: &mut dyn Predict, state: &ClusterState, over: &Job, run: Span) -> Vec<Event> {
    let outdated = predict.observe(over.id, &over.spec, run).into_iter();
    let waiting = outdated.filter_map(|id| state.job(id)).filter(|job| job.phase == Phase::Pending);
    let revised = waiting.filter_map(|job| {
        let estimate = predict.estimate(job.id, &job.spec)?;
        (job.estimate != Some(estimate)).then_some(Event::Estimated { job: job.id, estimate })
    });
    revised.collect()
}

/// Ends what must end whatever the policy says, and repeats what was not answered.
fn keep_house(state: &ClusterState, plan: &mut Plan<'_>) {
    for (lease, why) in state.must_stop() {
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
