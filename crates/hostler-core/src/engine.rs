//! The loop body: facts in, decisions out, nothing lost in between.
//!
//! A step is: `begin` an instant, `take_facts` of it, `end_input`, `propose` decisions,
//! `commit` them. A simulation takes it in one go; a host whose facts come one by one, and who has
//! to answer in between, takes the same moves itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::border;
use crate::capacity::Refusal;
use crate::decision::{Decision, StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::job::Job;
use crate::limits::{STEPS_PER_INSTANT_MAX, STOP_ATTEMPTS_MAX};
use crate::observe::{observed, observed_so_far, unfit};
use crate::placement::Lease;
use crate::plan::{Finished, Plan, PlanError};
use crate::policy::{Cadence, Policy, Wake};
use crate::predict::{EstimateSource, Observed, Predict};
use crate::record::Record;
use crate::solve::{Solve, SolverQuestion};
use crate::state::{ClusterState, Snapshot};
use crate::units::{Span, Time};
use crate::verify::{Violation, verify};
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
    /// Facts of the instant that goes on.
    input: Option<OpenInput>,
    /// Whether something happened that the policy has not been asked about.
    policy_due: bool,
    steps_at_instant: u32,
    events: u64,
}

/// The step that a solver was asked at, and the solver.
type AskedSolver = (u64, Box<dyn Solve>);

/// Facts of one instant that are being taken in.
#[derive(Default)]
struct OpenInput {
    events: Vec<Event>,
    /// What predictors believe since; taken in behind the facts.
    beliefs: Vec<Event>,
}

