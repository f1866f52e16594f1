//! Any bytes as a log: folded as far as they make sense, with the policy asked again.
#![no_main]

use hostler_core::engine::Engine;
use hostler_core::metrics::Metrics;
use hostler_core::record::Record;
use hostler_core::replay::Replay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let registry = hostler_policies::builtin();
    let policy = registry.from_toml("kind = 'sjf'\npreempt = true").expect("a policy");
    let mut replay = Replay::new(Engine::new(policy, Metrics::default()), true);
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Record>(line) else { return };
        if replay.feed(&record).is_err() {
            return;
        }
    }
});
