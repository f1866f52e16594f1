//! What can never run on a cluster, and why.

use super::EmptyCluster;
use crate::event::Event;
use crate::id::{Features, ModelId, NodeId};
use crate::reason::Reason;
use crate::testkit::*;
use crate::units::Milli;
use crate::view::View;

/// What the empty cluster objects to a job.
fn objection(world: &World, job: &str) -> Option<String> {
    let mut empty = EmptyCluster::default();
    let view = View::new(world.state());
    empty.refresh(&view);
    empty.objection(&view, &asks(job), &FirstFit).map(|reason| reason.to_string())
}

fn fits(world: &World, jobs: &[&str]) {
    for job in jobs {
        assert_eq!(objection(world, job), None, "{job}");
    }
}

fn too_large(tasks: u32, fit: u32) -> Option<String> {
    Some(format!("{fit} of its {tasks} tasks would fit the empty cluster"))
}

#[test]
fn jobs_that_fit_the_empty_cluster_are_let_in_however_full_it_is() {
    let mut world = World::of("4 | 4");
    world.submit(0, 0, &["gpus 4"]);
    world.run(0, 0, whole(0, &[0, 1, 2, 3]));
    world.step(1, vec![node_down(1)], vec![]);
    fits(&world, &["gpus 1 tasks 8", "gpus 4 tasks 2", "gpu 300 tasks 24", "tasks 200"]);
    assert_eq!(objection(&world, "gpus 1 tasks 9"), too_large(9, 8));
    assert_eq!(objection(&world, "gpu 300 tasks 25"), too_large(25, 24));
    assert_eq!(objection(&world, "gpu 100 gpu-mem 600 tasks 9"), too_large(9, 8));
}

#[test]
fn what_no_node_has_is_told_apart() {
    let world = World::of("4 cores 8 | 2 model 1 mem 50 | 0 cores 3");
    let small = |gpu: &str| {
        Some(format!("no node that it accepts has {gpu} GPUs and the CPU and memory it asks"))
    };
    assert_eq!(objection(&world, "gpus 5"), small("5"));
    assert_eq!(objection(&world, "gpus 1 cores 101"), small("1"));
    assert_eq!(objection(&world, "gpus 1 gpu-mem 2001"), small("1"));
    assert_eq!(objection(&world, "gpus 2 on 1 mem 51"), small("2"));
    fits(&world, &["gpus 1 gpu-mem 2000", "gpus 2 on 1 mem 50", "cores 8 on 0", "cores 100 on 1"]);
    let world = World::of("4");
    let model = Some("no node has a GPU model that it accepts".to_owned());
    assert_eq!(objection(&world, "gpus 1 on 1"), model);
    assert_eq!(objection(&world, "tasks 1 on 1"), model);
}

#[test]
fn closeness_counts() {
    let world = World::of("8 island 4 | 8 island 4 | 8 rack 1");
    fits(
        &world,
        &["gpus 1 tasks 16 near rack", "gpus 1 tasks 8 near node", "gpus 1 tasks 8 near island"],
    );
    assert_eq!(objection(&world, "gpus 1 tasks 17 near rack"), too_large(17, 16));
    assert_eq!(objection(&world, "gpus 1 tasks 9 near node"), too_large(9, 8));
    assert_eq!(objection(&world, "gpus 1 tasks 4 near apart"), too_large(4, 3));
    let islands = World::of("8 island 4");
    assert_eq!(objection(&islands, "gpus 1 tasks 5 near island"), too_large(5, 4));
}

#[test]
fn several_roles_fit_together_or_not_at_all() {
    let world = World::of("2 cores 4 | 2 cores 4");
    fits(&world, &["gpus 2 + gpus 2", "gpus 1 cores 2 + cores 2 tasks 3"]);
    assert_eq!(objection(&world, "gpus 2 tasks 2 + gpus 1"), too_large(3, 2));
}

#[test]
fn nodes_that_join_count_and_those_that_retire_do_not() {
    let mut world = World::of("2");
    let mut empty = EmptyCluster::default();
    let mut objects = |world: &World, job: &str| {
        let view = View::new(world.state());
        empty.refresh(&view);
        empty.objection(&view, &asks(job), &FirstFit).is_some()
    };
    assert!(objects(&world, "gpus 3") && objects(&world, "gpus 2 + gpus 1"));
    world.step(1, vec![node_up(1, 4)], vec![]);
    assert!(!objects(&world, "gpus 3") && !objects(&world, "gpus 2 + gpus 4"));
    world.step(2, vec![Event::NodeRetired { node: NodeId(0) }], vec![]);
    assert!(!objects(&world, "gpus 3") && objects(&world, "gpus 2 + gpus 4"));
    world.step(3, vec![Event::NodeRetired { node: NodeId(1) }], vec![]);
    assert!(objects(&world, "gpus 1"));
}

#[test]
fn what_no_node_can_do_is_told_and_may_change() {
    let mut world = World::of("2 features 1 | 4");
    let mut empty = EmptyCluster::default();
    let mut objection = |world: &World, job: &str| {
        let view = View::new(world.state());
        empty.refresh(&view);
        empty.objection(&view, &asks(job), &FirstFit)
    };
    assert_eq!(objection(&world, "gpus 2 needs 1"), None);
    let gpu = Milli(3000);
    assert_eq!(objection(&world, "gpus 3 needs 1"), Some(Reason::NodeTooSmall { gpu }));
    assert_eq!(objection(&world, "gpus 1 needs 3"), Some(Reason::NoSuchFeature));
    let features = Features(3);
    world.step(1, vec![Event::FeaturesChanged { node: NodeId(1), features }], vec![]);
    assert_eq!(objection(&world, "gpus 3 needs 1"), None);
    assert_eq!(objection(&world, "gpus 1 needs 3"), None);
}

#[test]
fn slots_are_counted_by_model() {
    let world = World::of("4 | 4 rack 1 | 2 model 1 | 0 cores 3");
    let mut empty = EmptyCluster::default();
    let view = View::new(world.state());
    empty.refresh(&view);
    let slots = |job: &str, model| empty.slots_on(&view, &asks(job).gangs[0].demand, model);
    assert_eq!(slots("gpus 2", Some(ModelId(0))), 4);
    assert_eq!(slots("gpus 2", Some(ModelId(1))), 1);
    assert_eq!(slots("gpus 2 on 0", Some(ModelId(1))), 0);
    assert_eq!((slots("gpus 2", None), slots("cores 1", None)), (0, 3));
    assert_eq!(slots("gpus 1 near node", Some(ModelId(0))), 4);
    assert!(empty.holds(&view, &asks("gpus 2").gangs[0].demand, 5));
    assert!(!empty.holds(&view, &asks("gpus 2").gangs[0].demand, 6));
}