/// What is to be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Whether the policy was asked (or only housekeeping spoke).
    pub asked: bool,
    /// The decisions. Where the policy broke a rule, those of housekeeping alone.
    pub decisions: Vec<Decision>,
    /// The rule that the policy broke, if it did.
    pub violation: Option<Violation>,
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
            input: None,
            policy_due: false,
            steps_at_instant: 0,
            events: 0,
        }
    }

    /// Lets `predict` estimate every submitted job.
    pub fn with_predictor(mut self, predict: Box<dyn Predict>) -> Engine<Watcher> {
        self.predict = Some(predict);
        self
    }

    /// Hands every record to `recorder`.
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

    /// Whose run times the policy goes by.
    pub fn estimates(&self) -> EstimateSource {
        self.policy.estimates()
    }

    /// Puts another predictor in place, and has it look at all jobs that wait.
    pub fn replace_predictor(&mut self, mut predict: Box<dyn Predict>) -> Vec<Event> {
        let waiting = self.state.jobs().filter(|job| job.lease().is_none());
        let estimates = waiting.filter_map(|job| estimated(&mut *predict, job)).collect();
        self.predict = Some(predict);
        estimates
    }

    /// The facts of the state, to save them.
    pub fn snapshot(&self) -> Snapshot {
        self.state.snapshot(self.policy_due)
    }

    /// Puts saved facts in place of the state, for a policy that has not been asked yet; watchers
    /// are not told.
    pub fn restore(&mut self, snapshot: Snapshot) {
        self.policy_due = snapshot.policy_due;
        self.state = ClusterState::restore(snapshot);
    }

    /// Has the policy asked before anything happens: it is another than the one that decided on
    /// this state.
    pub fn ask_at_once(&mut self) {
        self.policy_due = true;
    }

    /// Whether the policy has not seen all that it is to be asked about.
    pub fn is_policy_due(&self) -> bool {
        self.policy_due && !self.state.nobody_decides()
    }

    /// The time by which the engine wants to be called, if nothing happens before.
    pub fn wake(&self) -> Option<Time> {
        let round = match self.policy.cadence() {
            Cadence::Rounds(span) if !self.state.nobody_decides() => self.next_round(span),
            Cadence::Rounds(_) | Cadence::EveryEvent => None,
        };
        let state = &self.state;
        let times = [
            self.is_policy_due().then(|| state.now()),
            round,
            state.wake_at(),
            state.next_due(),
            state.next_resume(),
            state.next_window_change(),
            state.next_budget_change(),
        ];
        times.into_iter().flatten().min()
    }

    /// One step: facts of one instant in, decisions out. Nothing is decided where the policy breaks
    /// a rule.
    pub fn step(&mut self, at: Time, events: Vec<Event>) -> Result<Vec<Decision>, Violation> {
        self.begin(at);
        self.take_facts(events);
        self.end_input();
        if self.steps_at_instant >= STEPS_PER_INSTANT_MAX {
            return Err(Violation::StandsStill(STEPS_PER_INSTANT_MAX));
        }
        let proposal = self.propose();
        match proposal.violation {
            Some(violation) => Err(violation),
            None => Ok(self.commit(proposal)),
        }
    }

    /// Answers a solver's question on the state as it is, if the policy has asked one.
    ///
    /// A host whose time goes on does the same on a thread, with [`Engine::question_to_solver`].
    pub fn solve(&mut self) -> Result<Option<Event>, Violation> {
        let Some((based_on, mut solver)) = self.solver()? else { return Ok(None) };
        let solution = guarded(|| solver.solve(&View::new(&self.state)))?;
        let answer = Event::Solved { based_on, solution: Arc::new(solution) };
        self.check_answer(&answer)?;
        Ok(Some(answer))
    }

    /// A solver's question on a clone of the state, if the policy has asked one.
    pub fn question_to_solver(&self) -> Result<Option<SolverQuestion>, Violation> {
        let asked = self.solver()?;
        Ok(asked
            .map(|(based_on, solver)| SolverQuestion::new(based_on, solver, self.state.clone())))
    }

    /// Whether a solver's answer makes sense; it is no fact of the world, and taken in like one.
    pub fn check_answer(&self, answer: &Event) -> Result<(), Violation> {
        border::check(&self.state, answer).map_err(|_| Violation::Answer)
    }

    /// The solver that the policy has asked, and the step that it asked at.
    fn solver(&self) -> Result<Option<AskedSolver>, Violation> {
        let Some(based_on) = self.state.solve_asked() else { return Ok(None) };
        let solver = guarded(|| self.policy.solver())?;
        Ok(solver.map(|solver| (based_on, solver)))
    }

    /// Moves to the instant of the next facts.
    pub fn begin(&mut self, at: Time) {
        let same_instant = self.state.step() > 0 && at <= self.state.now();
        self.steps_at_instant = if same_instant { self.steps_at_instant + 1 } else { 0 };
        self.policy_due |= self.state.begin_step(at);
        self.input = Some(OpenInput::default());
    }

    /// Whether facts are being taken in.
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }

    /// Takes in one fact of the instant; the state shows it at once.
    pub fn take_fact(&mut self, event: Event) {
        self.take_facts(vec![event]);
    }

    /// Takes in facts of the instant that came together; the state shows them at once. What
    /// predictors believe after them follows behind the last one.
    pub fn take_facts(&mut self, events: Vec<Event>) {
        let seen = self.speeds_seen(&events);
        let mut seen = seen.into_iter();
        for event in &events {
            if let Some(predict) = &mut self.predict {
                let believed = estimates(&mut **predict, &self.state, event);
                let seen = seen.next().unwrap_or_default();
                self.open_input().beliefs.extend(believed.into_iter().chain(seen));
            }
            self.apply_fact(event);
        }
        let input = self.open_input();
        if input.events.is_empty() {
            input.events = events;
        } else {
            input.events.extend(events);
        }
    }

    /// What stays that end together show of speeds, one list for each fact: who ran beside whom is
    /// known before the first of them is taken in.
    fn speeds_seen(&mut self, events: &[Event]) -> Vec<Vec<Event>> {
        let state = &self.state;
        let predict = self.predict.as_deref_mut().filter(|predict| predict.wants_speeds());
        predict.map_or_else(Vec::new, |predict| {
            events.iter().map(|event| speeds(predict, state, event)).collect()
        })
    }

    fn open_input(&mut self) -> &mut OpenInput {
        self.input.as_mut().expect("`begin` comes before facts")
    }

    /// Takes in what follows from the facts of the instant and records all of it.
    pub fn end_input(&mut self) -> Record {
        let OpenInput { mut events, beliefs } = self.input.take().expect("`begin` comes before");
        let silent = match self.state.abilities().tells_nodes {
            true => Vec::new(),
            false => self.state.silent_nodes(self.state.now()),
        };
        let silent = silent.into_iter().map(|node| Event::NodeDown { node });
        for event in beliefs.into_iter().chain(silent) {
            // What makes no sense is no belief.
            if border::check(&self.state, &event).is_err() {
                continue;
            }
            self.apply_fact(&event);
            events.push(event);
        }
        let record = Record::Input { at: self.state.now(), events };
        if let Some(recorder) = &mut self.recorder {
            recorder(&record);
        }
        record
    }

    /// Applies a record that was logged before. Neither policy nor predictor is asked.
    pub fn fold(&mut self, record: &Record) {
        match record {
            Record::Input { at, events } => {
                self.fold_begin(*at);
                events.iter().for_each(|event| self.apply_fact(event));
            }
            Record::Output { asked, decisions, .. } => self.apply_decisions(*asked, decisions),
        }
    }

    /// Moves to the instant of facts that were logged before.
    pub(crate) fn fold_begin(&mut self, at: Time) {
        self.policy_due |= self.state.begin_step(at);
    }

    /// Applies one fact, by itself.
    pub(crate) fn apply_fact(&mut self, event: &Event) {
        let before = self.state.journal.end();
        self.policy_due |= self.comes_back(event);
        self.state.apply_event(event, &mut self.watch);
        // What wakes nobody by itself may let others through.
        self.policy_due |= event.wakes_policy() || self.state.journal.queued_since(before);
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
                Decision::Start { job, placement, .. } => {
                    plan.start(*job, Arc::clone(placement)).map(drop)
                }
                Decision::Resize { lease, placement } => {
                    plan.lift(*lease).and_then(|()| plan.claim(Arc::clone(placement)))
                }
                Decision::Stop { lease, how: StopHow::Suspend, .. } => {
                    plan.stop(*lease, StopHow::Suspend)
                }
                _ => Ok(()),
            };
            if let Err(PlanError::Taken(refusal)) = booked {
                result = Err(refusal);
                break;
            }
        }
        self.state.capacity = plan.finish().free;
        result
    }

    /// What housekeeping and, if it is its turn, the policy want. Changes nothing.
    ///
    /// A policy that breaks a rule, or panics, is not listened to: its plan is dropped as a whole
    /// and housekeeping speaks alone.
    pub fn propose(&mut self) -> Proposal {
        let wake = self.question();
        if wake.is_none() && self.nothing_due() {
            return Proposal { asked: false, decisions: Vec::new(), violation: None };
        }
        let planned = self.plan(wake).and_then(|(decisions, on_trial)| {
            verify(&self.state, &decisions)?;
            if on_trial {
                self.check_free(&decisions)?;
            }
            Ok(decisions)
        });
        let asked = wake.is_some();
        match planned {
            Ok(decisions) => Proposal { asked, decisions, violation: None },
            Err(violation) => {
                let (decisions, _) = self.plan(None).expect("housekeeping does not panic");
                Proposal { asked, decisions, violation: Some(violation) }
            }
        }
    }

    /// The decisions of housekeeping and, if it is asked, of the policy; and whether something was
    /// free on trial.
    fn plan(&mut self, wake: Option<Wake>) -> Result<(Vec<Decision>, bool), Violation> {
        let free = std::mem::take(&mut self.state.capacity);
        let mut plan = Plan::new(&self.state, free);
        keep_house(&self.state, &mut plan);
        let (state, policy) = (&self.state, &mut self.policy);
        // What a panic leaves half done is thrown away: the plan here, the policy by whoever hears
        // of the violation.
        let decided = guarded(move || {
            if let Some(wake) = wake {
                policy.decide(&View::new(state), wake, &mut plan);
            }
            plan.finish()
        });
        match decided {
            Ok(Finished { decisions, free, on_trial }) => {
                self.state.capacity = free;
                Ok((decisions, on_trial))
            }
            Err(violation) => {
                self.state.rebuild_capacity();
                Err(violation)
            }
        }
    }

    /// Records and applies what was proposed on this very state, and hands it on.
    pub fn commit(&mut self, proposal: Proposal) -> Vec<Decision> {
        let Proposal { asked, decisions, .. } = proposal;
        let record = Record::Output { at: self.state.now(), asked, decisions };
        if let Some(recorder) = &mut self.recorder {
            recorder(&record);
        }
        let Record::Output { decisions, .. } = record else { unreachable!("made above") };
        self.apply_decisions(asked, &decisions);
        decisions
    }

    fn apply_decisions(&mut self, asked: bool, decisions: &[Decision]) {
        if asked {
            self.state.note_question();
            self.policy_due = false;
        }
        for decision in decisions {
            let before = self.state.journal.end();
            // Who goes on leaves memory: the policy has not seen who finds room in it.
            self.policy_due |= self.resumes(decision);
            self.state.apply_decision(decision, &mut self.watch);
            // Who is turned away makes room within limits: the policy has not seen who comes then.
            let leaves = matches!(decision, Decision::Reject { .. } | Decision::SetAside { .. });
            self.policy_due |= leaves && self.state.journal.queued_since(before);
        }
    }

    /// Whether a suspended job goes on by a decision.
    fn resumes(&self, decision: &Decision) -> bool {
        let Decision::Start { job, .. } = decision else { return false };
        self.state.job(*job).is_some_and(Job::is_suspended)
    }

    /// Whether a job is back from memory by a fact: until then it was left alone, so that the
    /// policy may have let others wait for it.
    fn comes_back(&self, event: &Event) -> bool {
        let Event::Started { lease } = event else { return false };
        self.state.lease(*lease).is_some_and(Lease::is_resuming)
    }

    /// Why the policy is to be asked now, if it is.
    fn question(&self) -> Option<Wake> {
        if self.state.nobody_decides() {
            return None;
        }
        match self.policy.cadence() {
            Cadence::EveryEvent => self.policy_due.then_some(Wake::Event),
            Cadence::Rounds(span) => {
                // Without jobs there is nothing to give turns to, unless the executor says so.
                let told = self.state.round().is_some_and(|round| round.over);
                let over = (told || self.state.job_count() > 0) && self.state.round_is_over(span);
                match over && (self.policy_due || self.next_round(span).is_some()) {
                    true => Some(Wake::Round),
                    false => self.policy_due.then_some(Wake::Event),
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
        let solves_again = self.state.solved_at().is_some() && self.state.solution_is_stale();
        if self.state.job_count() == 1 && !solves_again {
            return None;
        }
        let at = round.began + span;
        self.state.asked_at().is_none_or(|asked| asked < at).then_some(at)
    }

    fn change_policy(&mut self, event: &Event) {
        let settings = match event {
            Event::PolicyChanged { settings } => Some(settings),
            Event::PolicyBroke { fallback, .. } => fallback.as_ref(),
            _ => None,
        };
        if let (Some(settings), Some(builder)) = (settings, &mut self.builder) {
            self.policy = builder(settings);
        }
    }
}

/// Runs what a policy brought along; a panic of it is a violation.
pub(crate) fn guarded<Answer>(work: impl FnOnce() -> Answer) -> Result<Answer, Violation> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Violation::Panicked)
}

