//! What goes wrong, and true speeds: schedules under faults, worked out by hand.
//!
//! The fixture's own checks run in every test: the same log twice, a log that folds to the state,
//! and after every step bookings that add up, so that nothing is booked twice. Here, too: no job
//! is lost, unless the test says which.

mod nodes;
mod reports;
mod speeds;
mod starts;

use expect_test::Expect;
use hostler_core::engine::Engine;
use hostler_core::metrics::Metrics;
use hostler_sim::fixture;

/// Runs a fixture under a policy and compares the stays, what was lost and started again, jobs
/// that are not over, and the number of facts that came too late to matter.
#[track_caller]
fn check(policy: &str, text: &str, expected: Expect) {
    let build = || hostler_policies::builtin().from_toml(policy).expect("the policy is known");
    let checked = fixture::check(&build, text);
    let jobs = text.lines().filter(|line| line.trim_start().starts_with("job ")).count();
    assert_eq!(checked.endings.len() + checked.state.job_count(), jobs, "a job is lost");
    let mut engine = Engine::new(build(), Metrics::default());
    checked.records.iter().for_each(|record| engine.fold(record));
    let summary = engine.watch().summary(engine.state());
    let mut shown = checked.text;
    if summary.restarts > 0 {
        let (restarts, lost) = (summary.restarts, summary.lost_work_s);
        shown += &format!("restarts {restarts}  lost work {lost}\n");
    }
    for job in checked.state.jobs() {
        shown += &format!("not over: {}\n", job.spec.name);
    }
    let stale = checked.state.stale_events();
    if stale > 0 {
        shown += &format!("stale facts {stale}\n");
    }
    expected.assert_eq(&shown);
}
