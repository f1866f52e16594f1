//! Rules of one placement: whole roles, the right amounts, the right places.

use super::{fine, refused, resize, start};
use crate::cluster::{Power, Share};
use crate::event::Event;
use crate::id::{JobId, NodeId};
use crate::placement::Placement;
use crate::testkit::*;
use crate::units::{Mib, Milli};
use crate::verify::Violation;

/// A world in which one job of these words waits.
fn waits(cluster: &str, job: &str) -> World {
    let mut world = World::of(cluster);
    world.submit(0, 0, &[job]);
    world
}

fn place(placement: Placement) -> [crate::decision::Decision; 1] {
    [start(0, 0, placement)]
}

const MISMATCH: Violation = Violation::Mismatch(JobId(0), NodeId(0));

#[test]
fn a_role_is_placed_whole() {
    let world = waits("4 | 4", "gpus 1 tasks 3");
    fine(&world, &place(tasks(0, 3, &[0, 1, 2])));
    fine(&world, &place(together([tasks(0, 1, &[0]), tasks(1, 2, &[4, 5])])));
    refused(&world, &place(tasks(0, 2, &[0, 1])), Violation::NotWhole(JobId(0)));
    refused(&world, &place(tasks(0, 4, &[0, 1, 2, 3])), Violation::NotWhole(JobId(0)));
    refused(&world, &place(Placement::default()), Violation::NotWhole(JobId(0)));
}

#[test]
fn a_node_can_do_what_the_role_needs() {
    let world = waits("4 features 5 | 4 features 1", "gpus 1 needs 4");
    fine(&world, &place(whole(0, &[0])));
    refused(&world, &place(whole(1, &[4])), Violation::Mismatch(JobId(0), NodeId(1)));
}

#[test]
fn every_role_is_placed() {
    let world = waits("4 | 4", "gpus 1 + tasks 2");
    let (worker, servers) = (whole(0, &[0]), as_role(1, cpu(0, 2)));
    fine(&world, &place(together([worker.clone(), servers.clone()])));
    refused(&world, &place(worker), Violation::NotWhole(JobId(0)));
    refused(&world, &place(servers), Violation::NotWhole(JobId(0)));
    let third = together([whole(0, &[0]), as_role(1, cpu(0, 2)), as_role(2, cpu(0, 1))]);
    refused(&world, &place(third), MISMATCH);
}

#[test]
fn numbers_beyond_all_bounds_are_refused_and_do_not_overflow() {
    let world = waits("4", "cores 0 tasks 2");
    let many = |tasks: u32| {
        let mut placement = cpu(0, 1);
        placement.parts[0].tasks = tasks;
        placement.parts[0].cpu = Milli(0);
        placement
    };
    fine(&world, &place(many(2)));
    let wrapped = together([many(u32::MAX), many(3)]);
    refused(&world, &place(wrapped), Violation::NotWhole(JobId(0)));
}

#[test]
fn an_elastic_job_has_a_number_of_its_range_and_other_roles_have_theirs() {
    let world = waits("8", "gpus 1 tasks 2 elastic 2:3 + tasks 1");
    let with = |count: u32| {
        let devices: Vec<u32> = (0..count).collect();
        together([tasks(0, count, &devices), as_role(1, cpu(0, 1))])
    };
    fine(&world, &place(with(2)));
    fine(&world, &place(with(3)));
    refused(&world, &place(with(1)), Violation::NotWhole(JobId(0)));
    refused(&world, &place(with(4)), Violation::NotWhole(JobId(0)));
    let servers = together([tasks(0, 2, &[0, 1]), as_role(1, cpu(0, 2))]);
    refused(&world, &place(servers), Violation::NotWhole(JobId(0)));
}

