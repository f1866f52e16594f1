//! Series, heat maps and time lines of small runs.

use expect_test::expect;

use crate::event::{Event, Outcome};
use crate::id::NodeId;
use crate::metrics::{Heat, HeatMap, Series, Timeline};
use crate::testkit::*;
use crate::units::Span;

#[test]
fn a_series_shows_means_of_each_second() {
    let mut world = World::new(Series::default(), &[2]);
    let jobs = vec![submit(0, job("a", 2000)), submit(1, job("b", 1000))];
    world.step(10, jobs, vec![]);
    world.step(11, vec![], vec![Act::Start(0, whole(0, &[0, 1]))]);
    world.step(12, vec![started(0)], vec![]);
    world.step(13, vec![finished(0, 1)], vec![Act::Start(1, whole(0, &[0]))]);
    world.step(13, vec![started(1)], vec![]);
    world.step(15, vec![], vec![]);
    let points = world.watch().points(world.state());
    assert_eq!(points.times_s, [10.0, 11.0, 12.0, 13.0, 14.0]);
    assert_eq!(points.queue, [2.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(points.allocated, [0.0, 1.0, 1.0, 0.5, 0.5]);
    assert_eq!(points.used, [0.0, 0.0, 1.0, 0.5, 0.5]);
}

#[test]
fn a_long_series_merges_neighbours_and_keeps_the_sum() {
    let mut world = World::new(Series::default(), &[1]);
    world.step(0, vec![submit(0, job("a", 1000))], vec![]);
    let mut start = 1;
    for lease in 0..100 {
        // On for 7 s, off for 4 s.
        world.step(start, vec![], vec![Act::Start(0, whole(0, &[0]))]);
        world.step(start, vec![started(lease)], vec![]);
        let stop = stopped(lease, Outcome::Interrupted, 0, 0);
        world.step(start + 7, vec![stop], vec![]);
        start += 11;
    }
    let points = world.watch().points(world.state());
    // The last stop is at 1 + 99 * 11 + 7 = 1097 s: the buckets of 1 s doubled twice.
    assert_eq!((points.width_s, points.times_s.len()), (4.0, 275));
    let last_width = 1097.0 - points.times_s[274];
    let sum = |values: &[f64]| {
        let (last, others) = values.split_last().unwrap();
        others.iter().sum::<f64>() * 4.0 + last * last_width
    };
    assert_eq!(sum(&points.allocated), 700.0);
    assert_eq!(sum(&points.used), 700.0);
    assert_eq!(sum(&points.queue), 397.0);
}

#[test]
fn a_heat_map_shows_how_full_nodes_were_and_when_they_were_down() {
    let mut world = World::new(Heat::default(), &[2, 1, 0]);
    let jobs = vec![submit(0, job("a", 500)), submit(1, job("b", 0))];
    world.step(0, jobs, vec![Act::Start(0, fraction(0, 1, 500))]);
    world.step(1, vec![Event::NodeDown { node: NodeId(1) }], vec![]);
    world.step(2, vec![], vec![Act::Start(1, cpu(2, 1))]);
    world.step(3, vec![node_up(1, 1)], vec![]);
    world.step(4, vec![], vec![]);
    let map = world.watch().map(world.state());
    assert_eq!(map.columns, 4);
    assert_eq!(map.row(NodeId(0)), [25; 4]);
    assert_eq!(map.row(NodeId(1)), [0, HeatMap::DOWN, HeatMap::DOWN, 0]);
    assert_eq!(map.row(NodeId(2)), [0, 0, 1, 1]);
}

#[test]
fn a_long_heat_map_merges_neighbours() {
    let mut world = World::new(Heat::default(), &[1]);
    world.step(0, vec![submit(0, job("a", 1000))], vec![]);
    world.step(65, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    world.step(200, vec![finished(0, 135)], vec![]);
    world.step(300, vec![node_up(1, 1)], vec![]);
    let map = world.watch().map(world.state());
    assert_eq!((map.width, map.columns), (Span::from_secs(4), 75));
    let mut row = vec![0; 75];
    row[16] = 75;
    row[17..50].fill(100);
    assert_eq!(map.row(NodeId(0)), row);
    assert_eq!(map.row(NodeId(1)), [HeatMap::DOWN; 75], "it was not there");
}

#[test]
fn a_time_line_lists_stays_and_sums() {
    let mut world = World::new(Timeline::default(), &[1, 1]);
    let names = ["a", "bb", "fails", "waits", "goes", "on"];
    let jobs = names.iter().enumerate();
    let jobs = jobs.map(|(id, name)| submit(id as u32, job(name, 1000)));
    let start = |job| Act::Start(job, whole(0, &[0]));
    world.step(0, jobs.collect(), vec![start(0)]);
    world.step(1, vec![], vec![Act::Preempt(0)]);
    let stop = stopped(0, Outcome::Interrupted, 1, 0);
    world.step(1, vec![stop], vec![start(1)]);
    world.step(10, vec![finished(1, 9)], vec![start(0)]);
    world.step(39, vec![finished(2, 30)], vec![start(2)]);
    let failed = stopped(3, Outcome::Failed, 0, 0);
    let away = Event::Cancelled { job: crate::id::JobId(4) };
    world.step(40, vec![failed, away], vec![Act::Start(5, whole(1, &[1]))]);
    expect![[r#"
        a      0..1 10..39
        bb     1..10
        fails  39..40 failed
        waits  waiting
        goes   cancelled
        on     40..
        avg jct 24.50  makespan 40  preemptions 1
    "#]]
    .assert_eq(&world.watch().render(world.state()));
}
