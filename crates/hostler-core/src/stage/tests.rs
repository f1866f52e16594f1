//! Room for all roles of a job, and what is said where there is none.

use super::{Room, Shortfall, may_fit, no_capacity, place_job};
use crate::reason::Reason;
use crate::testkit::*;

#[test]
fn roles_are_placed_beside_each_other_and_on_trial_only() {
    let mut free = World::of("2 | 2").state().capacity().clone();
    let before = free.clone();
    let placement = place_job(&FirstFit, &mut free, &asks("gpus 2 + gpus 2")).unwrap();
    let nodes: Vec<u32> = placement.parts.iter().map(|part| part.node.0).collect();
    assert_eq!((nodes, placement.tasks_of(1), placement.node_count()), (vec![0, 1], 1, 2));
    let short = place_job(&FirstFit, &mut free, &asks("gpus 2 + gpus 1 tasks 3"));
    assert_eq!(short, Err(Shortfall { fit: 1 + 2 }));
    assert!(*free.free() == before);
}

#[test]
fn a_bound_tells_how_many_tasks_would_fit_at_most() {
    let mut free = World::of("2 | 2").state().capacity().clone();
    assert!(may_fit(&free, &asks("gpus 1 tasks 4")));
    assert!(!may_fit(&free, &asks("gpus 1 tasks 5")));
    assert!(!may_fit(&free, &asks("tasks 1 + gpus 1 tasks 5")));
    free.book(&whole(0, &[0, 1])).unwrap();
    let reason = |text| no_capacity(&free, &asks(text));
    assert_eq!(reason("gpus 1 tasks 3"), Reason::NoCapacity { tasks: 3, fit: 2 });
    // It does not fit, whatever the bound says.
    assert_eq!(reason("gpus 1 tasks 2"), Reason::NoCapacity { tasks: 2, fit: 1 });
    assert_eq!(reason("gpus 2 + gpus 2 tasks 2"), Reason::NoCapacity { tasks: 3, fit: 1 });
}
