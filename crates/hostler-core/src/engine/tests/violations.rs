//! Policies that break rules or panic: the answer says so, nothing changes, and others go on.

use crate::capacity::Refusal;
use crate::cluster::Layout;
use crate::decision::{StopHow, StopWhy};
use crate::engine::{Engine, Proposal};
use crate::event::Event;
use crate::id::{DeviceId, JobId, LeaseId, ModelId, NodeId};
use crate::limits::STEPS_PER_INSTANT_MAX;
use crate::placement::Placement;
use crate::plan::{Plan, PlanError};
use crate::policy::{Policy, Wake};
use crate::reason::Reason;
use crate::target::{Team, Turn};
use crate::testkit::*;
use crate::units::{Milli, Span, Time};
use crate::verify::Violation;
use crate::view::View;

fn with_cores(mut placement: Placement, cores: u32) -> Placement {
    placement.parts[0].cpu = Milli(cores * 1000);
    placement
}

/// Jobs 0 and 1 run; jobs 2 to 5 wait; one device is divided. Job 1 was cancelled just now, so that
/// housekeeping has something to say.
fn busy() -> World {
    let mut world = World::of("4 | 4 | 1");
    let jobs = ["gpus 1 cores 60", "gpus 1", "gpus 1", "gpus 1 cores 60"];
    world.submit(0, 0, &jobs);
    world.submit(0, 4, &["gpus 1 tasks 2 near node", "gpus 1 tasks 2 near apart", "gpu 500"]);
    world.run(1, 0, with_cores(whole(0, &[0]), 60));
    world.run(1, 1, whole(1, &[4]));
    let cut =
        |_: &View<'_>, plan: &mut Plan<'_>| plan.repartition(DeviceId(8), Layout::Mig).unwrap();
    world.step(2, vec![], vec![Act::new(cut)]);
    world.engine.begin(secs(5));
    world.engine.take_fact(cancel(1));
    world.engine.end_input();
    world
}

type Deed = fn(&View<'_>, &mut Plan<'_>);

/// What the engine makes of a policy that does this, on a state that it leaves alone.
fn proposal(world: &mut World, deed: Deed) -> Proposal {
    let before = world.state().clone();
    world.script(vec![Act::new(deed)]);
    let proposal = world.engine.propose();
    assert!(*world.state() == before, "a question changed the state");
    world.check();
    proposal
}

/// The policy is refused, housekeeping is heard, and the next policy finds all as it was.
fn breaks(violation: Violation, deed: Deed) {
    let mut world = busy();
    let answer = proposal(&mut world, deed);
    assert_eq!(answer.violation, Some(violation));
    assert!(answer.asked, "the policy was asked");
    assert_eq!(decided(&answer.decisions), "stop lease1: Kill, Cancelled\n");
    let step = world.engine.step(secs(6), vec![Event::RoundEnded]);
    assert_eq!(
        step.map(|decisions| decided(&decisions)),
        Ok("stop lease1: Kill, Cancelled\n".into())
    );
    world.step(7, vec![], vec![Act::Start(2, whole(0, &[1]))]);
    assert_eq!(world.job(2).lease(), Some(LeaseId(2)));
    world.check_log();
}

fn start(plan: &mut Plan<'_>, job: u32, placement: Placement) {
    plan.start(JobId(job), placement).unwrap();
}