#[test]
fn tasks_are_as_close_as_their_role_asks() {
    let cluster = "4 island 2 | 4 island 2 | 4 rack 1";
    let (one_island, two_islands) = (tasks(0, 2, &[0, 1]), tasks(0, 2, &[1, 2]));
    let one_rack = together([tasks(0, 1, &[0]), tasks(1, 1, &[4])]);
    let two_racks = together([tasks(0, 1, &[0]), tasks(2, 1, &[8])]);
    let by_reach = [one_island, two_islands, one_rack, two_racks];
    for (word, reaches) in [("island", 1), ("node", 2), ("rack", 3)] {
        let world = waits(cluster, &format!("gpus 1 tasks 2 near {word}"));
        for (reach, placement) in by_reach.iter().enumerate() {
            match reach < reaches {
                true => fine(&world, &place(placement.clone())),
                false => refused(&world, &place(placement.clone()), Violation::Apart(JobId(0))),
            }
        }
    }
    let world = waits(cluster, "gpus 1 tasks 2");
    by_reach.iter().for_each(|placement| fine(&world, &place(placement.clone())));
}

#[test]
fn each_role_is_close_by_itself() {
    let world = waits("4 | 4", "gpus 1 tasks 2 near node + gpus 1 tasks 2 near node");
    let apart = together([tasks(0, 2, &[0, 1]), as_role(1, tasks(1, 2, &[4, 5]))]);
    fine(&world, &place(apart));
    let torn = together([
        tasks(0, 2, &[0, 1]),
        as_role(1, tasks(0, 1, &[2])),
        as_role(1, tasks(1, 1, &[4])),
    ]);
    refused(&world, &place(torn), Violation::Apart(JobId(0)));
}

#[test]
fn tasks_that_want_a_node_each_have_one_of_their_own() {
    let world = waits("4 | 4", "gpus 1 tasks 2 near apart + tasks 1");
    let server = || as_role(1, cpu(1, 1));
    let each = together([tasks(0, 1, &[0]), tasks(1, 1, &[4]), server()]);
    fine(&world, &place(each));
    let one_part = together([tasks(0, 2, &[0, 1]), server()]);
    refused(&world, &place(one_part), Violation::Together(JobId(0)));
    let two_parts = together([tasks(0, 1, &[0]), tasks(0, 1, &[1]), server()]);
    refused(&world, &place(two_parts), Violation::Together(JobId(0)));
}

#[test]
fn parts_are_in_order_of_nodes_and_roles() {
    let world = waits("4 | 4", "gpus 1 tasks 2 + tasks 1");
    let backwards = together([tasks(1, 1, &[4]), tasks(0, 1, &[0]), as_role(1, cpu(1, 1))]);
    refused(&world, &place(backwards), Violation::Unsorted(JobId(0)));
    let roles = together([as_role(1, cpu(0, 1)), tasks(0, 2, &[0, 1])]);
    refused(&world, &place(roles), Violation::Unsorted(JobId(0)));
}

#[test]
fn a_part_has_what_its_tasks_ask_for_no_more_and_no_less() {
    let world = waits("4 | 4", "gpus 2 cores 3 mem 10");
    let part = |cpu: u32, mem: u32, devices: &[u32]| {
        let mut placement = whole(0, devices);
        (placement.parts[0].cpu, placement.parts[0].mem) = (Milli(cpu), Mib(mem));
        placement
    };
    fine(&world, &place(part(3000, 10, &[0, 1])));
    for wrong in [
        part(2999, 10, &[0, 1]),
        part(3001, 10, &[0, 1]),
        part(3000, 9, &[0, 1]),
        part(3000, 11, &[0, 1]),
        part(3000, 10, &[0]),
        part(3000, 10, &[0, 1, 2]),
        // A device of the other node, and one that does not exist.
        part(3000, 10, &[0, 4]),
        part(3000, 10, &[0, 99]),
    ] {
        refused(&world, &place(wrong), MISMATCH);
    }
    let mut nobody = part(0, 0, &[]);
    nobody.parts[0].tasks = 0;
    refused(&world, &place(nobody), MISMATCH);
}

