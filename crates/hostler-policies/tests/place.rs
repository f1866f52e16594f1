//! Where the placement rules put the tasks of one role.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use hostler_core::capacity::Capacity;
use hostler_core::cluster::{GpuModel, NodeSpec};
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::id::{ModelId, NodeId};
use hostler_core::job::{Demand, Gang, JobSpec, Locality, Models};
use hostler_core::placement::Part;
use hostler_core::stage::{Shortfall, place_job};
use hostler_core::units::{Mib, Milli, Time};
use hostler_policies::place::PlaceRule;

/// GPUs, rack, GPU model of a node.
type Shape = (u32, u32, u32);

fn cluster(nodes: &[Shape]) -> Capacity {
    let policy =
        hostler_policies::builtin().build("fifo", &toml::Table::new()).expect("defaults are valid");
    let mut engine = Engine::new(policy, ());
    let model = |id: u32| Event::ModelAdded {
        model: ModelId(id),
        spec: GpuModel {
            name: format!("model{id}").into(),
            mem: Mib(16_000),
            tier: id,
            mig_slices: 0,
            idle_watts: 0,
            busy_watts: 0,
        },
    };
    let mut events = vec![model(0), model(1)];
    let up = nodes.iter().enumerate().map(|(at, &(gpus, rack, model))| {
        let spec = NodeSpec {
            name: format!("node{at}").into(),
            cpu: Milli(gpus * 8000),
            mem: Mib(gpus * 64_000),
            gpu_model: Some(ModelId(model)),
            gpus,
            island_gpus: 4,
            rack,
            ..NodeSpec::default()
        };
        let node = NodeId(at as u32);
        Event::NodeUp { node, spec }
    });
    events.extend(up);
    engine.step(Time::ZERO, events).expect("policies keep the rules");
    engine.state().capacity().clone()
}

fn gpus(gpu: f64) -> Demand {
    Demand { gpu: Milli((gpu * 1000.0) as u32), ..Demand::default() }
}

/// Takes GPUs of a node away.
fn occupy(free: &mut Capacity, node: u32, count: f64) {
    let part = free.fit(NodeId(node), 0, &gpus(count), 1).expect("they are free");
    free.book_part(&part).expect("they are free");
}

/// `node0 2: 0 1` is node 0 with two tasks on the devices 0 and 1.
fn show(placed: &Result<Vec<Part>, Shortfall>) -> String {
    let parts = match placed {
        Ok(parts) => parts,
        Err(short) => return format!("  {} would fit\n", short.fit),
    };
    let line = |part: &Part| {
        let devices = part.slices.iter().map(|slice| format!(" {}", slice.device.0));
        format!("  node{} {}:{}\n", part.node.0, part.tasks, devices.collect::<String>())
    };
    parts.iter().map(line).collect()
}

