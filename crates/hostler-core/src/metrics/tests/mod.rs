//! Worked examples: a few jobs each, with figures that can be checked by hand.

mod pictures;

use std::cell::RefCell;

use expect_test::{Expect, expect};

use super::{Metrics, Summary, Which};
use crate::event::{Event, Outcome};
use crate::id::{JobId, NodeId, TenantId};
use crate::job::{Ending, Job, JobKind, JobSpec};
use crate::placement::Lease;
use crate::state::ClusterState;
use crate::testkit::*;
use crate::units::{Span, Time};
use crate::watch::Watch;

fn summary(world: &World<Metrics>) -> Summary {
    world.watch().summary(world.state())
}

fn check(actual: impl std::fmt::Debug, expected: Expect) {
    expected.assert_eq(&format!("{actual:?}"));
}

/// On two GPUs: `a` takes both from 0 to 100, `b` comes at 10 and takes one from 100 to 150.
fn two_jobs() -> World<Metrics> {
    let mut world = World::new(Metrics::default(), &[2]);
    let (a, mut b) = (job("a", 2000), job("b", 1000));
    b.tenant = TenantId(1);
    b.kind = JobKind::Batch;
    world.step(0, vec![submit(0, a)], vec![Act::Start(0, whole(0, &[0, 1]))]);
    world.step(10, vec![submit(1, b)], vec![]);
    world.step(100, vec![finished(0, 100)], vec![Act::Start(1, whole(0, &[1]))]);
    world.step(150, vec![finished(1, 50)], vec![]);
    world
}