#[test]
fn what_a_plan_takes_and_verify_does_not_is_refused() {
    breaks(Violation::TooMany(1001), |_, plan| (0..1000).for_each(|_| plan.solve()));
    breaks(Violation::NotWaiting(JobId(0)), |_, plan| plan.hold(JobId(0), Reason::New));
    breaks(Violation::NotWhole(JobId(2)), |_, plan| start(plan, 2, Placement::default()));
    breaks(Violation::Mismatch(JobId(2), NodeId(0)), |_, plan| start(plan, 2, whole(0, &[1, 2])));
    breaks(Violation::Apart(JobId(4)), |_, plan| {
        start(plan, 4, together([tasks(0, 1, &[1]), tasks(1, 1, &[5])]));
    });
    breaks(Violation::Together(JobId(5)), |_, plan| start(plan, 5, tasks(0, 2, &[1, 2])));
    breaks(Violation::EndsBefore(JobId(2)), |view, plan| {
        plan.start_until(JobId(2), whole(0, &[1]), Some(view.now())).unwrap();
    });
    breaks(Violation::Passing(JobId(2)), |_, plan| {
        plan.turn_away(JobId(2), Reason::Preempted).unwrap();
    });
    breaks(Violation::Twice(JobId(1)), |_, plan| plan.hold(JobId(1), Reason::New));
}

#[test]
fn turns_without_a_round_or_a_model_are_refused() {
    fn turns(plan: &mut Plan<'_>, job: u32, model: u32) {
        plan.take_turns(vec![Turn { team: Team::alone(JobId(job)), model: ModelId(model) }]);
    }
    breaks(Violation::NoRound, |_, plan| turns(plan, 2, 0));
    breaks(Violation::NoModel(ModelId(7)), |_, plan| {
        plan.begin_round();
        turns(plan, 2, 7);
    });
    breaks(Violation::NotWaiting(JobId(70)), |_, plan| {
        plan.begin_round();
        turns(plan, 70, 0);
    });
}

#[test]
fn what_is_only_free_on_trial_is_not_given_away() {
    breaks(Violation::DeviceFull(DeviceId(0)), |_, plan| {
        plan.lift(LeaseId(0)).unwrap();
        start(plan, 2, whole(0, &[0]));
    });
    breaks(Violation::NodeFull(NodeId(0)), |_, plan| {
        plan.lift(LeaseId(0)).unwrap();
        start(plan, 3, with_cores(whole(0, &[1]), 60));
    });
}

#[test]
fn who_cannot_be_saved_is_not_stopped_for_others() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpus 1 saves never", "gpus 1"]);
    let lease = LeaseId(world.run(1, 0, whole(0, &[0])));
    let refused = move |_: &View<'_>, plan: &mut Plan<'_>| {
        assert_eq!(plan.stop(lease, StopHow::Kill), Err(PlanError::Kept(lease)));
        plan.stop_because(lease, StopHow::Kill, StopWhy::Preempted).unwrap();
    };
    world.script(vec![Act::new(refused)]);
    let step = world.engine.step(secs(2), vec![Event::RoundEnded]);
    assert_eq!(step, Err(Violation::Kept(JobId(0))));
    // People end it all the same.
    let said = world.told(3, vec![cancel(0)]);
    assert_eq!(said, "stop lease0: Kill, Cancelled\n");
}

#[test]
fn what_is_not_free_in_the_order_of_the_decisions_is_refused() {
    breaks(Violation::Taken(Refusal::Device(DeviceId(0))), |_, plan| {
        plan.lift(LeaseId(0)).unwrap();
        start(plan, 2, whole(0, &[0]));
        plan.undo_to(0);
        plan.resize(LeaseId(0), with_cores(whole(0, &[1]), 60)).unwrap();
    });
}

#[test]
fn a_part_of_a_device_is_refused_where_the_executor_cannot_give_one() {
    let mut world = busy();
    world.set_abilities(5, |abilities| abilities.shares = false);
    world.engine.step(secs(6), vec![Event::RoundEnded]).unwrap();
    world.engine.begin(secs(6));
    world.engine.take_fact(Event::RoundEnded);
    world.engine.end_input();
    let answer = proposal(&mut world, |_, plan| start(plan, 6, fraction(0, 1, 500)));
    assert_eq!(answer.violation, Some(Violation::Unable("give a job a part of a device")));
}

