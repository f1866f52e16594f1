//! A trace at another load: what moves, what stays, what cannot be reached.

use expect_test::expect;

use super::tables;
use crate::trace::{Cluster, PaiLike, Severity, TaskRow, Trace, check, load, rescale, scaled};

/// Two jobs that keep two GPUs busy for 10 s each, submitted 10 s apart: load 1 on 4 GPUs.
fn two_jobs(gap_ms: u64) -> Trace {
    let nodes = "node_id,gpu_count,cpu_milli\nn,4,\n";
    let jobs = format!("job_id,submit_ms,deadline_ms\na,5000,\nb,{},40000\n", 5000 + gap_ms);
    let tasks = "job_id,count,gpu_milli,duration_ms,start_ms,end_ms\n\
                 a,2,1000,10000,6000,16000\nb,2,1000,,17000,27000\n";
    let instances = "job_id,start_ms,end_ms\nb,17000,27000\n";
    tables(nodes, &jobs, tasks, instances).unwrap()
}

#[test]
fn submissions_move_around_the_first_and_recorded_times_go_with_them() {
    let mut trace = two_jobs(10_000);
    let nodes = trace.nodes.clone();
    assert_eq!(load(&trace, &nodes).gpu, 1.0);
    rescale(&mut trace, &nodes, 2.0).unwrap();
    assert_eq!(load(&trace, &nodes).gpu, 2.0);
    let mut text = String::new();
    for job in &trace.jobs {
        let TaskRow { start_ms, end_ms, .. } = trace.tasks_of(job)[0];
        let (submit, deadline) = (job.submit_ms, job.deadline_ms);
        text += &format!("{submit} {start_ms:?}..{end_ms:?}, deadline {deadline:?}\n");
    }
    let instance = trace.instances[0];
    text += &format!("instance {:?}..{:?}\n", instance.start_ms, instance.end_ms);
    expect![[r#"
        5000 Some(6000)..Some(16000), deadline None
        10000 Some(12000)..Some(22000), deadline Some(35000)
        instance Some(12000)..Some(22000)
    "#]]
    .assert_eq(&text);
    let sound = |trace: &Trace| check(trace).iter().all(|f| f.severity() != Severity::Error);
    assert!(sound(&trace), "{:?}", check(&trace));
}

#[test]
fn any_load_is_reached_within_a_hundredth_and_the_jobs_stay_as_they_are() {
    let options = PaiLike { jobs: 500, scale: 20, ..PaiLike::default() };
    let cluster = scaled(&Cluster::pai(), 20);
    let base = options.generate().unwrap();
    for target in [0.05, 0.5, 1.0, 1.2, 2.0, 50.0] {
        let mut trace = base.clone();
        rescale(&mut trace, &cluster.nodes, target).unwrap();
        let reached = load(&trace, &cluster.nodes).max();
        assert!((reached / target - 1.0).abs() < 0.01, "load {reached}, wanted {target}");
        assert!(trace.jobs.is_sorted_by_key(|job| job.submit_ms), "jobs change places");
        assert_eq!(trace.jobs[0].submit_ms, base.jobs[0].submit_ms);
        assert_eq!(trace.tasks, base.tasks);
    }
}

#[test]
fn what_cannot_be_scaled_is_told() {
    let told = |mut trace: Trace, target: f64| {
        let nodes = trace.nodes.clone();
        let error = rescale(&mut trace, &nodes, target).expect_err("it cannot be scaled");
        format!("{error}\n")
    };
    let mut idle = two_jobs(10_000);
    idle.tasks.iter_mut().for_each(|task| task.gpu_milli = None.into());
    let messages = [
        told(two_jobs(0), 1.0),
        told(Trace::default(), 1.0),
        told(idle, 1.0),
        told(two_jobs(10_000), 1e5),
        told(two_jobs(10_000), 1e-13),
        told(two_jobs(10_000), 0.0),
        told(two_jobs(10_000), f64::NAN),
    ];
    expect![[r#"
        no two jobs are submitted at different times, so no load can be set; leave the loads out
        no two jobs are submitted at different times, so no load can be set; leave the loads out
        the jobs keep nothing of the cluster busy, so no load can be set; give `gpu_milli` or `cpu_milli` and run times in tasks.csv
        load `100000` is out of reach: times are whole milliseconds up to 2^53; give another
        load `0.0000000000001` is out of reach: times are whole milliseconds up to 2^53; give another
        invalid `load`: 0; expected a number above 0
        invalid `load`: NaN; expected a number above 0
    "#]].assert_eq(&messages.concat());
}
