//! Schedules of small scenarios, as text.

mod attained;
mod backfill;
mod fair;
mod found;
mod gates;
mod leases;
mod order;
mod reference;
mod regressions;
mod reserve;
mod sharing;
mod slices;
mod suspended;
mod unsaved;

use std::sync::{Arc, LazyLock};

use expect_test::Expect;
use hostler_core::decision::Decision;
use hostler_core::policy::Policy;
use hostler_core::record::Record;
use hostler_core::registry::Registry;
use hostler_sim::fixture::{self, Fixture};

/// Made once: every fixture builds its policy anew before each question.
static REGISTRY: LazyLock<Registry> = LazyLock::new(hostler_policies::builtin);

fn build(policy: &str) -> Box<dyn Policy> {
    REGISTRY.from_toml(policy).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario under a policy, with all checks that come with it, and compares the stays of
/// every job.
fn check(policy: &str, scenario: &str, expected: Expect) {
    expected.assert_eq(&fixture::check(&|| build(policy), scenario).text);
}

/// As [`check`], under several policies of which all must give the same.
fn check_of(kinds: &[&str], scenario: &str, expected: Expect) {
    let texts = kinds.iter().map(|kind| {
        let policy = format!("kind = '{kind}'");
        fixture::check(&|| build(&policy), scenario).text
    });
    expected.assert_eq(&same(kinds, texts));
}

/// As [`check_of`], with users who do not say how long their jobs run.
fn check_without_estimates(kinds: &[&str], scenario: &str, expected: Expect) {
    let mut scenario = Fixture::parse(scenario).unwrap_or_else(|error| panic!("{error}"));
    for (_, spec) in &mut scenario.jobs {
        Arc::make_mut(spec).user_estimate = None;
    }
    let texts = kinds.iter().map(|kind| {
        let policy = format!("kind = '{kind}'\nestimate = 'user'");
        scenario.check(&|| build(&policy)).text
    });
    expected.assert_eq(&same(kinds, texts));
}

/// Runs a scenario and compares what those who wait are told.
fn check_reasons(policy: &str, scenario: &str, expected: Expect) {
    expected.assert_eq(&reasons(policy, scenario));
}

/// As [`check_reasons`], under several policies of which all must give the same.
fn check_reasons_of(kinds: &[&str], scenario: &str, expected: Expect) {
    let texts = kinds.iter().map(|kind| reasons(&format!("kind = '{kind}'"), scenario));
    expected.assert_eq(&same(kinds, texts));
}

fn reasons(policy: &str, scenario: &str) -> String {
    let mut text = String::new();
    for record in &fixture::check(&|| build(policy), scenario).records {
        let Record::Output { at, decisions, .. } = record else {
            continue;
        };
        for decision in decisions {
            if let Decision::Hold { job, reason } | Decision::Reject { job, reason } = decision {
                text += &format!("{at}  job {}: {reason}\n", job.0);
            }
        }
    }
    text
}

fn same(kinds: &[&str], texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    for (kind, text) in kinds.iter().zip(&texts) {
        assert_eq!(text, &texts[0], "{kind} differs from {}", kinds[0]);
    }
    texts[0].clone()
}
