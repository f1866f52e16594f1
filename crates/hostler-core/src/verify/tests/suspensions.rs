//! Suspending jobs and letting them go on, within the rules.

use super::{fine, refused, start};
use crate::decision::{Decision, StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::id::{Features, JobId, LeaseId, NodeId};
use crate::suspend::SuspendCost;
use crate::testkit::*;
use crate::units::Mib;
use crate::verify::Violation;

fn suspend(lease: u32) -> Decision {
    Decision::Stop { lease: LeaseId(lease), how: StopHow::Suspend, why: StopWhy::Preempted }
}

/// A node with three GPUs of 1000 MiB and so much memory: jobs 0 and 1 run on the first two.
fn world(mem: u32) -> World {
    let mut world = World::of(&format!("3 mem {mem}"));
    let features = Features::SUSPENDS;
    world.step(0, vec![Event::FeaturesChanged { node: NodeId(0), features }], vec![]);
    world.set_abilities(0, |abilities| abilities.suspend = Some(SuspendCost::default()));
    let asks = ["gpus 1 saves never", "gpus 1 saves never", "gpus 1 mem 700", "cores 0 mem 900"];
    world.submit(0, 0, &asks);
    world.run(1, 0, whole(0, &[0]));
    world.run(1, 1, whole(0, &[1]));
    world
}

#[test]
fn memory_is_there_for_all_that_are_suspended_together_and_for_those_that_start() {
    fine(&world(2000), &[suspend(0), suspend(1)]);
    refused(&world(1999), &[suspend(0), suspend(1)], Violation::NodeFull(NodeId(0)));
    let with_mem = |mem: u32| {
        let mut placement = whole(0, &[2]);
        placement.parts[0].mem = Mib(mem);
        placement
    };
    fine(&world(1700), &[suspend(0), start(2, 2, with_mem(700))]);
    let both = [suspend(0), start(2, 2, with_mem(700))];
    refused(&world(1699), &both, Violation::NodeFull(NodeId(0)));
}

#[test]
fn nobody_is_suspended_where_that_cannot_be_done() {
    let mut unable = world(2000);
    unable.set_abilities(2, |abilities| abilities.suspend = None);
    refused(&unable, &[suspend(0)], Violation::Unable("suspend a job"));
    let mut elsewhere = world(2000);
    let features = Features::default();
    elsewhere.step(2, vec![Event::FeaturesChanged { node: NodeId(0), features }], vec![]);
    refused(&elsewhere, &[suspend(0)], Violation::Unable("suspend a job"));
    refused(&world(2000), &[suspend(7)], Violation::NoLease(LeaseId(7)));
    refused(&world(2000), &[suspend(0), suspend(0)], Violation::Twice(JobId(0)));
}

#[test]
fn a_stop_that_was_asked_for_is_no_suspension_any_more() {
    let mut world = world(2000);
    world.set_abilities(2, |abilities| abilities.lost_work_max = Some(crate::units::Span::MAX));
    let kill = Act::new(|_, plan| plan.stop(LeaseId(0), StopHow::Kill).unwrap());
    world.step(400, vec![], vec![kill]);
    refused(&world, &[suspend(0)], Violation::Unable("suspend a job"));
}

#[test]
fn a_suspended_job_goes_on_where_it_was_and_nowhere_else() {
    let mut world = world(2000);
    let act = Act::new(|_, plan| plan.stop(LeaseId(0), StopHow::Suspend).unwrap());
    world.step(2, vec![], vec![act]);
    fine(&world, &[suspend(0)]);
    world.step(3, vec![stopped(0, Outcome::Suspended, 1, 0)], vec![]);
    fine(&world, &[start(2, 0, whole(0, &[0]))]);
    refused(&world, &[start(2, 0, whole(0, &[2]))], Violation::Elsewhere(JobId(0)));
}

#[test]
fn who_goes_on_leaves_the_memory_that_it_took_for_the_next_question() {
    let mut world = world(2000);
    let act = Act::new(|_, plan| plan.stop(LeaseId(0), StopHow::Suspend).unwrap());
    world.step(2, vec![], vec![act]);
    world.step(3, vec![stopped(0, Outcome::Suspended, 1, 0)], vec![]);
    let mut beside = cpu(0, 1);
    (beside.parts[0].cpu, beside.parts[0].mem) = (crate::units::Milli::ZERO, Mib(900));
    fine(&world, &[start(2, 3, beside.clone())]);
    let with_other = [suspend(1), start(2, 3, beside.clone())];
    refused(&world, &with_other, Violation::NodeFull(NodeId(0)));
    let at_once = [start(2, 0, whole(0, &[0])), suspend(1), start(3, 3, beside.clone())];
    refused(&world, &at_once, Violation::NodeFull(NodeId(0)));
    world.step(4, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    fine(&world, &[suspend(1), start(3, 3, beside)]);
}