/// Run times that a predictor believes in after a fact that the state has not taken in yet.
fn estimates(predict: &mut dyn Predict, state: &ClusterState, event: &Event) -> Vec<Event> {
    match event {
        Event::Submitted { job, spec } => {
            let estimate = predict.estimate(*job, spec);
            estimate.map(|estimate| Event::Estimated { job: *job, estimate }).into_iter().collect()
        }
        Event::Stopped { lease, outcome: Outcome::Finished, done, .. } => {
            let job = state.lease(*lease).and_then(|lease| state.job(lease.job));
            job.map_or(Vec::new(), |job| learn(predict, state, job, *done))
        }
        _ => Vec::new(),
    }
}

/// Speeds that a predictor believes in after a fact that the state has not taken in yet.
fn speeds(predict: &mut dyn Predict, state: &ClusterState, event: &Event) -> Vec<Event> {
    match event {
        Event::Stopped { lease, outcome, done, lost } => {
            profiled(predict, observed(state, *lease, *outcome, (*done, *lost)))
        }
        Event::Progress { lease, done, idle } => {
            profiled(predict, observed_so_far(state, *lease, *done, *idle))
        }
        Event::StartFailed { lease } => profiled(predict, unfit(state, *lease)),
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
    let outdated = predict.observe(over.id, over.asked(), run).into_iter();
    let waiting = outdated.filter_map(|id| state.job(id)).filter(|job| job.lease().is_none());
    waiting.filter_map(|job| estimated(predict, job)).collect()
}

/// What a predictor believes of a job, where that is something else than before.
fn estimated(predict: &mut dyn Predict, job: &Job) -> Option<Event> {
    let estimate = predict.estimate(job.id, job.asked())?;
    (job.estimate != Some(estimate)).then_some(Event::Estimated { job: job.id, estimate })
}

/// Ends what must end whatever the policy says, and repeats what was not answered.
fn keep_house(state: &ClusterState, plan: &mut Plan<'_>) {
    for (lease, why) in state.must_stop() {
        let how = if why == StopWhy::Evicted { StopHow::Checkpoint } else { StopHow::Kill };
        // Decided on already is as good.
        let _ = plan.stop_because(lease, how, why);
    }
    for lease in state.due() {
        let (how, why) = match (&lease.stop, lease.started) {
            (Some(stop), _) if stop.asked >= STOP_ATTEMPTS_MAX => continue,
            // It is slow to leave its GPUs, and must lose nothing by that; only before its nodes
            // are given up it is ended after all.
            (Some(stop), _) if lease.is_suspending() && stop.asked + 1 < STOP_ATTEMPTS_MAX => {
                (StopHow::Suspend, stop.why)
            }
            (Some(stop), _) => (StopHow::Kill, stop.why),
            // Who has not started has nothing to save, and has not failed either.
            (None, started) if lease.until.is_some_and(|until| until <= state.now()) => {
                let how = if started.is_some() { StopHow::Checkpoint } else { StopHow::Kill };
                (how, StopWhy::LeaseEnded)
            }
            (None, None) => (StopHow::Kill, StopWhy::NoAnswer),
            (None, Some(_)) => (StopHow::Kill, StopWhy::TimeLimit),
        };
        let _ = plan.stop_again(lease.id, how, why);
    }
}

#[cfg(test)]
mod tests;
