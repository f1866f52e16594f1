//! Any bytes as `jobs.csv`: a table or faults, and what reads well can be checked and written.
#![no_main]

use hostler_sim::trace::error::Faults;
use hostler_sim::trace::read::read_jobs;
use hostler_sim::trace::table::Trace;
use hostler_sim::trace::write::write_jobs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    read_jobs(&mut &bytes[..], "jobs.csv", &mut trace, &mut faults);
    trace.arrange();
    hostler_sim::trace::check(&trace);
    if !faults.list.is_empty() {
        assert!(!faults.to_string().is_empty());
        return;
    }
    let (mut written, mut again) = (Vec::new(), Trace::default());
    write_jobs(&trace, &mut written).expect("memory takes what is written");
    read_jobs(&mut &written[..], "jobs.csv", &mut again, &mut faults);
    again.arrange();
    assert!(faults.list.is_empty(), "{faults}");
    assert!(trace == again, "written and read back differ");
});
