//! Any text as a fixture: read, or an error that names the line.
#![no_main]

use hostler_sim::fixture::Fixture;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = Fixture::parse(text) {
        assert!(error.to_string().starts_with("line "));
    }
});