/// What each rule answers, and that what it chose is free.
fn check(free: &Capacity, demand: &Demand, count: u32, expected: Expect) {
    let mut text = String::new();
    for rule in PlaceRule::ALL {
        let placed = rule.build().choose(free, 0, demand, count);
        if let Ok(parts) = &placed {
            let mut free = free.clone();
            for part in parts {
                free.book_part(part).expect("the rule chose free resources");
            }
        }
        let answer = show(&placed);
        match text.strip_suffix(&answer) {
            Some(same) => text = format!("{}, {rule:?}\n{answer}", same.trim_end()),
            None => text += &format!("{rule:?}\n{answer}"),
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn a_single_task_goes_to_the_first_the_tightest_or_the_roomiest_node() {
    let mut free = cluster(&[(4, 0, 0), (8, 0, 0), (4, 0, 0)]);
    occupy(&mut free, 2, 2.0);
    check(
        &free,
        &gpus(1.0),
        1,
        expect![[r#"
            FirstFit
              node0 1: 0
            BestFit, Consolidate
              node2 1: 14
            Spread
              node1 1: 4
            Balance
              node0 1: 0
            BySkew
              node2 1: 14
            Affinity
              node1 1: 4
        "#]],
    );
}

#[test]
fn a_gang_packs_consolidates_or_spreads() {
    let mut free = cluster(&[(4, 0, 0), (8, 0, 0), (4, 0, 0), (4, 0, 0)]);
    occupy(&mut free, 0, 3.0);
    occupy(&mut free, 1, 2.0);
    occupy(&mut free, 3, 1.0);
    check(
        &free,
        &gpus(1.0),
        8,
        expect![[r#"
            FirstFit
              node0 1: 3
              node1 6: 6 7 8 9 10 11
              node2 1: 12
            BestFit
              node0 1: 3
              node3 3: 17 18 19
              node2 4: 12 13 14 15
            Consolidate
              node1 6: 6 7 8 9 10 11
              node3 2: 17 18
            Spread
              node1 3: 6 7 8
              node2 2: 12 13
              node3 2: 17 18
              node0 1: 3
            Balance
              node2 4: 12 13 14 15
              node1 4: 6 7 8 9
            BySkew, Affinity
              node1 6: 6 7 8 9 10 11
              node3 2: 17 18
        "#]],
    );
}

#[test]
fn consolidation_takes_the_tightest_node_that_holds_all() {
    let mut free = cluster(&[(8, 0, 0), (8, 0, 0), (8, 0, 0)]);
    occupy(&mut free, 1, 5.0);
    occupy(&mut free, 2, 2.0);
    check(
        &free,
        &gpus(1.0),
        4,
        expect![[r#"
            FirstFit
              node0 4: 0 1 2 3
            BestFit
              node1 3: 13 14 15
              node2 1: 18
            Consolidate
              node2 4: 18 19 20 21
            Spread
              node0 2: 0 1
              node2 1: 18
              node1 1: 13
            Balance
              node0 4: 0 1 2 3
            BySkew
              node2 4: 18 19 20 21
            Affinity
              node0 4: 0 1 2 3
        "#]],
    );
}

#[test]
fn four_quarters_share_one_device_unless_spread() {
    let free = cluster(&[(2, 0, 0), (2, 0, 0), (2, 0, 0)]);
    check(
        &free,
        &gpus(0.25),
        4,
        expect![[r#"
            FirstFit, BestFit, Consolidate
              node0 4: 0 0 0 0
            Spread
              node0 2: 0 0
              node1 1: 2
              node2 1: 4
            Balance, BySkew, Affinity
              node0 4: 0 0 0 0
        "#]],
    );
}

#[test]
fn a_gang_that_must_share_a_rack_stays_in_one() {
    let mut free = cluster(&[(4, 0, 0), (4, 1, 0), (4, 1, 0), (8, 2, 0), (2, 2, 0)]);
    occupy(&mut free, 3, 1.0);
    let demand = Demand { locality: Locality::Rack, ..gpus(1.0) };
    check(
        &free,
        &demand,
        6,
        expect![[r#"
            FirstFit, BestFit
              node1 4: 4 5 6 7
              node2 2: 8 9
            Consolidate
              node3 6: 13 14 15 16 17 18
            Spread
              node3 4: 13 14 15 16
              node4 2: 20 21
            Balance, BySkew, Affinity
              node3 6: 13 14 15 16 17 18
        "#]],
    );
    check(
        &free,
        &demand,
        10,
        expect![[r#"
            FirstFit, BestFit, Consolidate, Spread, Balance, BySkew, Affinity
              9 would fit
        "#]],
    );
}

#[test]
fn a_gang_that_must_share_a_node_or_island_finds_one_or_tells_the_best() {
    let mut free = cluster(&[(8, 0, 0), (8, 0, 0)]);
    occupy(&mut free, 0, 3.0);
    occupy(&mut free, 1, 1.0);
    let near = |locality| Demand { locality, ..gpus(1.0) };
    check(
        &free,
        &near(Locality::Node),
        5,
        expect![[r#"
            FirstFit, BestFit, Consolidate
              node0 5: 3 4 5 6 7
            Spread, Balance
              node1 5: 9 10 11 12 13
            BySkew
              node0 5: 3 4 5 6 7
            Affinity
              node1 5: 9 10 11 12 13
        "#]],
    );
    check(
        &free,
        &near(Locality::Node),
        8,
        expect![[r#"
            FirstFit, BestFit, Consolidate, Spread, Balance, BySkew, Affinity
              7 would fit
        "#]],
    );
    check(
        &free,
        &near(Locality::Island),
        3,
        expect![[r#"
            FirstFit, BestFit, Consolidate
              node0 3: 4 5 6
            Spread, Balance
              node1 3: 9 10 11
            BySkew
              node0 3: 4 5 6
            Affinity
              node1 3: 9 10 11
        "#]],
    );
    check(
        &free,
        &near(Locality::Island),
        5,
        expect![[r#"
            FirstFit, BestFit, Consolidate, Spread, Balance, BySkew, Affinity
              4 would fit
        "#]],
    );
}

#[test]
fn models_come_in_the_order_asked_for_else_the_low_tier_first() {
    let free = cluster(&[(2, 0, 1), (4, 0, 0)]);
    check(
        &free,
        &gpus(1.0),
        1,
        expect![[r#"
            FirstFit
              node0 1: 0
            BestFit, Consolidate, Spread
              node1 1: 2
            Balance
              node0 1: 0
            BySkew, Affinity
              node1 1: 2
        "#]],
    );
    let ordered =
        Demand { models: Models::Ordered(Box::new([ModelId(1), ModelId(0)])), ..gpus(1.0) };
    check(
        &free,
        &ordered,
        1,
        expect![[r#"
            FirstFit, BestFit, Consolidate, Spread, Balance, BySkew, Affinity
              node0 1: 0
        "#]],
    );
}

#[test]
fn a_gang_is_on_one_gpu_model_where_one_has_room_for_all() {
    let place = PlaceRule::Consolidate.build();
    let nodes = |free: &Capacity, count: u32| -> Vec<u32> {
        let parts = place.choose(free, 0, &gpus(1.0), count).expect("there is room");
        parts.iter().map(|part| part.node.0).collect()
    };
    // The largest node is of the other model; alone it has too little.
    let mut free = cluster(&[(4, 0, 0), (4, 0, 0), (6, 0, 1)]);
    assert_eq!(nodes(&free, 8), [0, 1]);
    assert_eq!(nodes(&free, 6), [2]);
    occupy(&mut free, 0, 1.0);
    assert_eq!(nodes(&free, 8), [2, 0], "no model has room for all");
}

#[test]
fn whether_a_role_fits_does_not_depend_on_the_rule() {
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let localities =
        [Locality::Any, Locality::Rack, Locality::Node, Locality::Island, Locality::Apart];
    let sizes = [0.25, 0.5, 0.7, 1.0, 2.0, 4.0];
    let mut fitted = 0;
    for round in 0..2000 {
        let nodes: Vec<Shape> = (0..1 + random(6))
            .map(|_| (1 + random(8) as u32, random(3) as u32, random(2) as u32))
            .collect();
        let mut free = cluster(&nodes);
        for (node, shape) in nodes.iter().enumerate() {
            for _ in 0..random(u64::from(shape.0) + 1) {
                let size = if random(2) == 0 { 1.0 } else { 0.4 };
                if free.slots(NodeId(node as u32), &gpus(size), 1) > 0 {
                    occupy(&mut free, node as u32, size);
                }
            }
        }
        let demand = Demand {
            locality: localities[random(5) as usize],
            cpu: Milli(random(12_000) as u32),
            ..gpus(sizes[random(6) as usize])
        };
        let count = 1 + random(10) as u32;
        let answers = PlaceRule::ALL.map(|rule| {
            let placed = rule.build().choose(&free, 0, &demand, count);
            placed.map(|parts| {
                let mut free = free.clone();
                for part in &parts {
                    free.book_part(part).expect("the rule chose free resources");
                    assert!(part.tasks <= demand.locality.tasks_per_node(), "{parts:?}");
                }
                let nodes: BTreeSet<NodeId> = parts.iter().map(|part| part.node).collect();
                assert_eq!(nodes.len(), parts.len(), "{parts:?}");
                parts.iter().map(|part| part.tasks).sum::<u32>()
            })
        });
        fitted += u32::from(answers[0] == Ok(count));
        assert!(answers.iter().all(|answer| *answer == answers[0]), "round {round}: {answers:?}");
        assert!(answers[0].map_or_else(|short| short.fit < count, |tasks| tasks == count));
    }
    assert!((300..1700).contains(&fitted), "{fitted} of 2000 fitted: the cases show too little");
}

#[test]
fn only_jobs_that_lose_on_several_nodes_get_few() {
    // Three nodes with two free GPUs, one with four.
    let mut free = cluster(&[(4, 0, 0), (4, 0, 0), (4, 0, 0), (4, 0, 0)]);
    for node in 0..3 {
        occupy(&mut free, node, 2.0);
    }
    let place = PlaceRule::BySkew.build();
    let mut nodes = |skew: Option<u32>| -> Vec<u32> {
        let gang = Gang { count: 4, demand: gpus(1.0) };
        let spec = JobSpec { gangs: [gang].into(), skew: skew.map(Milli), ..JobSpec::default() };
        let placed = place_job(&*place, &mut free, &spec).expect("there is room");
        placed.parts.iter().map(|part| part.node.0).collect()
    };
    assert_eq!(nodes(Some(717)), [3], "as vgg19");
    assert_eq!(nodes(Some(112)), [0, 1], "as resnet50");
    assert_eq!(nodes(Some(300)), [0, 1]);
    assert_eq!(nodes(Some(301)), [3]);
    assert_eq!(nodes(None), [3], "nobody knows");
}
