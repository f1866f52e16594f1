//! Finding, configuring and refusing policies by name.

use expect_test::{Expect, expect};
use hostler_core::policy::{ESTIMATE_SETTING, PolicyError};
use hostler_core::predict::EstimateSource;
use hostler_core::registry::settings_from_pairs;
use hostler_policies::{DEFAULT, SIMPLEST, builtin};

fn fault<Policy>(result: Result<Policy, PolicyError>) -> String {
    result.err().map_or("built".to_owned(), |error| error.to_string())
}

fn check_fault(toml: &str, expected: Expect) {
    expected.assert_eq(&fault(builtin().from_toml(toml)));
}

#[test]
fn every_policy_builds_from_its_own_defaults() {
    for def in builtin().all() {
        let names: Vec<&str> = def.settings.iter().map(|setting| &*setting.name).collect();
        assert_eq!(fault(def.build(&def.defaults)), "built", "{}", def.kind);
        assert!(def.defaults.keys().all(|key| names.contains(&key.as_str())), "{}", def.kind);
    }
}

#[test]
fn a_policy_that_solves_says_so_and_by_which_setting_how_often() {
    for def in builtin().all() {
        let policy = def.build(&def.defaults).expect("defaults are valid");
        assert_eq!(policy.solver().is_some(), def.solve_gap.is_some(), "{}", def.kind);
        let gap = def.solve_gap.as_deref();
        let known = gap.is_none_or(|gap| def.settings.iter().any(|setting| setting.name == gap));
        assert!(known, "{}: {gap:?} is no setting", def.kind);
    }
}

#[test]
fn a_policy_goes_by_estimates_as_its_setting_says_and_only_then() {
    for def in builtin().all() {
        if !def.defaults.contains_key(ESTIMATE_SETTING) {
            let policy = def.build(&def.defaults).unwrap();
            assert_eq!(policy.estimates(), EstimateSource::User, "{}", def.kind);
            continue;
        }
        for (text, source) in [("user", EstimateSource::User), ("blend", EstimateSource::Blend)] {
            let table = settings_from_pairs([format!("estimate={text}").as_str()]).unwrap();
            assert_eq!(def.build(&table).unwrap().estimates(), source, "{}", def.kind);
        }
    }
}

#[test]
fn every_setting_says_what_it_means() {
    for def in builtin().all() {
        for setting in def.settings.iter() {
            assert!(!setting.help.is_empty(), "{}: {}", def.kind, setting.name);
        }
    }
}

#[test]
fn the_default_and_the_simplest_policy_exist() {
    let (kind, settings) = DEFAULT.split_once(':').expect("a real cluster has no oracle");
    let settings = settings_from_pairs(settings.split(':')).expect("pairs");
    let policy = builtin().build(kind, &settings).expect("the default can be built");
    assert_eq!(policy.estimates(), EstimateSource::User);
    assert_eq!(fault(builtin().find(SIMPLEST)), "built");
}

#[test]
fn nothing_stands_beside_the_table_of_the_policy() {
    check_fault(
        "preempt = true\n[policy]\nkind = 'sjf'",
        expect!["unknown key `preempt` beside `[policy]`; settings go into that table"],
    );
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
        expect![
            "invalid settings for policy `fifo`: unknown field `haed`, expected one of `head`, `place`, `sharing`, `fair_share_days`"
        ],
    );
    check_fault(
        "kind = 'fifo'\nplace = 'worst-fit'",
        expect![[r#"
            invalid settings for policy `fifo`: `place`: unknown variant `worst-fit`, expected one of `first-fit`, `best-fit`, `consolidate`, `spread`, `balance`, `by-skew`, `affinity`"#]],
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
    let registry = builtin();
    let mut known: Vec<&str> = registry.all().map(|def| &*def.kind).collect();
    known.sort_unstable();
    let known = known.join(", ");
    assert_eq!(fault(registry.find("fito")), format!("unknown policy `fito`; known: {known}"));
    let nameless = fault(builtin().from_toml("head = 'skips'"));
    assert_eq!(nameless, format!("the policy has no `kind`; known: {known}"));
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
    assert_eq!(fault(builtin().build("sjf", &table)), "built");
    expect!["invalid setting `depth`; write `key=value`"]
        .assert_eq(&fault(settings_from_pairs(["depth"])));
}
