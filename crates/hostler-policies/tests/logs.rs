//! Logs that were damaged: read as far as they make sense, never a panic.

use expect_test::expect;
use hostler_core::cluster::{Layout, Power};
use hostler_core::decision::Decision;
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::id::{DeviceId, JobId, NodeId, ProfileKey};
use hostler_core::metrics::Metrics;
use hostler_core::policy::Policy;
use hostler_core::profile::Profile;
use hostler_core::reason::Reason;
use hostler_core::record::Record;
use hostler_core::replay::{Replay, ReplayError};
use hostler_core::units::{Rate, Time};
use hostler_sim::fixture;
use proptest::prelude::*;

const SCENARIO: &str = "
    node n0 gpus 2 model A cpu 8
    node n1 gpus 4 model B cpu 8
    job a at 0 gpus 2 for 100 save 5 load 5
    job b at 1 gpus 0.5 count 3 for 50
    job c at 2 gpus 4 for 10
    job d at 3 gpus 1 for 5 priority 2
    fault node-down n1 at 40 for 20
";

fn policy() -> Box<dyn Policy> {
    hostler_policies::builtin().from_toml("kind = 'srtf'").expect("the policy exists")
}

fn lines() -> Vec<String> {
    let records = fixture::check(&policy, SCENARIO).records;
    records.iter().map(|record| serde_json::to_string(record).expect("plain data")).collect()
}

fn replay(lines: &[String]) -> Result<u64, ReplayError> {
    let mut replay = Replay::new(Engine::new(policy(), Metrics::default()), true);
    for line in lines {
        let Ok(record) = serde_json::from_str::<Record>(line) else { break };
        replay.feed(&record)?;
    }
    Ok(replay.compared)
}

#[test]
fn a_log_that_is_whole_replays_to_the_same_decisions() {
    let compared = replay(&lines()).expect("the same policy decides the same");
    assert!(compared >= 8, "{compared} decisions");
}

fn records() -> Vec<Record> {
    fixture::check(&policy, SCENARIO).records
}

/// Feeds records until one is refused; the answer says why.
fn refusal(records: &[Record], ask_again: bool) -> String {
    let mut replay = Replay::new(Engine::new(policy(), Metrics::default()), ask_again);
    let refused = records.iter().find_map(|record| replay.feed(record).err());
    refused.expect("something is wrong with the log").to_string()
}

/// The log with more decisions beside its first start.
fn with_decisions(before: &[Decision], after: &[Decision]) -> Vec<Record> {
    let mut records = records();
    let first = records.iter_mut().find_map(|record| match record {
        Record::Output { decisions, .. } if !decisions.is_empty() => Some(decisions),
        Record::Output { .. } | Record::Input { .. } => None,
    });
    let decisions = first.expect("some job starts");
    *decisions = before.iter().chain(&*decisions).chain(after).cloned().collect();
    records
}

#[test]
fn decisions_that_break_each_other_are_refused() {
    let sleep = Decision::SetPower { node: NodeId(0), power: Power::Sleeping };
    let divide = Decision::Repartition { device: DeviceId(0), layout: Layout::Mig };
    let reject = Decision::Reject { job: JobId(0), reason: Reason::NoSuchModel };
    let hold = Decision::Hold { job: JobId(0), reason: Reason::NotThisRound };
    let cases: [(&[Decision], &[Decision]); 4] = [
        (&[], std::slice::from_ref(&sleep)),
        (std::slice::from_ref(&sleep), &[]),
        (std::slice::from_ref(&divide), &[]),
        (&[reject, hold], &[]),
    ];
    let refusals = cases.map(|(before, after)| refusal(&with_decisions(before, after), false));
    expect![[r#"
        record 2: node0 is in use
        record 2: node0 is in use
        record 2: node0 is in use
        record 2: job0 is decided on twice"#]]
    .assert_eq(&refusals.join("\n"));
}

#[test]
fn a_speed_of_zero_is_refused() {
    let profile = Profile { shared: Some(Rate(0)), ..Profile::default() };
    let event = Event::Profiled { key: ProfileKey(0), profile };
    let records = [Record::Input { at: Time::ZERO, events: vec![event] }];
    assert_eq!(refusal(&records, false), "record 1: profile 0: its speeds make no sense");
}

#[test]
fn a_check_demands_the_decisions_of_every_instant_once_and_in_time() {
    let whole = records();
    let is_input = |record: &&Record| matches!(record, Record::Input { .. });
    let facts_only: Vec<Record> = whole.iter().filter(is_input).cloned().collect();
    let mut twice = whole.clone();
    twice.insert(2, whole[1].clone());
    let mut late = whole.clone();
    if let Record::Output { at, .. } = &mut late[1] {
        *at = Time::from_secs(99);
    }
    for log in [facts_only, late] {
        let refused = refusal(&log, true);
        assert_eq!(refused, "record 2: facts and the decisions on them do not go together");
    }
    let refused = refusal(&twice, true);
    assert_eq!(refused, "record 3: facts and the decisions on them do not go together");
}

/// The numbers of a line, as ranges of bytes.
fn numbers(line: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, byte) in line.bytes().enumerate() {
        match (byte.is_ascii_digit(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                found.push(from..at);
                start = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_number_is_refused_or_makes_sense(
        line in any::<prop::sample::Index>(),
        number in any::<prop::sample::Index>(),
        value in prop_oneof![0u64..4, 0u64..5000, Just(u64::from(u32::MAX)), any::<u64>()],
        dropped in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut lines = lines();
        let at = line.index(lines.len());
        let spots = numbers(&lines[at]);
        if !spots.is_empty() {
            let spot = spots[number.index(spots.len())].clone();
            lines[at].replace_range(spot, &value.to_string());
        }
        if let Some(dropped) = dropped {
            lines.remove(dropped.index(lines.len()));
        }
        // Either answer will do; a panic fails the test.
        let _ = replay(&lines);
    }
}
