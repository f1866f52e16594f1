//! Bookings, refusals, and where tasks of a node go.

mod model;
mod walk;

use super::{Capacity, Refusal, Walk};
use crate::cluster::{Layout, Share};
use crate::id::{DeviceId, NodeId};
use crate::job::Demand;
use crate::placement::Placement;
use crate::testkit::*;
use crate::units::{Mib, Milli};

pub(super) fn of(cluster: &str) -> Capacity {
    World::of(cluster).state().capacity().clone()
}

fn demand(text: &str) -> Demand {
    asks(text).gangs[0].demand.clone()
}

/// Devices that so many tasks would get on a node.
fn devices(free: &Capacity, text: &str, tasks: u32) -> Option<Vec<u32>> {
    let part = free.fit(NodeId(0), 0, &demand(text), tasks)?;
    Some(part.slices.iter().map(|slice| slice.device.0).collect())
}

#[test]
fn what_is_taken_is_refused_and_nothing_is_booked_by_halves() {
    let mut free = of("2 cores 4 mem 10 | 2");
    let before = free.clone();
    let mut wide = whole(0, &[0]);
    wide.parts[0].cpu = Milli(5000);
    assert_eq!(free.book(&wide), Err(Refusal::Cpu(NodeId(0))));
    wide.parts[0].cpu = Milli(4000);
    wide.parts[0].mem = Mib(11);
    assert_eq!(free.book(&wide), Err(Refusal::Mem(NodeId(0))));
    wide.parts[0].mem = Mib(10);
    assert_eq!(free.book(&wide), Ok(()));
    assert_eq!((free.node(NodeId(0)).cpu, free.node(NodeId(0)).mem), (Milli(0), Mib(0)));
    free.release(&wide);
    assert!(free == before);
    // Its second device is in the other node; its second part is taken.
    let elsewhere = whole(0, &[0, 2]);
    assert_eq!(free.book(&elsewhere), Err(Refusal::Device(DeviceId(2))));
    free.book(&whole(1, &[2])).unwrap();
    let kept = free.clone();
    let both = together([whole(0, &[0, 1]), whole(1, &[2])]);
    assert_eq!(free.book(&both), Err(Refusal::Device(DeviceId(2))));
    assert_eq!(free.keep(&both), Err(Refusal::Device(DeviceId(2))));
    assert!(free == kept);
}

#[test]
fn a_device_is_shared_by_parts_until_its_compute_or_memory_is_gone() {
    let mut free = of("1");
    let before = free.clone();
    let part = |compute, mem| {
        shared(0, 1, [(0, Share::Fraction { compute: Milli(compute), mem: Mib(mem) })])
    };
    free.book(&part(600, 100)).unwrap();
    assert_eq!(free.book(&part(401, 1)), Err(Refusal::Device(DeviceId(0))));
    assert_eq!(free.book(&part(1, 901)), Err(Refusal::Device(DeviceId(0))));
    assert_eq!(free.book(&whole(0, &[0])), Err(Refusal::Device(DeviceId(0))));
    assert_eq!(free.gpu_rest(NodeId(0)), Milli(400));
    free.book(&part(400, 900)).unwrap();
    assert_eq!((free.gpu_free(NodeId(0)), free.largest_gpu(NodeId(0))), (Milli(0), Milli(0)));
    free.release(&part(400, 900));
    free.release(&part(600, 100));
    assert!(free == before);
}

#[test]
fn hardware_slices_do_not_overlap_and_need_a_divided_device() {
    let mut free = of("2");
    let mig = |start, slices| shared(0, 1, [(0, Share::Mig { start, slices, mem: Mib(100) })]);
    assert_eq!(free.book(&mig(0, 1)), Err(Refusal::Device(DeviceId(0))));
    free.set_layout(NodeId(0), DeviceId(0), Layout::Mig);
    assert_eq!(free.layout(DeviceId(0)), Layout::Mig);
    assert_eq!(free.node(NodeId(0)).whole, 1);
    assert_eq!(devices(&free, "gpus 1", 1), Some(vec![1]));
    free.book(&mig(0, 2)).unwrap();
    assert_eq!(free.book(&mig(1, 1)), Err(Refusal::Device(DeviceId(0))));
    free.book(&mig(2, 2)).unwrap();
    assert_eq!(free.book(&fraction(0, 0, 1)), Err(Refusal::Device(DeviceId(0))));
    assert_eq!(free.gpu_free(NodeId(0)), Milli(1000));
    free.release(&mig(0, 2));
    free.book(&mig(1, 1)).unwrap();
}

