//! Logs that were damaged: read as far as they make sense, never a panic.

use hostler_core::engine::Engine;
use hostler_core::metrics::Metrics;
use hostler_core::policy::Policy;
use hostler_core::record::Record;
use hostler_core::replay::{Replay, ReplayError};
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
    hostler_policies::from_toml("kind = 'srtf'").expect("the policy exists")
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
