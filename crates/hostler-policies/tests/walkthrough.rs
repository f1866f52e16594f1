//! The policy that `CONTRIBUTING.md` walks through: it compiles, schedules as the page says, and
//! the page shows this very text.

#[path = "walkthrough/largest_first.rs"]
mod largest_first;

use expect_test::{Expect, expect};
use hostler_core::policy::{Policy, PolicyError};
use hostler_core::registry::Registry;
use hostler_policies::place;
use hostler_sim::fixture;

const TEST: &str = include_str!("walkthrough.rs");
const CODE: &str = include_str!("walkthrough/largest_first.rs");
const PAGE: &str = include_str!("../../../CONTRIBUTING.md");

const SCENARIO: &str = "\
cluster 4
job a  at 0  gpus 3  for 10
job b  at 1  gpus 1  for 20
job c  at 2  gpus 2  for 5
job d  at 3  gpus 4  for 5
job e  at 4  gpus 1  for 5
";

fn build(settings: &str) -> Box<dyn Policy> {
    let built = with_one_of_ours()
        .and_then(|registry| registry.from_toml(&format!("kind = 'largest-first'\n{settings}")));
    built.unwrap_or_else(|error| panic!("{error}"))
}

fn with_one_of_ours() -> Result<Registry, PolicyError> {
    let mut registry = hostler_policies::builtin();
    registry.register(largest_first::def())?;
    Ok(registry)
}

fn check(settings: &str, expected: Expect) {
    expected.assert_eq(&fixture::check(&|| build(settings), SCENARIO).text);
}

#[test]
fn the_largest_job_that_fits_starts_first() {
    check(
        "",
        expect![[r#"
            a  0..10
            b  1..21
            c  10..15
            d  21..26
            e  10..15
            avg jct 15.40  makespan 26  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_that_blocks_keeps_smaller_ones_back() {
    check(
        "head = 'blocks'",
        expect![[r#"
            a  0..10
            b  1..21
            c  26..31
            d  21..26
            e  26..31
            avg jct 21.80  makespan 31  preemptions 0
        "#]],
    );
}

#[test]
fn the_page_shows_the_code_that_is_tested_here() {
    assert!(
        PAGE.contains(&format!("```rust\n{CODE}```\n")),
        "CONTRIBUTING.md is stale: paste tests/walkthrough/largest_first.rs into its `rust` block"
    );
}

#[test]
fn the_page_shows_how_a_policy_is_registered_here() {
    let (_, rest) = TEST.split_once("\nfn with_one_of_ours").expect("it is in this file");
    let (body, _) = rest.split_once("\n}\n").expect("it ends");
    let function = format!("```rust\nfn with_one_of_ours{body}\n}}\n```\n");
    assert!(PAGE.contains(&function), "CONTRIBUTING.md is stale: paste `with_one_of_ours`");
}

#[test]
fn the_page_shows_the_test_that_is_run_here() {
    let scenario: String = SCENARIO.lines().map(|line| format!("        {line}\n")).collect();
    assert!(PAGE.contains(&scenario), "CONTRIBUTING.md is stale: its scenario is another one");
}
