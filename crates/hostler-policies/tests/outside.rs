//! A policy from outside is like any other: found by name, built by TOML, listed, run.

#[path = "outside/listed_first.rs"]
mod listed_first;

use expect_test::expect;
use hostler_core::policy::PolicyError;
use hostler_sim::fixture;

#[test]
fn a_policy_from_outside_is_registered_and_schedules() {
    let mut registry = hostler_policies::builtin();
    let kind = format!("urgent-{}", 2);
    registry.register(listed_first::def(kind, &["c", "b"])).expect("the name is free");
    assert_eq!(registry.all().last().map(|def| &*def.summary), Some("c, b first"));
    let toml = "[policy]\nkind = 'urgent-2'\nhead = 'blocks'";
    let build = || registry.from_toml(toml).unwrap_or_else(|error| panic!("{error}"));
    let scenario = "
        cluster 2
        job a  at 0  gpus 2  for 10
        job b  at 1  gpus 1  for 5
        job c  at 2  gpus 2  for 5
        job d  at 2  gpus 1  for 1
    ";
    expect![[r#"
        a  0..10
        b  15..20
        c  10..15
        d  15..16
        avg jct 14.00  makespan 20  preemptions 0
    "#]]
    .assert_eq(&fixture::check(&build, scenario).text);
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let mut registry = hostler_policies::builtin();
    let count = registry.all().count();
    let kind = hostler_policies::SIMPLEST.to_owned();
    let refused = registry.register(listed_first::def(kind.clone(), &[]));
    assert_eq!(refused, Err(PolicyError::Taken { kind }));
    assert_eq!(registry.all().count(), count);
}
