//! What policies do with run times that were learnt instead of told.

use expect_test::expect;
use hostler_core::metrics::Metrics;
use hostler_policies::from_toml;
use hostler_sim::lower::Workload;
use hostler_sim::trace::PaiLike;
use hostler_sim::{fixture, run};

#[test]
fn sjf_goes_by_what_like_jobs_took_and_not_by_what_their_users_say() {
    // Three short jobs of one tenant and three long ones of another teach what to expect. Then a
    // long job that claims to take a second meets a short one that claims to take a hundred.
    let scenario = "
        cluster 1
        job s1    at 0   tenant short  for 1
        job s2    at 0   tenant short  for 1
        job s3    at 0   tenant short  for 1
        job l1    at 0   tenant long   for 10
        job l2    at 0   tenant long   for 10
        job l3    at 0   tenant long   for 10
        job boast at 40  tenant long   for 10  estimate 1
        job shy   at 40  tenant short  for 1   estimate 100
    ";
    let build = || from_toml("kind = 'sjf'\nestimate = 'median'").unwrap();
    expect![[r#"
        s1     0..1
        s2     1..2
        s3     2..3
        l1     3..13
        l2     13..23
        l3     23..33
        boast  41..51
        shy    40..41
        avg jct 10.88  makespan 51  preemptions 0
    "#]]
    .assert_eq(&fixture::check(&build, scenario).text);
}

/// Enough jobs that most of them arrive while others wait.
const JOBS: u32 = 4000;
/// Times what the cluster has: with less, few jobs wait and the order hardly matters.
const LOAD: f64 = 4.0;

/// Average completion time on a seeded workload.
fn average_jct(policy: &str) -> f64 {
    let options = PaiLike { jobs: JOBS, seed: 7, scale: 20, ..PaiLike::default() };
    let cluster = options.cluster();
    let options = options.at_load(LOAD, &cluster).expect("the load can be reached");
    let trace = options.generate().expect("the options are valid");
    let workload = Workload::new(trace, &cluster).expect("the generator's own trace is valid");
    let policy = from_toml(policy).expect("the settings are valid");
    let finished = run::simulate(&workload, policy, Metrics::default(), None);
    let summary = finished.watch.summary(&finished.state);
    assert_eq!(summary.jobs_done, u64::from(JOBS));
    summary.avg_jct_s
}

#[test]
fn learnt_run_times_are_worth_something_and_the_truth_is_worth_more() {
    let strict = average_jct("kind = 'fifo'");
    let fifo = average_jct("kind = 'fifo'\nhead = 'skips'");
    let median = average_jct("kind = 'sjf'\nestimate = 'median'");
    let oracle = average_jct("kind = 'sjf'\nestimate = 'oracle'");
    let shown = format!(
        "fifo {strict:.0}, fifo that skips {fifo:.0}, sjf by median {median:.0}, by oracle {oracle:.0}"
    );
    expect!["fifo 24885, fifo that skips 9026, sjf by median 8724, by oracle 7090"]
        .assert_eq(&shown);
    assert!(fifo < strict, "{fifo} against {strict}");
    assert!(median < fifo, "{median} against {fifo}");
    assert!(oracle < median, "{oracle} against {median}");
}
