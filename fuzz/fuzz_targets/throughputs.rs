//! Any bytes as throughput tables in both formats: speeds that profiles can hold, or faults.
#![no_main]

use hostler_sim::trace::error::Faults;
use hostler_sim::trace::throughputs::{
    Throughputs, read_gavel_throughputs, read_pair_table, read_throughput_table,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut tables, mut faults) = (Throughputs::default(), Faults::default());
    read_throughput_table(&mut &bytes[..], "throughputs.csv", &mut tables, &mut faults);
    read_pair_table(&mut &bytes[..], "pairs.csv", &mut tables, &mut faults);
    read_gavel_throughputs(&mut &bytes[..], "throughputs.json", &mut tables, &mut faults);
    assert_eq!(tables.profiles(&[]).len(), tables.workloads().len());
});