#[test]
fn gpus_are_of_a_model_that_will_do() {
    let (first, second) = (whole(0, &[0]), whole(1, &[4]));
    for words in ["gpus 1 on 1", "gpus 1 prefers 1"] {
        let world = waits("4 | 4 model 1", words);
        fine(&world, &place(second.clone()));
        refused(&world, &place(first.clone()), MISMATCH);
    }
    let world = waits("4 | 4 model 1", "gpus 1");
    fine(&world, &place(first));
    fine(&world, &place(second));
    // Who names a model sits beside its GPUs even without one; all others sit anywhere.
    let beside = waits("0 | 4", "on 0");
    fine(&beside, &place(cpu(1, 1)));
    refused(&beside, &place(cpu(0, 1)), MISMATCH);
    fine(&waits("0 | 4", "tasks 1"), &place(cpu(0, 1)));
}

#[test]
fn a_whole_gpu_is_shared_only_by_the_willing_and_packed_only_from_a_part() {
    let half = Milli(500);
    let part = || place(shared(0, 1, [(0, Share::Fraction { compute: half, mem: Mib(400) })]));
    refused(&waits("2", "gpus 1"), &part(), MISMATCH);
    fine(&waits("2", "gpus 1 willing"), &part());
    fine(&waits("2", "gpu 500"), &part());
    let packed = |mem| place(shared(0, 1, [(0, Share::Packed { compute: half, mem: Mib(mem) })]));
    fine(&waits("2", "gpu 600 willing"), &packed(600));
    // Memory is never promised twice.
    refused(&waits("2", "gpu 600 willing"), &packed(599), MISMATCH);
    refused(&waits("2", "gpu 600"), &packed(600), MISMATCH);
    refused(&waits("2", "gpus 1 willing"), &packed(1000), MISMATCH);
    fine(&waits("2", "gpu 600 gpu-mem 100 willing"), &packed(100));
}

#[test]
fn a_share_is_a_part_of_a_device() {
    let world = waits("2", "gpu 500");
    let mem = Mib(100);
    for (share, sane) in [
        (Share::Whole, true),
        (Share::Fraction { compute: Milli(1000), mem }, true),
        (Share::Fraction { compute: Milli(0), mem }, false),
        (Share::Fraction { compute: Milli(1001), mem }, false),
        (Share::Mig { start: 0, slices: 4, mem }, true),
        (Share::Mig { start: 3, slices: 0, mem }, false),
        (Share::Mig { start: 7, slices: 2, mem }, false),
        (Share::Mig { start: 8, slices: 1, mem }, false),
    ] {
        let decision = place(shared(0, 1, [(0, share)]));
        if sane { fine(&world, &decision) } else { refused(&world, &decision, MISMATCH) }
    }
}

#[test]
fn an_executor_that_cannot_share_gives_whole_devices_only() {
    let mut world = waits("2", "gpu 500");
    world.set_abilities(1, |abilities| abilities.shares = false);
    let unable = Violation::Unable("give a job a part of a device");
    refused(&world, &place(fraction(0, 0, 500)), unable);
    fine(&world, &place(whole(0, &[0])));
}

#[test]
fn nodes_that_take_no_jobs_get_none() {
    let mut world = waits("2 | 2", "gpus 1");
    let lease = {
        world.submit(0, 1, &["gpus 1"]);
        world.run(0, 1, whole(1, &[2]))
    };
    let node = NodeId(0);
    let steps = [
        (Event::NodeDrain { node, draining: true }, false),
        (Event::NodeDrain { node, draining: false }, true),
        (Event::PowerChanged { node, power: Power::Sleeping }, false),
        (Event::PowerChanged { node, power: Power::Waking }, false),
        (Event::PowerChanged { node, power: Power::On }, true),
        (Event::NodeDown { node }, false),
        (node_up(0, 2), true),
    ];
    for (at, (event, usable)) in (1..).zip(steps) {
        world.step(at, vec![event], vec![]);
        for decision in [start(1, 0, whole(0, &[0])), resize(lease, whole(0, &[0]))] {
            match usable {
                true => fine(&world, &[decision]),
                false => refused(&world, &[decision], Violation::Unusable(node)),
            }
        }
    }
}
