//! The past as a stage: who used much before comes later, whatever the order says.

use expect_test::expect;

use super::orders::ByPriority;
use crate::pipeline::{HalfLifeDays, Pipeline};
use crate::policy::Policy;
use crate::testkit::*;

/// Half of it counts after 640 s: it is weighed every 10 s.
fn fair() -> Pipeline {
    let days = HalfLifeDays::try_from(640.0 / 86_400.0).unwrap();
    Pipeline::new(ByPriority::default(), Box::new(FirstFit)).with_fair_share(days)
}

const JOBS: &str = "
    0 gpus 1 lasts 20
    1 gpus 1 lasts 20
    2 gpus 1 lasts 20 priority 1
    3 gpus 1 lasts 20 tenant 1
    4 gpus 1 lasts 20 tenant 1
";

#[test]
fn who_used_less_comes_first() {
    // Both jobs of the tenant that used nothing overtake: the last time before job 4 started at
    // which the past was weighed, it was still behind. Then the order itself counts.
    let schedule = Schedule::new("1", fair()).jobs(JOBS).run();
    expect![[r#"
        job0 0..20
        job1 80..100
        job2 60..80
        job3 20..40
        job4 40..60
    "#]]
    .assert_eq(&schedule);
}

#[test]
fn a_policy_that_remembers_nothing_decides_the_same() {
    let forgetful = Schedule::new("1", fair()).forgetful(|| Box::new(fair()) as Box<dyn Policy>);
    assert_eq!(forgetful.jobs(JOBS).run(), Schedule::new("1", fair()).jobs(JOBS).run());
}

#[test]
fn days_make_sense_or_are_refused() {
    assert!(HalfLifeDays::try_from(-1.0).is_err());
    assert!(HalfLifeDays::try_from(1e-9).is_err());
    assert!(HalfLifeDays::try_from(f64::NAN).is_err());
    assert_eq!(HalfLifeDays::default().span(), None);
}
