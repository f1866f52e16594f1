//! Any bytes as `tasks.csv`: a table or faults, and what reads well can be checked and written.
#![no_main]

use hostler_sim::trace::error::Faults;
use hostler_sim::trace::read::read_tasks;
use hostler_sim::trace::table::Trace;
use hostler_sim::trace::write::write_tasks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    read_tasks(&mut &bytes[..], "tasks.csv", &mut trace, &mut faults);
    trace.arrange();
    hostler_sim::trace::check(&trace);
    if !faults.list.is_empty() {
        assert!(!faults.to_string().is_empty());
        return;
    }
    let (mut written, mut again) = (Vec::new(), Trace::default());
    write_tasks(&trace, &mut written).expect("memory takes what is written");
    read_tasks(&mut &written[..], "tasks.csv", &mut again, &mut faults);
    again.arrange();
    assert!(faults.list.is_empty(), "{faults}");
    assert!(trace == again, "written and read back differ");
});