#[test]
fn a_node_that_takes_no_jobs_keeps_those_that_it_has() {
    let mut free = of("2");
    free.book(&whole(0, &[0])).unwrap();
    free.set_usable(NodeId(0), false);
    assert_eq!(free.book(&whole(0, &[1])), Err(Refusal::Unusable(NodeId(0))));
    assert_eq!(free.slots(NodeId(0), &demand("gpus 1"), 9), 0);
    assert_eq!(free.largest_gpu(NodeId(0)), Milli(0));
    assert!(!free.suits(NodeId(0), &demand("gpus 1")));
    free.release(&whole(0, &[0]));
    free.book_again(&whole(0, &[0]));
    assert!(!free.node(NodeId(0)).usable);
    free.set_usable(NodeId(0), true);
    assert_eq!(free.slots(NodeId(0), &demand("gpus 1"), 9), 1);
}

#[test]
fn slots_are_bounded_by_whatever_runs_out_first() {
    let free = of("4 cores 6 mem 100 | 4 model 1 | 0");
    let slots = |node, text| free.slots(NodeId(node), &demand(text), 100);
    assert_eq!(slots(0, "gpus 1"), 4);
    assert_eq!(slots(0, "gpus 3"), 1);
    assert_eq!(slots(0, "gpus 1 cores 2"), 3);
    assert_eq!(slots(0, "gpus 1 mem 60"), 1);
    assert_eq!(slots(0, "gpu 300"), 6);
    assert_eq!(slots(0, "gpu 300 cores 0"), 12);
    assert_eq!(slots(0, "gpu 100 cores 0 gpu-mem 600"), 4);
    assert_eq!(slots(0, "gpus 1 near apart"), 1);
    assert_eq!(slots(0, "gpus 1 on 1"), 0);
    assert_eq!(slots(1, "gpus 1 on 1"), 4);
    assert_eq!(slots(0, "gpus 1 gpu-mem 1500"), 0);
    assert_eq!(slots(1, "gpus 1 gpu-mem 1500"), 4);
    assert_eq!(slots(2, "gpus 1"), 0);
    assert_eq!(slots(2, "tasks 1"), 100);
    assert_eq!(slots(2, "on 0"), 0);
    assert_eq!(free.slots(NodeId(0), &demand("gpus 1"), 2), 2);
    assert_eq!(free.fit(NodeId(0), 0, &demand("gpus 1"), 5), None);
    assert_eq!(free.fit(NodeId(0), 0, &demand("gpus 1"), 0), None);
}

#[test]
fn devices_of_a_task_are_in_one_island_where_that_is_possible() {
    let mut free = of("8 island 4");
    assert_eq!(devices(&free, "gpus 2", 2), Some(vec![0, 1, 2, 3]));
    free.book(&whole(0, &[0])).unwrap();
    // Four go where four are; three fill the island that was begun.
    assert_eq!(devices(&free, "gpus 4", 1), Some(vec![4, 5, 6, 7]));
    assert_eq!(devices(&free, "gpus 3", 1), Some(vec![1, 2, 3]));
    assert_eq!(devices(&free, "gpus 5", 1), Some(vec![4, 5, 6, 7, 1]));
    let slots = |text| free.slots(NodeId(0), &demand(text), 9);
    assert_eq!((slots("gpus 2"), slots("gpus 2 near island")), (3, 2));
    assert_eq!(devices(&free, "gpus 1 near island", 3), Some(vec![1, 2, 3]));
    assert_eq!(devices(&free, "gpus 1 near island", 4), Some(vec![4, 5, 6, 7]));
    assert_eq!(devices(&free, "gpus 1 near island", 5), None);
    assert_eq!(devices(&free, "gpu 500 near island", 8), Some(vec![4, 4, 5, 5, 6, 6, 7, 7]));
}

