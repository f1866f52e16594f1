//! The loop body: who is asked when, what predictors add, and logs that give the same state.

mod housekeeping;
mod violations;

use std::sync::{Arc, Mutex};

use crate::engine::Engine;
use crate::event::{Event, Outcome};
use crate::executor::{Executor, run};
use crate::id::{JobId, LeaseId, ModelId, ProfileKey};
use crate::job::{Estimate, JobSpec};
use crate::plan::Plan;
use crate::policy::{Cadence, Policy, Wake};
use crate::predict::{Observed, Predict, UserEstimate};
use crate::profile::Profile;
use crate::record::Record;
use crate::solve::Solve;
use crate::target::{Solution, Target, Team};
use crate::testkit::*;
use crate::units::{Rate, Span, Time};
use crate::verify::Violation;
use crate::view::View;

fn believed(secs: u64) -> Estimate {
    Estimate { run: Span::from_secs(secs), spread: Span::ZERO }
}

/// Believes that jobs take as long as the last one that finished, and learns from every stay.
#[derive(Default)]
struct LastRun {
    last: u64,
    seen: Vec<JobId>,
    speeds: Arc<Mutex<Vec<Observed>>>,
}

impl Predict for LastRun {
    fn estimate(&mut self, job: JobId, _: &JobSpec) -> Option<Estimate> {
        self.seen.push(job);
        (self.last > 0).then(|| believed(self.last))
    }

    fn observe(&mut self, _: JobId, _: &JobSpec, run: Span) -> Vec<JobId> {
        self.last = run.0 / 1_000_000;
        std::mem::take(&mut self.seen)
    }

    fn wants_speeds(&self) -> bool {
        true
    }

    fn observe_speed(&mut self, observed: &Observed) -> Vec<(ProfileKey, Profile)> {
        self.speeds.lock().unwrap().push(*observed);
        let profile = Profile { models: vec![(ModelId(0), observed.rate)], ..Profile::default() };
        vec![(observed.key, profile)]
    }
}

#[test]
fn estimates_follow_submissions_and_ends_of_jobs_in_the_same_record() {
    let mut world = World::with_predictor("4", LastRun::default());
    world.submit(0, 0, &["gpus 1", "gpus 1", "gpus 1"]);
    assert_eq!(world.job(1).estimate, None);
    let lease = world.run(1, 0, whole(0, &[0]));
    world.run(1, 2, whole(0, &[1]));
    let held_back = submit(3, asks("gpus 1"));
    world.step(31, vec![finished(lease, 30), held_back], vec![]);
    // Job 2 runs, and what was believed of it stays; job 3 was submitted after the lesson.
    assert_eq!(world.job(1).estimate, Some(believed(30)));
    assert_eq!(world.job(2).estimate, None);
    assert_eq!(world.job(3).estimate, Some(believed(30)));
    let last = world.log().into_iter().rev().find_map(|record| match record {
        Record::Input { events, .. } => Some(events),
        Record::Output { .. } => None,
    });
    let estimated = |job| Event::Estimated { job: JobId(job), estimate: believed(30) };
    assert_eq!(last.unwrap()[2..], [estimated(1), estimated(3)]);
    world.check_log();
}

#[test]
fn jobs_behind_a_gate_and_those_of_the_same_instant_hear_of_a_lesson() {
    let mut world = World::with_predictor("4", LastRun::default());
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.step(0, vec![held(1, true)], vec![]);
    let lease = world.run(1, 0, whole(0, &[0]));
    // Job 2 is submitted at the instant of the lesson, before it.
    world.step(31, vec![submit(2, asks("gpus 1")), finished(lease, 30)], vec![]);
    assert_eq!(world.job(1).estimate, Some(believed(30)));
    assert_eq!(world.job(2).estimate, Some(believed(30)));
    world.check_log();
}

