//! Any text as the settings of a policy: a policy, or an error that says something.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = hostler_policies::builtin().from_toml(text) {
        assert!(!error.to_string().is_empty());
    }
});
