//! The bound rises with what is given back, and never says no where a search would find room.

use super::FitBound;
use crate::capacity::{Capacity, Overlay};
use crate::placement::Placement;
use crate::random::Random;
use crate::stage::{Shortfall, place_job};
use crate::testkit::*;

/// A full cluster and those who fill it.
fn full(cluster: &str) -> (Capacity, Vec<Placement>) {
    let world = World::of(cluster);
    let mut free = world.state().capacity().clone();
    let mut held = Vec::new();
    while let Ok(placement) = place_job(&FirstFit, &mut free, &asks("gpus 1")) {
        free.book(&placement).unwrap();
        held.push(placement);
    }
    (free, held)
}

fn shortfall(free: &mut Capacity, job: &str) -> Shortfall {
    place_job(&FirstFit, free, &asks(job)).expect_err("the cluster is full")
}

#[test]
fn a_job_is_lost_until_as_many_tasks_fit_as_it_has() {
    let (mut free, held) = full("2 | 2");
    let spec = asks("gpus 1 tasks 3");
    let mut bound = FitBound::new(&spec, shortfall(&mut free, "gpus 1 tasks 3"));
    for (at, placement) in held.iter().take(3).enumerate() {
        assert!(bound.is_lost(), "after {at} were given back");
        bound.release(&mut free, placement);
    }
    assert!(!bound.is_lost() && bound.is_worth_a_search(&free));
}

#[test]
fn what_is_only_counted_as_given_back_raises_the_bound_as_much() {
    let (mut free, held) = full("2 | 2");
    let spec = asks("gpus 1 tasks 3");
    let short = shortfall(&mut free, "gpus 1 tasks 3");
    let mut bound = FitBound::new(&spec, short);
    let mut without = Overlay::default();
    for (at, placement) in held.iter().take(3).enumerate() {
        assert!(bound.is_lost(), "after {at} were counted");
        bound.release_beside(&free, &mut without, placement);
    }
    assert!(!bound.is_lost());
    assert_eq!(shortfall(&mut free, "gpus 1 tasks 3"), short, "nothing is free");
}

#[test]
fn tasks_that_stay_on_one_node_count_by_node() {
    let (mut free, held) = full("2 | 2");
    let spec = asks("gpus 1 tasks 2 near node");
    let mut bound = FitBound::new(&spec, shortfall(&mut free, "gpus 1 tasks 2 near node"));
    bound.release(&mut free, &held[0]);
    bound.release(&mut free, &held[2]);
    assert!(bound.is_lost());
    bound.release(&mut free, &held[1]);
    assert!(!bound.is_lost());
}

#[test]
fn only_what_suits_the_job_concerns_it() {
    let (free, held) = full("1 | 1 model 1");
    let spec = asks("gpus 1 on 1");
    let bound = FitBound::new(&spec, Shortfall { fit: 0 });
    assert!(!bound.concerns(&free, &held[0]) && bound.concerns(&free, &held[1]));
    let roles = asks("gpus 1 on 1 + gpus 1 on 0");
    let bound = FitBound::new(&roles, Shortfall { fit: 0 });
    assert!(bound.concerns(&free, &held[0]) && !bound.is_lost());
}

#[test]
fn the_bound_is_never_too_low() {
    let jobs = [
        "gpus 1 tasks 3",
        "gpus 2 tasks 2",
        "gpus 1 tasks 2 near node",
        "gpus 1 tasks 2 near apart",
        "gpu 400 tasks 5",
        "gpus 1 + gpus 2",
    ];
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let job = jobs[seed as usize % jobs.len()];
        let (mut free, mut held) = full("3 | 2 | 2");
        let spec = asks(job);
        let mut bound = FitBound::new(&spec, shortfall(&mut free, job));
        while !held.is_empty() {
            let at = (random.bits() % held.len() as u64) as usize;
            bound.release(&mut free, &held.swap_remove(at));
            let fits = place_job(&FirstFit, &mut free, &spec).is_ok();
            assert!(!fits || bound.is_worth_a_search(&free), "{job} fits and is called lost");
        }
    }
}
