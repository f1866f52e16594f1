//! Decisions that are each within the rules, and not together.

use super::{fine, power, refused, repartition, resize, start, stop};
use crate::cluster::{Power, Share};
use crate::id::{DeviceId, NodeId};
use crate::testkit::*;
use crate::units::{Mib, Milli};
use crate::verify::Violation;

#[test]
fn cores_and_memory_of_a_node_are_booked_once() {
    let mut world = World::of("0 cores 4 mem 10");
    world.submit(0, 0, &["cores 3", "cores 1", "cores 2", "cores 0 mem 6", "cores 0 mem 5"]);
    let part = |cores: u32, mem: u32| {
        let mut placement = cpu(0, 1);
        (placement.parts[0].cpu, placement.parts[0].mem) = (Milli(cores * 1000), Mib(mem));
        placement
    };
    fine(&world, &[start(0, 0, part(3, 0)), start(1, 1, part(1, 0))]);
    let cores = [start(0, 0, part(3, 0)), start(1, 2, part(2, 0))];
    refused(&world, &cores, Violation::NodeFull(NodeId(0)));
    fine(&world, &[start(0, 0, part(3, 0)), start(1, 3, part(0, 6))]);
    let mem = [start(0, 3, part(0, 6)), start(1, 4, part(0, 5))];
    refused(&world, &mem, Violation::NodeFull(NodeId(0)));
    // The same with one of them there already.
    world.run(1, 0, part(3, 0));
    fine(&world, &[start(1, 1, part(1, 0))]);
    refused(&world, &[start(1, 2, part(2, 0))], Violation::NodeFull(NodeId(0)));
}

#[test]
fn a_device_is_booked_once() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1", "gpus 1", "gpus 2"]);
    fine(&world, &[start(0, 0, whole(0, &[0])), start(1, 1, whole(0, &[1]))]);
    let both = [start(0, 0, whole(0, &[0])), start(1, 1, whole(0, &[0]))];
    refused(&world, &both, Violation::DeviceFull(DeviceId(0)));
    let twice_in_one = [start(0, 2, whole(0, &[1, 1]))];
    refused(&world, &twice_in_one, Violation::DeviceFull(DeviceId(1)));
    world.run(1, 0, whole(0, &[0]));
    refused(&world, &[start(1, 1, whole(0, &[0]))], Violation::DeviceFull(DeviceId(0)));
    // A stop frees nothing before it is confirmed.
    let after_stop = [stop(0), start(1, 1, whole(0, &[0]))];
    refused(&world, &after_stop, Violation::DeviceFull(DeviceId(0)));
}

#[test]
fn parts_of_a_device_add_up_in_compute_and_in_memory() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpu 600", "gpu 400", "gpu 401", "gpu 100 gpu-mem 600"]);
    let six = || start(0, 0, fraction(0, 0, 600));
    fine(&world, &[six(), start(1, 1, fraction(0, 0, 400))]);
    let compute = [six(), start(1, 2, fraction(0, 0, 401))];
    refused(&world, &compute, Violation::DeviceFull(DeviceId(0)));
    let heavy = Share::Fraction { compute: Milli(100), mem: Mib(600) };
    let mem = [six(), start(1, 3, shared(0, 1, [(0, heavy)]))];
    refused(&world, &mem, Violation::DeviceFull(DeviceId(0)));
    world.run(1, 0, fraction(0, 0, 600));
    fine(&world, &[start(1, 1, fraction(0, 0, 400))]);
    refused(&world, &[start(1, 2, fraction(0, 0, 401))], Violation::DeviceFull(DeviceId(0)));
}

#[test]
fn hardware_slices_count_by_what_the_device_is_cut_into() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpu 500", "gpu 500", "gpu 250"]);
    let mig = |slices, mem| shared(0, 1, [(0, Share::Mig { start: 0, slices, mem: Mib(mem) })]);
    // Four slices make a device of model 0.
    fine(&world, &[start(0, 0, mig(2, 500)), start(1, 1, mig(2, 500))]);
    let three = [start(0, 0, mig(2, 400)), start(1, 1, mig(2, 400)), start(2, 2, mig(1, 100))];
    refused(&world, &three, Violation::DeviceFull(DeviceId(0)));
}

#[test]
fn a_move_makes_room_for_another_job() {
    let mut world = World::of("1 | 1");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.run(1, 0, whole(0, &[0]));
    let away = resize(0, whole(1, &[1]));
    fine(&world, &[away.clone(), start(1, 1, whole(0, &[0]))]);
    // Not where it goes to, though.
    let there = [away, start(1, 1, whole(1, &[1]))];
    refused(&world, &there, Violation::DeviceFull(DeviceId(1)));
    fine(&world, &[resize(0, whole(0, &[0]))]);
}

#[test]
fn two_jobs_may_change_places() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 2", "gpus 2", "gpus 2"]);
    world.run(1, 0, whole(0, &[0, 1]));
    world.run(1, 1, whole(1, &[2, 3]));
    fine(&world, &[resize(0, whole(1, &[2, 3])), resize(1, whole(0, &[0, 1]))]);
    let one_stays = [resize(0, whole(1, &[2, 3]))];
    refused(&world, &one_stays, Violation::DeviceFull(DeviceId(2)));
}

#[test]
fn a_job_shrinks_and_another_gets_the_rest() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1 tasks 4 elastic 1:4", "gpus 3", "gpus 2"]);
    world.run(1, 0, tasks(0, 4, &[0, 1, 2, 3]));
    fine(&world, &[resize(0, tasks(0, 1, &[0])), start(1, 1, whole(0, &[1, 2, 3]))]);
    let too_much = [resize(0, tasks(0, 2, &[0, 1])), start(1, 1, whole(0, &[1, 2, 3]))];
    refused(&world, &too_much, Violation::DeviceFull(DeviceId(1)));
}

#[test]
fn a_node_is_not_switched_or_divided_and_used_by_the_same_decisions() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.run(1, 0, whole(0, &[0]));
    let begin = || start(1, 1, whole(1, &[2]));
    for change in [power(1, Power::Sleeping), repartition(3)] {
        refused(&world, &[begin(), change.clone()], Violation::InUse(NodeId(1)));
        refused(&world, &[change.clone(), begin()], Violation::InUse(NodeId(1)));
        let moved = resize(0, whole(1, &[2]));
        refused(&world, &[change.clone(), moved], Violation::InUse(NodeId(1)));
        fine(&world, &[change, start(1, 1, whole(0, &[1]))]);
    }
    fine(&world, &[power(1, Power::Sleeping)]);
    refused(&world, &[repartition(2), repartition(3)], Violation::InUse(NodeId(1)));
    // A job that leaves in the same step is there when the node is switched.
    let leaves = [resize(0, whole(1, &[2])), power(0, Power::Sleeping)];
    refused(&world, &leaves, Violation::InUse(NodeId(0)));
}
