//! Finding, configuring and refusing policies by name.

use expect_test::{Expect, expect};
use hostler_core::policy::PolicyError;
use hostler_policies::registry::settings_from_pairs;
use hostler_policies::{all, build, find, from_toml, suggestion};

fn fault<Policy>(result: Result<Policy, PolicyError>) -> String {
    result.err().map_or("built".to_owned(), |error| error.to_string())
}

fn check_fault(toml: &str, expected: Expect) {
    expected.assert_eq(&fault(from_toml(toml)));
}

#[test]
fn every_policy_builds_from_its_own_defaults() {
    for def in all() {
        let defaults = (def.defaults)();
        let names: Vec<&str> = def.settings.iter().map(|setting| setting.name).collect();
        assert_eq!(fault((def.build)(&defaults)), "built", "{}", def.kind);
        assert!(defaults.keys().all(|key| names.contains(&key.as_str())), "{}", def.kind);
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = all().map(|def| def.kind).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_policy_is_read_from_a_document_or_from_its_table_alone() {
    check_fault("[policy]\nkind = 'fifo'\nhead = 'skips'", expect!["built"]);
    check_fault("kind = 'sjf'\npreempt = true", expect!["built"]);
}

#[test]
fn what_is_wrong_is_named_with_what_would_do() {
    check_fault(
        "kind = 'fifo'\nhaed = 'skips'",
        expect![[r#"
            invalid settings for policy `fifo`: unknown field `haed`, expected one of `head`, `place`, `sharing`"#]],
    );
    check_fault(
        "kind = 'fifo'\nplace = 'worst-fit'",
        expect![[r#"
            invalid settings for policy `fifo`: `place`: unknown variant `worst-fit`, expected one of `first-fit`, `best-fit`, `consolidate`, `spread`, `balance`"#]],
    );
    check_fault(
        "kind = 'sjf'\npreempt = 'maybe'",
        expect![[r#"
            invalid settings for policy `sjf`: `preempt`: invalid type: string "maybe", expected a boolean"#]],
    );
    check_fault(
        "kind = ",
        expect!["invalid TOML: string values must be quoted, expected literal string"],
    );
}

#[test]
fn an_unknown_or_missing_name_lists_the_known_ones() {
    let mut known: Vec<&str> = all().map(|def| def.kind).collect();
    known.sort_unstable();
    let known = known.join(", ");
    assert_eq!(fault(find("fito")), format!("unknown policy `fito`; known: {known}"));
    let nameless = fault(from_toml("head = 'skips'"));
    assert_eq!(nameless, format!("the policy has no `kind`; known: {known}"));
}

#[test]
fn a_slip_of_the_pen_gets_a_suggestion_and_another_word_gets_none() {
    assert_eq!(suggestion("fito"), Some("fifo"));
    assert_eq!(suggestion("sjff"), Some("sjf"));
    assert_eq!(suggestion("gavel"), None);
}

#[test]
fn settings_on_the_command_line_are_values_or_bare_words() {
    let pairs = ["preempt=true", "estimate=oracle", "place=\"spread\""];
    let table = settings_from_pairs(pairs).unwrap();
    expect![[r#"
        estimate = "oracle"
        place = "spread"
        preempt = true
    "#]]
    .assert_eq(&table.to_string());
    assert_eq!(fault(build("sjf", &table)), "built");
    expect!["invalid setting `depth`; write `key=value`"]
        .assert_eq(&fault(settings_from_pairs(["depth"])));
}