#[test]
fn a_policy_that_panics_is_dropped_and_leaves_the_state_whole() {
    breaks(Violation::Panicked, |_, _| panic!("a bug of the policy"));
    breaks(Violation::Panicked, |_, plan| {
        plan.lift(LeaseId(0)).unwrap();
        plan.claim(whole(0, &[0, 1, 2, 3])).unwrap();
        start(plan, 2, whole(1, &[5]));
        plan.set_power(NodeId(2), crate::cluster::Power::Sleeping).unwrap();
        panic!("a bug in the middle of trial moves");
    });
    breaks(Violation::Panicked, |_, plan| {
        // Giving back twice is found by the book itself, half way through.
        plan.lift(LeaseId(0)).unwrap();
        plan.lift(LeaseId(0)).unwrap();
    });
    breaks(Violation::Panicked, |_, plan| {
        plan.repartition(DeviceId(8), Layout::Shared).unwrap();
        start(plan, 2, whole(2, &[8]));
    });
}

#[test]
fn a_step_with_a_policy_that_breaks_a_rule_decides_nothing() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    world.script(vec![Act::new(|_, plan| start(plan, 0, whole(0, &[0, 1])))]);
    let step = world.engine.step(secs(1), vec![Event::RoundEnded]);
    assert_eq!(step, Err(Violation::Mismatch(JobId(0), NodeId(0))));
    assert_eq!(world.job(0).lease(), None);
    world.check();
    // Nobody answered the question: it is asked again.
    world.script(vec![Act::Start(0, whole(0, &[0]))]);
    assert_eq!(world.engine.step(secs(1), vec![]).map(|decisions| decisions.len()), Ok(1));
    world.check();
}

#[test]
fn questions_without_end_at_one_instant_are_a_violation() {
    let mut world = World::of("2");
    world.step(3, vec![], vec![]);
    world.engine.steps_at_instant = STEPS_PER_INSTANT_MAX - 2;
    assert_eq!(world.engine.step(secs(3), vec![]), Ok(vec![]));
    let still = Err(Violation::StandsStill(STEPS_PER_INSTANT_MAX));
    assert_eq!(world.engine.step(secs(3), vec![]), still);
    // A clock that goes back does not move time on; one that goes on does.
    assert_eq!(world.engine.step(secs(2), vec![]), still);
    assert_eq!(world.engine.step(Time(secs(3).0 + 1), vec![]), Ok(vec![]));
    assert_eq!(world.engine.steps_at_instant, 0);
}

/// Wakes itself as soon as it can, for ever.
struct Restless;

impl Policy for Restless {
    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        plan.wake_at(view.now());
    }
}

#[test]
fn a_policy_that_wants_to_be_asked_at_once_is_asked_a_moment_later() {
    let mut engine = Engine::new(Box::new(Restless), ());
    engine.step(secs(1), vec![Event::RoundEnded]).unwrap();
    assert_eq!(engine.wake(), Some(secs(1) + Span(1)));
}

#[test]
fn where_nobody_decides_nobody_is_asked_until_a_person_says_who() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1 limit 10", "gpus 1"]);
    world.run(1, 0, whole(0, &[0]));
    world.script(vec![Act::new(|_, _| panic!("it was asked"))]);
    let broke = Event::PolicyBroke { fault: "it lied".into(), fallback: None };
    world.engine.step(secs(2), vec![broke]).unwrap();
    // A restart finds it so.
    let saved = world.engine.snapshot();
    world.engine.restore(saved);
    world.engine.step(secs(2), vec![Event::RoundEnded]).unwrap();
    let said = world.engine.step(secs(11), vec![]).unwrap();
    assert_eq!(decided(&said), "stop lease0: Kill, TimeLimit\n");
    assert_eq!(&*world.state().policy_fault().unwrap().fault, "it lied");
    world.engine.replace_policy(Box::new(Restless));
    let set = Event::PolicyChanged { settings: "kind = 'restless'".into() };
    assert_eq!(world.engine.step(secs(12), vec![set]).unwrap().len(), 1, "it is asked again");
    assert_eq!(world.state().policy_fault(), None);
}