// Waits 0 and 90. Utilisation 250 of 300 GPU seconds. Fairness of `a`: 1.9 jobs on average, so
// 100 / (100 * 1.9 * 2 / 2); of `b`: a GPU is more than its part, so 140 / 50. Energy
// 150 s * 200 W + 50 s * 100 W + 250 s * 500 W = 160 kJ.
#[test]
#[expect(clippy::too_many_lines, reason = "most of it is recorded text")]
fn two_jobs_give_the_figures_worked_out_by_hand() {
    let text = toml::to_string(&summary(&two_jobs())).unwrap();
    expect![[r#"
        jobs_submitted = 2
        jobs_done = 2
        jobs_failed = 0
        jobs_rejected = 0
        jobs_cancelled = 0
        jobs_unfinished = 0
        avg_jct_s = 120.0
        p50_jct_s = 100.0
        p90_jct_s = 140.0
        p99_jct_s = 140.0
        avg_jct_instance_weighted_s = 120.0
        avg_wait_s = 45.0
        p50_wait_s = 0.0
        p90_wait_s = 90.0
        p99_wait_s = 90.0
        avg_wait_instance_weighted_s = 45.0
        avg_slowdown = 1.9
        p50_slowdown = 1.0
        p90_slowdown = 2.8
        p99_slowdown = 2.8
        avg_bounded_slowdown = 1.9
        makespan_s = 150.0
        gpu_utilisation = 0.8333333333333334
        gpu_utilisation_while_arriving = 1.0
        gpu_used = 0.8333333333333334
        fragmentation = 0.0
        avg_queue_length = 0.6
        gpus_held_avg = 1.6666666666666667
        gpus_held_peak = 2
        gpus_saved_avg = 0.0
        gpus_saved_peak = 0
        gpus_saved_share = 0.0
        fairness_avg = 1.663157880306244
        fairness_p50 = 0.5263158082962036
        fairness_p95 = 2.799999952316284
        fairness_p99 = 2.799999952316284
        fairness_max = 2.799999952316284
        unfair_share = 0.5
        very_unfair_share = 0.5
        deadline_jobs = 0
        deadline_misses = 0
        starts = 2
        stops = 2
        resizes = 0
        preemptions = 0
        restarts = 0
        lost_work_s = 0.0
        lost_gpu_hours = 0.0
        gpu_hours = 0.06944444444444445
        energy_kwh = 0.044444444444444446

        [[by_tenant]]
        name = "red"
        gpu_hours = 0.05555555555555555
        jobs = 1
        avg_jct_s = 100.0
        p50_jct_s = 100.0
        p90_jct_s = 100.0
        p99_jct_s = 100.0
        avg_wait_s = 0.0
        p50_wait_s = 0.0
        p90_wait_s = 0.0
        p99_wait_s = 0.0

        [[by_tenant]]
        name = "blue"
        gpu_hours = 0.013888888888888888
        jobs = 1
        avg_jct_s = 140.0
        p50_jct_s = 140.0
        p90_jct_s = 140.0
        p99_jct_s = 140.0
        avg_wait_s = 90.0
        p50_wait_s = 90.0
        p90_wait_s = 90.0
        p99_wait_s = 90.0

        [[by_model]]
        name = "h200"
        utilisation = 0.8333333333333334
        gpu_hours = 0.06944444444444445
        jobs = 2
        avg_jct_s = 120.0
        p50_jct_s = 100.0
        p90_jct_s = 140.0
        p99_jct_s = 140.0
        avg_wait_s = 45.0
        p50_wait_s = 0.0
        p90_wait_s = 90.0
        p99_wait_s = 90.0

        [[by_kind]]
        kind = "training"
        jobs = 1
        avg_jct_s = 100.0
        p50_jct_s = 100.0
        p90_jct_s = 100.0
        p99_jct_s = 100.0
        avg_wait_s = 0.0
        p50_wait_s = 0.0
        p90_wait_s = 0.0
        p99_wait_s = 0.0

        [[by_kind]]
        kind = "batch"
        jobs = 1
        avg_jct_s = 140.0
        p50_jct_s = 140.0
        p90_jct_s = 140.0
        p99_jct_s = 140.0
        avg_wait_s = 90.0
        p50_wait_s = 90.0
        p90_wait_s = 90.0
        p99_wait_s = 90.0
    "#]]
    .assert_eq(&text);
}

#[test]
fn time_before_the_first_job_and_after_the_last_does_not_count() {
    let mut world = World::new(Metrics::default(), &[1]);
    let start = vec![Act::Start(0, whole(0, &[0]))];
    world.step(1000, vec![submit(0, job("a", 1000))], vec![]);
    world.step(1010, vec![], start);
    world.step(1040, vec![finished(0, 30)], vec![]);
    world.step(5000, vec![Event::NodeDown { node: NodeId(0) }], vec![]);
    world.step(6000, vec![node_up(0, 1)], vec![]);
    let summary = summary(&world);
    assert_eq!((summary.makespan_s, summary.gpu_utilisation), (40.0, 0.75));
    assert_eq!(summary.avg_queue_length, 0.25);
    let joules = 40.0 * 200.0 + 10.0 * 100.0 + 30.0 * 500.0;
    assert!((summary.energy_kwh - joules / 3.6e6).abs() < 1e-12);
}

#[test]
fn work_lost_to_a_preemption_is_booked_but_not_used() {
    let mut world = World::new(Metrics::default(), &[1]);
    let jobs = vec![submit(0, job("a", 1000)), submit(1, job("b", 1000))];
    let start = |job| vec![Act::Start(job, whole(0, &[0]))];
    world.step(0, jobs, start(0));
    world.step(40, vec![], vec![Act::Preempt(0)]);
    let stop = stopped(0, Outcome::Interrupted, 30, 10);
    world.step(40, vec![stop], start(1));
    world.step(50, vec![finished(1, 10)], start(0));
    world.step(80, vec![], vec![]);
    // Up to now 10 of the 40 s of work in the first stay are lost, and none of the second.
    assert_eq!(summary(&world).gpu_used, 70.0 / 80.0);
    world.step(120, vec![finished(2, 100)], vec![]);
    let summary = summary(&world);
    assert_eq!((summary.preemptions, summary.restarts), (1, 1));
    assert_eq!((summary.starts, summary.stops), (3, 3));
    assert_eq!(summary.lost_work_s, 10.0);
    // `a` held the GPU for 110 s; 10 of 110 s of its work were lost.
    assert_eq!(summary.lost_gpu_hours, 10.0 / 3600.0);
    assert_eq!(summary.gpu_utilisation, 1.0);
    assert_eq!(summary.gpu_used, 110.0 / 120.0);
    assert_eq!(world.watch().distribution(Which::Wait), [10.0, 40.0]);
    assert_eq!(world.watch().distribution(Which::Jct), [50.0, 120.0]);
    assert_eq!(world.watch().distribution(Which::Slowdown), [1.2, 5.0]);
}

#[test]
fn what_fractions_leave_of_a_device_is_fragmented() {
    let mut world = World::new(Metrics::default(), &[2]);
    let jobs = vec![submit(0, job("a", 250)), submit(1, job("b", 1000))];
    let starts = vec![Act::Start(0, fraction(0, 0, 250)), Act::Start(1, whole(0, &[1]))];
    world.step(0, jobs, starts);
    world.step(50, vec![finished(1, 50)], vec![]);
    world.step(100, vec![finished(0, 100)], vec![]);
    // Idle: 0.75 for 50 s, then 1.75 for 50 s; on the cut device: 0.75 all the time.
    let summary = summary(&world);
    assert_eq!(summary.fragmentation, 75.0 / (37.5 + 87.5));
    assert_eq!(summary.gpu_utilisation, (25.0 + 50.0) / 200.0);
}

#[test]
fn a_gang_counts_once_as_a_job_and_fifty_times_by_instances() {
    let mut world = World::new(Metrics::default(), &[0]);
    let many = JobSpec { gangs: [gang(50, 0)].into(), ..job("many", 0) };
    let jobs = vec![submit(0, many), submit(1, job("one", 0))];
    world.step(0, jobs, vec![Act::Start(0, cpu(0, 50))]);
    world.step(10, vec![finished(0, 10)], vec![]);
    world.step(102, vec![], vec![Act::Start(1, cpu(0, 1))]);
    world.step(112, vec![finished(1, 10)], vec![]);
    let summary = summary(&world);
    assert_eq!((summary.avg_jct_s, summary.avg_wait_s), (61.0, 51.0));
    assert_eq!(summary.avg_jct_instance_weighted_s, (50.0 * 10.0 + 112.0) / 51.0);
    assert_eq!(summary.avg_wait_instance_weighted_s, 102.0 / 51.0);
    assert_eq!(summary.gpu_utilisation, 0.0);
}

#[test]
fn nodes_that_are_down_are_not_available_and_sleeping_ones_draw_nothing() {
    let mut world = World::new(Metrics::default(), &[1, 1, 1]);
    let submitted = vec![submit(0, job("a", 1000))];
    world.step(0, submitted, vec![Act::Start(0, whole(0, &[0]))]);
    world.step(40, vec![], vec![Act::Sleep(2)]);
    world.step(50, vec![Event::NodeDown { node: NodeId(1) }], vec![]);
    world.step(100, vec![finished(0, 100)], vec![]);
    let summary = summary(&world);
    assert_eq!(summary.gpu_utilisation, 100.0 / 250.0);
    let joules = 100.0 * 700.0 + 50.0 * 300.0 + 40.0 * 300.0;
    assert!((summary.energy_kwh - joules / 3.6e6).abs() < 1e-12);
}

#[test]
fn a_resized_stay_is_one_stay_with_exact_use() {
    let mut world = World::new(Metrics::default(), &[2]);
    let elastic = JobSpec {
        gangs: [gang(2, 1000)].into(),
        elastic: Some(crate::job::Elastic { min: 1, max: 2 }),
        ..job("a", 0)
    };
    world.step(0, vec![submit(0, elastic)], vec![Act::Start(0, whole(0, &[0]))]);
    let mut both = whole(0, &[0, 1]);
    both.parts[0].tasks = 2;
    both.parts[0].cpu.0 = 2000;
    world.step(10, vec![started(0)], vec![Act::Resize(0, both)]);
    world.step(30, vec![finished(0, 50)], vec![]);
    let summary = summary(&world);
    assert_eq!((summary.starts, summary.resizes, summary.stops), (1, 1, 1));
    assert_eq!((summary.avg_wait_s, summary.avg_queue_length), (0.0, 0.0));
    assert_eq!(summary.gpu_utilisation, 50.0 / 60.0);
    assert_eq!(summary.gpu_hours, 50.0 / 3600.0);
}

#[test]
fn every_ending_is_counted_and_only_work_done_in_time_meets_a_deadline() {
    let mut world = World::new(Metrics::default(), &[8]);
    let until = |name: &str, deadline| JobSpec {
        deadline: Some(Time::from_secs(deadline)),
        ..job(name, 1000)
    };
    let limited = JobSpec { time_limit: Some(Span::from_secs(20)), ..job("limited", 1000) };
    let specs = [
        until("in time", 30),
        until("late", 10),
        until("fails", 100),
        until("cancelled", 100),
        until("rejected", 100),
        limited,
        until("late already", 25),
        until("not late yet", 100),
    ];
    let jobs = specs.into_iter().enumerate();
    let jobs = jobs.map(|(id, spec)| submit(id as u32, spec)).collect();
    let mut acts: Vec<Act> = [0, 1, 2, 5, 6].map(|id| Act::Start(id, whole(0, &[id]))).into();
    acts.push(Act::Reject(4));
    world.step(0, jobs, acts);
    let confirmed = (0..5).map(started).collect();
    world.step(0, confirmed, vec![]);
    world.step(20, vec![finished(0, 20), finished(1, 20)], vec![]);
    let failed = stopped(2, Outcome::Failed, 0, 0);
    let out_of_time = stopped(3, Outcome::Interrupted, 20, 0);
    world.step(30, vec![failed, out_of_time], vec![]);
    world.step(40, vec![Event::Cancelled { job: JobId(3) }], vec![]);
    let summary = summary(&world);
    check(
        (
            (summary.jobs_submitted, summary.jobs_done, summary.jobs_failed),
            (summary.jobs_rejected, summary.jobs_cancelled, summary.jobs_unfinished),
            (summary.deadline_jobs, summary.deadline_misses),
        ),
        expect!["((8, 2, 2), (1, 1, 2), (6, 4))"],
    );
    let rows = world.watch().rows().iter();
    let endings: Vec<_> = rows.map(|row| (row.job.0, row.ending())).collect();
    let expected = [
        (4, Ending::Rejected),
        (0, Ending::Finished),
        (1, Ending::Finished),
        (2, Ending::Failed),
        (5, Ending::TimedOut),
        (3, Ending::Cancelled),
    ];
    assert_eq!(endings, expected);
    // Five stays of one GPU: 20, 20, 30, 30 and 40 s so far, of 8 GPUs for 40 s.
    assert_eq!(summary.gpu_utilisation, 140.0 / 320.0);
    assert_eq!(summary.gpu_used, 140.0 / 320.0);
}

#[test]
fn gpus_saved_are_shares_less_devices_that_hold_them() {
    let mut world = World::new(Metrics::default(), &[2]);
    let jobs = [("a", 300), ("b", 300), ("c", 300), ("d", 1000)];
    let jobs =
        jobs.into_iter().enumerate().map(|(id, (name, gpu))| submit(id as u32, job(name, gpu)));
    let starts = [fraction(0, 0, 300), fraction(0, 0, 300), fraction(0, 0, 300), whole(0, &[1])];
    let starts = starts.into_iter().enumerate().map(|(id, at)| Act::Start(id as u32, at));
    world.step(0, jobs.collect(), starts.collect());
    world.step(10, vec![finished(0, 10)], vec![]);
    world.step(30, vec![finished(1, 30), finished(3, 30)], vec![]);
    world.step(40, vec![finished(2, 40)], vec![]);
    let summary = summary(&world);
    // Four shares on two devices for 10 s, three on two for 20 s, one on one for 10 s.
    assert_eq!((summary.gpus_saved_peak, summary.gpus_held_peak), (2, 2));
    assert_eq!(summary.gpus_saved_avg, (2.0 * 10.0 + 20.0) / 40.0);
    assert_eq!(summary.gpus_held_avg, (2.0 * 30.0 + 10.0) / 40.0);
    assert_eq!(summary.gpus_saved_share, 40.0 / 110.0);
}

/// A watcher that comes later than the cluster.
#[derive(Default)]
struct Late(RefCell<Option<Metrics>>);

impl Watch for Late {
    fn began(&mut self, at: Time, state: &ClusterState, job: &Job, lease: &Lease) {
        if let Some(metrics) = self.0.get_mut() {
            metrics.began(at, state, job, lease);
        }
    }

    fn ended(&mut self, at: Time, state: &ClusterState, job: &Job, lease: &Lease) {
        if let Some(metrics) = self.0.get_mut() {
            metrics.ended(at, state, job, lease);
        }
    }

    fn retired(&mut self, at: Time, state: &ClusterState, job: &Job) {
        if let Some(metrics) = self.0.get_mut() {
            metrics.retired(at, state, job);
        }
    }
}

#[test]
fn metrics_may_join_a_cluster_at_work() {
    let mut world = World::new(Late::default(), &[2]);
    let jobs = vec![submit(0, job("a", 1000)), submit(1, job("b", 1000))];
    world.step(0, jobs, vec![Act::Start(0, whole(0, &[0]))]);
    world.step(60, vec![], vec![]);
    *world.watch().0.borrow_mut() = Some(Metrics::joining(world.state()));
    world.step(100, vec![finished(0, 100)], vec![Act::Start(1, whole(0, &[0]))]);
    world.step(160, vec![finished(1, 60)], vec![]);
    let metrics = world.watch().0.take().unwrap();
    let summary = metrics.summary(world.state());
    assert_eq!((summary.jobs_submitted, summary.jobs_done), (2, 2));
    assert_eq!((summary.avg_jct_s, summary.avg_queue_length), (130.0, 0.4));
    assert_eq!(summary.gpu_utilisation, 0.5);
}

#[test]
fn a_run_without_jobs_is_all_zero() {
    let world = World::new(Metrics::default(), &[1]);
    assert_eq!(
        summary(&world),
        Summary { by_model: summary(&world).by_model, ..Summary::default() }
    );
}