#[test]
fn only_a_job_that_finished_teaches_its_run_time() {
    let mut world = World::with_predictor("4", LastRun::default());
    world.submit(0, 0, &["gpus 1", "gpus 1", "gpus 1"]);
    let first = world.run(1, 0, whole(0, &[0]));
    let second = world.run(1, 1, whole(0, &[1]));
    let outcomes = vec![
        stopped(first, Outcome::Interrupted, 9, 0),
        stopped(second, Outcome::Failed, 9, 0),
        stopped(77, Outcome::Finished, 9, 0),
    ];
    world.step(10, outcomes, vec![]);
    assert_eq!(world.job(2).estimate, None);
}

#[test]
fn speeds_of_stays_become_profiles() {
    let predict = LastRun::default();
    let speeds = Arc::clone(&predict.speeds);
    let mut world = World::with_predictor("4", predict);
    world.submit(0, 0, &["gpus 1 profile 5"]);
    let lease = world.run(0, 0, whole(0, &[0]));
    world.step(20, vec![stopped(lease, Outcome::Interrupted, 4, 1)], vec![]);
    let [seen] = speeds.lock().unwrap()[..] else { panic!("one stay was seen") };
    assert_eq!((seen.key, seen.rate, seen.partner), (ProfileKey(5), Rate(250_000), None));
    assert_eq!(world.state().profile_count(), 1);
    // A start that fails on GPUs of its own says nothing of speeds.
    world.step(21, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    world.step(22, vec![start_failed(1)], vec![]);
    assert_eq!(speeds.lock().unwrap().len(), 1);
}

#[test]
fn another_predictor_looks_at_all_who_wait() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1 lasts 7", "gpus 1", "gpus 1 lasts 8"]);
    world.run(1, 0, whole(0, &[0]));
    let events = world.engine.replace_predictor(Box::new(UserEstimate));
    assert_eq!(events, [Event::Estimated { job: JobId(2), estimate: believed(8) }]);
    world.step(2, events, vec![]);
    assert!(world.engine.replace_predictor(Box::new(UserEstimate)).is_empty());
}

/// When and why a policy was asked.
type Notes = Arc<Mutex<Vec<(Time, Wake)>>>;

/// Notes why it was asked, begins rounds, and starts who waits.
struct Asked(Cadence, Notes);

impl Policy for Asked {
    fn cadence(&self) -> Cadence {
        self.0
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        self.1.lock().unwrap().push((view.now(), wake));
        if wake == Wake::Round {
            plan.begin_round();
        }
        for id in view.pending() {
            let gpu = view.leases().count() as u32 + u32::from(plan.decisions().len() > 1);
            let _ = plan.start(*id, whole(0, &[gpu]));
        }
    }
}

fn asked(cadence: Cadence) -> (World, Notes) {
    let notes = Notes::default();
    let world = World::with_policy("4", Asked(cadence, Arc::clone(&notes)));
    notes.lock().unwrap().clear();
    (world, notes)
}

#[test]
fn a_policy_is_asked_about_what_concerns_it_and_once_for_an_instant() {
    let (mut world, notes) = asked(Cadence::EveryEvent);
    world.step(1, vec![submit(0, asks("gpus 1")), submit(1, asks("gpus 1"))], vec![]);
    let done = Span::from_secs(1);
    world.step(2, vec![started(0)], vec![]);
    let progress = Event::Progress { lease: LeaseId(0), done, idle: Span::ZERO };
    world.step(3, vec![progress, Event::Checkpointed { lease: LeaseId(0), done }], vec![]);
    world.step(4, vec![], vec![]);
    world.step(5, vec![finished(0, 4)], vec![]);
    let at: Vec<(Time, Wake)> = [1, 5].map(|at| (secs(at), Wake::Event)).into();
    assert_eq!(*notes.lock().unwrap(), at);
}

