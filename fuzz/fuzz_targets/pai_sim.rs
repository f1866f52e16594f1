//! Any bytes as a CSV of the PAI job simulator, in both flavours.
#![no_main]

use hostler_sim::trace::convert::{drop_bad, shift_to_zero};
use hostler_sim::trace::error::Faults;
use hostler_sim::trace::import::{Flavour, Imported, read_pai_sim};
use hostler_sim::trace::{Severity, check};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for flavour in [Flavour::Estimate, Flavour::Gang] {
        let (mut imported, mut faults) = (Imported::default(), Faults::default());
        read_pai_sim(&mut &bytes[..], "pai.csv", flavour, &mut imported, &mut faults);
        if !faults.list.is_empty() {
            continue;
        }
        let mut trace = imported.trace;
        drop_bad(&mut trace);
        shift_to_zero(&mut trace);
        let is_error = |severity| severity == Severity::Error;
        assert!(!check(&trace).iter().any(|finding| is_error(finding.severity())));
    }
});
