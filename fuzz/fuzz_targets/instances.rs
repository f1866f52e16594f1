//! Any bytes as `instances.csv`: a table or faults, and what reads well can be checked and written.
#![no_main]

use hostler_sim::trace::error::Faults;
use hostler_sim::trace::read::read_instances;
use hostler_sim::trace::table::Trace;
use hostler_sim::trace::write::write_instances;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    read_instances(&mut &bytes[..], "instances.csv", &mut trace, &mut faults);
    trace.arrange();
    hostler_sim::trace::check(&trace);
    if !faults.list.is_empty() {
        assert!(!faults.to_string().is_empty());
        return;
    }
    let (mut written, mut again) = (Vec::new(), Trace::default());
    write_instances(&trace, &mut written).expect("memory takes what is written");
    read_instances(&mut &written[..], "instances.csv", &mut again, &mut faults);
    again.arrange();
    assert!(faults.list.is_empty(), "{faults}");
    assert!(trace == again, "written and read back differ");
});
