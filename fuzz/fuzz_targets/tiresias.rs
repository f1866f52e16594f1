//! Any bytes as a trace of the Tiresias simulator: rows that keep the rules, or faults.
#![no_main]

use hostler_sim::trace::convert::{drop_bad, shift_to_zero};
use hostler_sim::trace::error::Faults;
use hostler_sim::trace::import::{Imported, read_tiresias};
use hostler_sim::trace::{Severity, check};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    read_tiresias(&mut &bytes[..], "jobs.csv", &mut imported, &mut faults);
    if !faults.list.is_empty() {
        return;
    }
    let mut trace = imported.trace;
    drop_bad(&mut trace);
    shift_to_zero(&mut trace);
    assert!(!check(&trace).iter().any(|finding| finding.severity() == Severity::Error));
});
