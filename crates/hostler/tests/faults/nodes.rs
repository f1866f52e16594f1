//! Machines that fail, come back, and are drained.

use expect_test::expect;
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::executor::Executor;
use hostler_core::id::NodeId;
use hostler_core::metrics::Timeline;
use hostler_core::units::Time;
use hostler_sim::fixture::Fixture;
use hostler_sim::world::{Listed, Truth, World};

use crate::check;

#[test]
fn a_job_without_checkpoints_begins_anew_when_its_node_dies() {
    // 40 s are lost; all 100 run again from 50.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        fault node-down node at 40 for 10
    ",
        expect![[r#"
            a  0..40 50..150
            avg jct 150.00  makespan 150  preemptions 0
            restarts 1  lost work 40
        "#]],
    );
}

#[test]
fn a_job_with_checkpoints_goes_on_from_the_last_one() {
    // Saved at 15 and 30: 10 s are lost. From 50: 5 to load, 70 to go.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100 every 15 load 5
        fault node-down node at 40 for 10
    ",
        expect![[r#"
            a  0..40 50..125
            avg jct 125.00  makespan 125  preemptions 0
            restarts 1  lost work 10
        "#]],
    );
}

#[test]
fn a_node_that_dies_twice_costs_twice() {
    // 30 safe of 40; from 50 to 100 again 30 of 50; from 120 the last 40.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100 every 30
        fault node-down node at 40 for 10
        fault node-down node at 100 for 20
    ",
        expect![[r#"
            a  0..40 50..100 120..160
            avg jct 160.00  makespan 160  preemptions 0
            restarts 2  lost work 30
        "#]],
    );
}

#[test]
fn a_job_moves_to_another_node_when_its_own_dies() {
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 1
        node n2 gpus 1
        job a at 0 for 100
        fault node-down n1 at 40
    ",
        expect![[r#"
            a  0..40 40..140
            avg jct 140.00  makespan 140  preemptions 0
            restarts 1  lost work 40
        "#]],
    );
}

#[test]
fn a_job_waits_for_ever_when_its_only_node_never_comes_back() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        job b at 50 for 10
        fault node-down node at 40
    ",
        expect![[r#"
            a  0..40
            b  waiting
            avg jct -  makespan 0  preemptions 0
            not over: a
            not over: b
        "#]],
    );
}

#[test]
fn a_gang_that_loses_a_node_is_stopped_and_restarts_whole_once() {
    // The half on n1 is stopped at once. Nobody passes the first in line: b waits for a, which
    // waits for n2.
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 2
        node n2 gpus 2
        job a at 0 gpus 2 count 2 for 100
        job b at 1 gpus 1 for 10
        fault node-down n2 at 30 for 60
    ",
        expect![[r#"
            a  0..30 90..190
            b  190..200
            avg jct 194.50  makespan 200  preemptions 0
            restarts 1  lost work 30
        "#]],
    );
}

#[test]
fn a_gang_whose_nodes_die_at_the_same_instant_goes_on_from_its_checkpoint() {
    // 50 of 60 are safe; from 80 the other 50.
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 2
        node n2 gpus 2
        job a at 0 gpus 2 count 2 for 100 every 25
        fault node-down n1 at 60 for 10
        fault node-down n2 at 60 for 20
    ",
        expect![[r#"
            a  0..60 80..130
            avg jct 130.00  makespan 130  preemptions 0
            restarts 1  lost work 10
        "#]],
    );
}

#[test]
fn a_node_that_two_faults_hold_down_is_back_when_both_are_over() {
    // Down from 10 to 120, although the first fault is over at 60.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        fault node-down node at 10 for 50
        fault node-down node at 20 for 100
    ",
        expect![[r#"
            a  0..10 120..220
            avg jct 220.00  makespan 220  preemptions 0
            restarts 1  lost work 10
        "#]],
    );
}

#[test]
fn a_node_that_dies_while_a_gang_saves_costs_what_was_not_saved() {
    // a saves its first 15 s until 35. b wants a place at 40; a would have saved its 20 s by 60,
    // but n2 dies at 50: 15 are safe. From 60: 85 s of work and five saves.
    check(
        "kind = 'priority'\npreempt = true",
        "
        node n1 gpus 1
        node n2 gpus 1
        job a at 0 gpus 1 count 2 for 100 save 20 every 15
        job b at 40 gpus 1 for 10 priority 1
        fault node-down n2 at 50 for 10
    ",
        expect![[r#"
            a  0..50 60..245
            b  50..60
            avg jct 132.50  makespan 245  preemptions 1
            restarts 1  lost work 5
        "#]],
    );
}

#[test]
fn a_node_that_dies_before_the_first_job_is_no_place() {
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 1
        node n2 gpus 1
        job a at 5 for 10
        job b at 5 for 10
        fault node-down n1 at 0
    ",
        expect![[r#"
            a  5..15
            b  15..25
            avg jct 15.00  makespan 20  preemptions 0
        "#]],
    );
}

/// Runs a fixture under fifo and drains the first node from `from` to `to`.
fn drained(text: &str, from: Time, to: Time) -> String {
    let fixture = Fixture::parse(text).expect("the fixture is valid");
    let policy = hostler_policies::builtin().from_toml("kind = 'fifo'").expect("fifo is known");
    let mut engine = Engine::new(policy, Timeline::default());
    let jobs = Listed::new(fixture.jobs.clone());
    let mut world = World::new(fixture.site.clone(), jobs, Truth::new(fixture.runs));
    let mut orders = vec![(to, false), (from, true)];
    loop {
        let order = orders.last().map(|(at, _)| *at);
        let wake = [engine.wake(), order].into_iter().flatten().min();
        let Some((at, mut events)) = world.next(wake) else { break };
        while let Some((_, draining)) = orders.pop_if(|(due, _)| *due <= at) {
            events.push(Event::NodeDrain { node: NodeId(0), draining });
        }
        for decision in engine.step(at, events).expect("policies keep the rules") {
            world.submit(at, &decision);
        }
        engine.state().audit();
    }
    engine.watch().render(engine.state())
}

#[test]
fn a_draining_node_finishes_its_jobs_and_takes_no_new_ones() {
    let text = "
        cluster 1
        job a at 0 for 30
        job b at 5 for 10
        job c at 70 for 10
    ";
    let shown = drained(text, Time::from_secs(10), Time::from_secs(60));
    expect![[r#"
        a  0..30
        b  60..70
        c  70..80
        avg jct 35.00  makespan 80  preemptions 0
    "#]]
    .assert_eq(&shown);
}