#[test]
fn rounds_begin_when_they_have_lasted_their_time_and_two_jobs_are_there() {
    let (mut world, notes) = asked(Cadence::Rounds(Span::from_secs(100)));
    let wakes = || std::mem::take(&mut *notes.lock().unwrap());
    assert_eq!(world.engine.wake(), None);
    world.submit(5, 0, &["gpus 1"]);
    assert_eq!(wakes(), [(secs(5), Wake::Round)]);
    // A lone job has nobody to take turns with.
    assert_eq!(world.engine.wake(), Some(secs(5 + 1800)));
    world.step(6, vec![started(0)], vec![]);
    assert_eq!(world.engine.wake(), None);
    world.submit(50, 1, &["gpus 1"]);
    assert_eq!(wakes(), [(secs(50), Wake::Event)]);
    assert_eq!(world.engine.wake(), Some(secs(105)));
    world.step(105, vec![], vec![]);
    assert_eq!(wakes(), [(secs(105), Wake::Round)]);
    assert_eq!(world.engine.wake(), Some(secs(205)));
    world.step(150, vec![Event::RoundEnded], vec![]);
    assert_eq!(wakes(), [(secs(150), Wake::Round)]);
    world.check_log();
}

#[test]
fn a_log_folds_to_the_state_and_to_the_same_questions() {
    let (mut world, _) = asked(Cadence::EveryEvent);
    world.submit(1, 0, &["gpus 1 lasts 5", "gpus 1"]);
    world.step(2, vec![started(0), started(1)], vec![]);
    world.step(9, vec![finished(0, 5), cancel(1)], vec![]);
    world.check_log();
    let notes = Notes::default();
    let policy = Asked(Cadence::EveryEvent, Arc::clone(&notes));
    let mut engine = Engine::new(Box::new(policy), ());
    let log = world.log();
    let (last, before) = log.split_last().unwrap();
    before.iter().for_each(|record| engine.fold(record));
    assert!(notes.lock().unwrap().is_empty(), "folding asks nobody");
    // What was not answered in the log is still to be asked.
    let proposal = engine.propose();
    let Record::Output { asked, decisions, .. } = last else { panic!("decisions come last") };
    assert_eq!((proposal.asked, &proposal.decisions), (*asked, decisions));
    assert_eq!(engine.events(), world.engine.events());
}

#[test]
fn a_saved_engine_remembers_that_the_policy_is_due() {
    let (mut world, notes) = asked(Cadence::EveryEvent);
    world.engine.begin(secs(1));
    world.engine.take_fact(submit(0, asks("gpus 1")));
    assert!(world.engine.has_input());
    world.engine.end_input();
    assert!(!world.engine.has_input());
    let saved = world.engine.snapshot();
    let mut other = Engine::new(Box::new(Asked(Cadence::EveryEvent, Arc::clone(&notes))), ());
    other.restore(saved);
    assert!(other.propose().asked);
    let proposal = world.engine.propose();
    world.engine.commit(proposal);
    other.restore(world.engine.snapshot());
    assert!(!other.propose().asked);
}

#[test]
fn a_fact_changes_the_policy_where_somebody_can_build_one() {
    let notes = Notes::default();
    let kept = Arc::clone(&notes);
    let mut engine = Engine::new(Box::new(Asked(Cadence::EveryEvent, Arc::default())), ())
        .with_builder(Box::new(move |text| {
            assert_eq!(text, "kind = 'other'");
            Box::new(Asked(Cadence::EveryEvent, Arc::clone(&kept)))
        }));
    let settings: Box<str> = "kind = 'other'".into();
    engine.step(secs(1), vec![Event::PolicyChanged { settings }]).unwrap();
    assert_eq!(*notes.lock().unwrap(), [(secs(1), Wake::Event)]);
}

/// Solves whenever it is asked and has not, and gives the first job everything.
struct Solver;

impl Policy for Solver {
    fn solver(&self) -> Option<Box<dyn Solve>> {
        Some(Box::new(Solver))
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        if view.solution_is_stale() && view.solve_asked().is_none() {
            plan.solve();
        }
    }
}

impl Solve for Solver {
    fn solve(&mut self, view: &View<'_>) -> Solution {
        let target = |job| Target { team: Team::alone(job), model: ModelId(0), share: Target::ALL };
        Solution {
            targets: view.pending().iter().copied().map(target).collect(),
            ..Solution::default()
        }
    }
}

/// Facts of set times, and every decision that was carried out.
struct Tape(Vec<(Time, Vec<Event>)>, usize);