#[test]
fn parts_go_to_the_device_that_has_the_least_left() {
    let mut free = of("3");
    free.book(&fraction(0, 1, 300)).unwrap();
    free.book(&fraction(0, 2, 600)).unwrap();
    assert_eq!(devices(&free, "gpu 400", 1), Some(vec![2]));
    assert_eq!(devices(&free, "gpu 500", 1), Some(vec![1]));
    assert_eq!(devices(&free, "gpu 800", 1), Some(vec![0]));
    assert_eq!(devices(&free, "gpu 350", 4), Some(vec![2, 1, 1, 0]));
    let packed = Demand { packed_from: Milli(800), ..demand("gpu 100") };
    // Its memory is that of the request.
    assert_eq!(free.slots(NodeId(0), &packed, 9), 1);
    let part = free.fit(NodeId(0), 0, &packed, 1).unwrap();
    let share = Share::Packed { compute: Milli(100), mem: Mib(800) };
    assert_eq!((part.slices[0].device.0, part.slices[0].share), (0, share));
}

#[test]
fn shares_of_a_node_that_are_booked_are_told_where_it_has_any() {
    let mut free = of("2 cores 4 mem 10 | 0");
    free.book(&whole(0, &[1])).unwrap();
    assert_eq!(free.booked_shares(NodeId(0)), [Some(0.5), Some(0.25), Some(0.0)]);
    assert_eq!(free.booked_shares(NodeId(1)), [None, Some(0.0), Some(0.0)]);
    assert_eq!(free.gpu_size(NodeId(0)), Milli(2000));
    assert_eq!((free.size(NodeId(0)), free.node_count()), ((Milli(4000), Mib(10)), 2));
}

#[test]
fn models_are_searched_in_the_order_of_the_demand_and_else_by_tier() {
    let free = of("4 model 1 | 4 | 4 model 1");
    let order = |walk, text| {
        let mut seen = Vec::new();
        free.visit(walk, &demand(text), |node| {
            seen.push(node.0);
            false
        });
        seen
    };
    assert_eq!(order(Walk::Tightest, "gpus 1"), [1, 0, 2]);
    assert_eq!(order(Walk::Tightest, "gpus 1 prefers 1,0"), [0, 2, 1]);
    assert_eq!(order(Walk::ById, "gpus 1"), [0, 1, 2]);
    assert_eq!(order(Walk::ById, "gpus 1 prefers 0,1"), [1, 0, 2]);
    assert_eq!(order(Walk::Roomiest, "gpus 1 on 1"), [0, 2]);
}

#[test]
fn a_search_that_is_told_to_stop_stops() {
    let free = of("1 | 1 | 1");
    for walk in [Walk::Tightest, Walk::Roomiest, Walk::ById] {
        for text in ["gpus 1", "gpu 500", "tasks 1", "gpus 1 prefers 0"] {
            let mut seen = 0;
            free.visit(walk, &demand(text), |_| {
                seen += 1;
                seen == 2
            });
            assert_eq!(seen, 2, "{walk:?} {text}");
        }
    }
}

#[test]
fn what_nobody_holds_is_not_given_back_and_what_is_held_is_not_divided() {
    let mut free = of("1");
    let twice = panic_of(|| of("1").release(&whole(0, &[0])));
    assert_eq!(twice, "gpu0 is given back twice");
    free.book(&whole(0, &[0])).unwrap();
    let divided = panic_of(|| free.set_layout(NodeId(0), DeviceId(0), Layout::Mig));
    assert!(divided.contains("gpu0 is repartitioned while in use"), "{divided}");
}

#[test]
fn a_copy_into_used_memory_equals_its_source() {
    let mut busy = of("2 | 2 model 1");
    busy.book(&whole(0, &[0])).unwrap();
    let fresh: Placement = whole(1, &[2, 3]);
    let mut copy = of("4 | 4 | 4");
    copy.clone_from(&busy);
    assert!(copy == busy);
    copy.book(&fresh).unwrap();
    assert!(copy != busy);
    busy.book(&fresh).unwrap();
    assert!(copy == busy && copy == busy.clone());
}
