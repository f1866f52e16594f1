//! Any text as `meta.toml`: a value that survives writing, or an error.
#![no_main]

use hostler_sim::trace::Meta;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Meta::parse(text, "meta.toml") {
        Ok(meta) => {
            let again = Meta::parse(&meta.to_toml(), "meta.toml").expect("own text is valid");
            assert_eq!(meta, again);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