impl Executor for Tape {
    fn next(&mut self, _: Option<Time>) -> Option<(Time, Vec<Event>)> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    fn submit(&mut self, _: Time, _: &crate::decision::Decision) {
        self.1 += 1;
    }
}

#[test]
fn the_loop_answers_a_solver_at_the_instant_of_the_question() {
    let mut world = World::with_policy("4", Solver);
    let mut tape = Tape(vec![(secs(3), vec![submit(0, asks("gpus 1"))])], 0);
    run(&mut tape, &mut world.engine).unwrap();
    assert_eq!(world.state().solved_at(), Some(secs(3)));
    assert_eq!(world.state().account(Team::alone(JobId(0)), ModelId(0)).share, Target::ALL);
    assert_eq!((world.state().solve_asked(), world.state().solution_is_stale()), (None, false));
    world.check_log();
}

#[test]
fn a_question_to_a_solver_is_answered_on_the_state_of_its_step() {
    let mut world = World::with_policy("4", Solver);
    let first = world.engine.solve().unwrap().unwrap();
    world.step(0, vec![first], vec![]);
    assert_eq!(world.state().solve_asked(), None);
    world.submit(1, 0, &["gpus 1"]);
    let asked = world.state().solve_asked();
    assert_eq!(asked, Some(world.state().step()));
    let question = world.engine.question_to_solver().unwrap().unwrap();
    world.submit(2, 1, &["gpus 1"]);
    let answer = question.answer().unwrap();
    let Event::Solved { based_on, solution } = &answer else { panic!("solvers answer so") };
    assert_eq!((Some(*based_on), solution.targets.len()), (asked, 1));
    world.step(3, vec![answer], vec![]);
    assert!(world.state().solution_is_stale(), "a job came meanwhile");
}

/// A solver with a bug: it names a GPU model that there is not, or panics.
#[derive(Clone, Copy)]
enum BadSolver {
    NamesNothing,
    Panics,
    PanicsWhenMade,
}

impl Policy for BadSolver {
    fn solver(&self) -> Option<Box<dyn Solve>> {
        assert!(!matches!(self, BadSolver::PanicsWhenMade), "a bug of the policy");
        Some(Box::new(*self))
    }

    fn decide(&mut self, _: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        plan.solve();
    }
}

impl Solve for BadSolver {
    fn solve(&mut self, _: &View<'_>) -> Solution {
        assert!(!matches!(self, BadSolver::Panics), "a bug of the solver");
        let (team, model) = (Team::alone(JobId(0)), ModelId(4_000_000_000));
        let targets = vec![Target { team, model, share: 1 }];
        Solution { targets, ..Solution::default() }
    }
}

#[test]
fn a_solver_that_panics_or_answers_nonsense_is_a_violation() {
    let asked = |solver: BadSolver| {
        let mut world = World::with_policy("4", solver);
        world.submit(0, 0, &["gpus 1"]);
        let question = world.engine.question_to_solver().map(|question| question.unwrap());
        let apart = question.and_then(|question| {
            let answer = question.answer()?;
            world.engine.check_answer(&answer)
        });
        let at_once = world.engine.solve();
        world.check();
        (at_once.unwrap_err(), apart.unwrap_err())
    };
    assert_eq!(asked(BadSolver::NamesNothing), (Violation::Answer, Violation::Answer));
    assert_eq!(asked(BadSolver::Panics), (Violation::Panicked, Violation::Panicked));
    assert_eq!(asked(BadSolver::PanicsWhenMade), (Violation::Panicked, Violation::Panicked));
}

#[test]
fn what_one_policy_asked_its_solver_is_not_asked_of_the_next() {
    let mut world = World::with_policy("4", Solver);
    world.submit(0, 0, &["gpus 1"]);
    assert!(world.state().solve_asked().is_some());
    world.engine.begin(secs(1));
    world.engine.take_fact(Event::PolicyChanged { settings: "kind = 'other'".into() });
    assert_eq!(world.state().solve_asked(), None);
}
