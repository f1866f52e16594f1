//! A trace at another load: what moves, what stays, what cannot be reached.

use expect_test::expect;

use super::tables;
use crate::trace::{
    Cluster, PaiLike, Severity, TaskRow, Trace, check, load, rescale, runnable_load, scaled,
};

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
    let cluster = trace.cluster("");
    assert_eq!(load(&trace, &cluster.nodes).gpu, 1.0);
    rescale(&mut trace, &cluster, 2.0).unwrap();
    assert_eq!(load(&trace, &cluster.nodes).gpu, 2.0);
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
        rescale(&mut trace, &cluster, target).unwrap();
        let reached = load(&trace, &cluster.nodes).max();
        assert!((reached / target - 1.0).abs() < 0.01, "load {reached}, wanted {target}");
        assert!(trace.jobs.is_sorted_by_key(|job| job.submit_ms), "jobs change places");
        assert_eq!(trace.jobs[0].submit_ms, base.jobs[0].submit_ms);
        assert_eq!(trace.tasks, base.tasks);
    }
}

#[test]
fn work_that_the_machines_can_never_run_is_no_load() {
    let nodes = "node_id,gpu_model,gpu_count,cpu_milli\nm,T4,2,\nn,V100,2,\nn,V100,2,\n";
    let jobs = "job_id,submit_ms\nruns,0\nmodel,0\nsize,0\nwhole,0\nlast,10000\n";
    let tasks = "job_id,count,gpu_milli,gpu_models,duration_ms\nruns,1,1000,V100|H200,10000\n\
                 model,1,1000,H200,10000\nsize,1,3000,,10000\nwhole,5,1000,,10000\n\
                 last,4,1000,,10000\n";
    let mut trace = tables(nodes, jobs, tasks, "").unwrap();
    let cluster = trace.cluster("");
    // One GPU and four of four, for the ten seconds in which they come.
    assert_eq!(runnable_load(&trace, &cluster).gpu, 1.25);
    assert_eq!(load(&trace, &cluster.nodes).gpu, 3.5);
    rescale(&mut trace, &cluster, 2.5).unwrap();
    assert_eq!(trace.jobs[4].submit_ms, 5000);
}

#[test]
fn work_that_no_machine_of_its_pool_can_ever_run_is_no_load() {
    // `a` moves from `p` to `q`.
    let nodes = "node_id,pool,gpu_count,cpu_milli,up_from_s,up_to_s\na,p,2,,0,100\na,q,2,,100,\n\
                 b,q,4,,,\n";
    let jobs = "job_id,queue,submit_ms\nfits,p,0\nwide,p,0\nboth,q,0\nfree,,0\nother,r,10000\n";
    let tasks = "job_id,count,gpu_milli,duration_ms\nfits,2,1000,10000\nwide,3,1000,10000\n\
                 both,6,1000,10000\nfree,1,4000,10000\nother,1,4000,10000\n";
    let trace = tables(nodes, jobs, tasks, "").unwrap();
    let cluster = trace.cluster("");
    // `wide` fits `b` but not its pool; `r` is no pool, so that `other` may go anywhere.
    assert_eq!(runnable_load(&trace, &cluster).gpu, (2.0 + 6.0 + 4.0 + 4.0) / 6.0);
}

#[test]
fn what_cannot_be_scaled_is_told() {
    let told = |mut trace: Trace, target: f64| {
        let cluster = trace.cluster("");
        let error = rescale(&mut trace, &cluster, target).expect_err("it cannot be scaled");
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
