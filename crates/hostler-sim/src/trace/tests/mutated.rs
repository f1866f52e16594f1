//! Readers meet damaged bytes: they answer with a value or an error, and never panic.

use std::io::Read;

use proptest::prelude::*;

use super::super::check::{Finding, Severity, check};
use super::super::cluster::{Cluster, LECTURE};
use super::super::convert::{drop_bad, shift_to_zero};
use super::super::error::Faults;
use super::super::import::{
    Flavour, ImportOptions, Imported, read_gavel, read_helios, read_helios_gpus, read_openb_nodes,
    read_openb_pods, read_pai_sim, read_philly, read_philly_table, read_sacct, read_tiresias,
};
use super::super::meta::Meta;
use super::super::read::{read_instances, read_jobs, read_nodes, read_tasks};
use super::super::table::Trace;
use super::super::throughputs::{
    Throughputs, read_gavel_throughputs, read_pair_table, read_throughput_table,
};
use super::super::write::{write_instances, write_jobs, write_nodes, write_tasks};
use super::{JOBS, NODES, TASKS};

const INSTANCES: &str = "job_id,task,index,node_id,start_ms,end_ms,status,cpu_use_milli,\
                         gpu_use_milli,gpu_mem_used_mib\na,worker,0,n1,5,6,Failed,1,2,3\n";
const META: &str = "source = \"x\"\n[rows]\njobs = 2\n[[inputs]]\nfile = \"f\"\nbytes = 1\n\
                    sha256 = \"00\"\n";
const SIM: &str = "job_id,user,num_gpu,num_cpu,num_pod,num_inst,duration,submit_time,gpu_type\n\
                   0,u,0.5,6.0,2.0,2,10,3,V100\n1,u,8,96,1,1,20,4,CPU\n";

const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,\
                    creation_time,deletion_time,scheduled_time\n\
                    a,12000,16384,1,460,A|B,LS,Running,10,70,12\n";
const PHILLY: &str = r#"[{"status": "Pass", "vc": "v", "jobid": "a", "user": "u",
    "submitted_time": "2017-10-09 07:00:00", "attempts": [
    {"start_time": "2017-10-09 07:01:00", "end_time": "2017-10-09 07:02:00",
     "detail": [{"ip": "m", "gpus": ["g0", "g1"]}, {"ip": "n", "gpus": ["g0"]}]}]}]"#;
const PHILLY_TABLE: &str = "timestamp,duration,num_gpus,gpu_time,cluster\n\
                            2017-10-09 07:01:55,66.0,12,66.0,11cb48\n";
const HELIOS: &str = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,\
                      end_time,duration,queue\n1,u,v,5,4,2,COMPLETED,2020-04-01 00:00:10,\
                      2020-04-01 00:00:20,2020-04-01 00:01:20,60,10\n";
const HELIOS_GPUS: &str = "date,vcA,vcB,total\n2020-04-01,16,0,16\n2020-04-02,8,4,20\n";
const SACCT: &str = "JobIDRaw|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|ReqTRES|\
                     NodeList|Constraints\n1|TIMEOUT|2024-05-01T00:01:00|2024-05-01T00:02:00|\
                     2024-05-01T00:03:00|60|1|3|cpu=7,mem=1.5G,gres/gpu:a=4|n[1-2],m|V100\n";
const GAVEL: &str = "LM (5)\tpython3 x\tlm\t-s\t1\t346\t2\t1\t-1.0\t0.5\n";

const SPEEDS: &str = "workload,gpu_model,gpus,spread,steps_per_sec\n\
                      a,V100,1,0,8\na,V100,2,1,14.5\nb,K80,1,0,0\n";
const PAIRS: &str = "workload,other,gpu_model,steps_per_sec,other_steps_per_sec\n\
                     a,b,V100,6,2\nb,b,K80,0,0\n";
const GAVEL_SPEEDS: &str = r#"{"v100": {"('a', 1)": {"null": 8.0, "('b', 1)": [6.0, 2.0]},
    "('a', 2)": {"null": 15}}, "v100_unconsolidated": {"('a', 2)": {"null": 9.5}}}"#;

const TIRESIAS: &str = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n\
                        0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n";

type Importer = fn(&mut dyn Read, &str, &ImportOptions, &mut Imported, &mut Faults);

const LOGS: [(&str, Importer); 9] = [
    ("sn,cpu_milli,memory_mib,gpu,model\nn,1,2,8,G2\n", |input, file, _, imported, faults| {
        read_openb_nodes(input, file, imported, faults);
    }),
    (PODS, |input, file, _, imported, faults| read_openb_pods(input, file, imported, faults)),
    (PHILLY, read_philly),
    (PHILLY_TABLE, read_philly_table),
    (HELIOS, read_helios),
    (HELIOS_GPUS, read_helios_gpus),
    (SACCT, read_sacct),
    (GAVEL, |input, file, _, imported, faults| read_gavel(input, file, imported, faults)),
    (TIRESIAS, |input, file, _, imported, faults| read_tiresias(input, file, imported, faults)),
];

/// What imports without a fault obeys the rules after dropping, and its tables read back.
fn imports(bytes: &[u8], reader: Importer) {
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    reader(&mut &bytes[..], "log", &ImportOptions::default(), &mut imported, &mut faults);
    if !faults.list.is_empty() {
        assert!(!faults.to_string().is_empty());
        return;
    }
    let dropped: u64 = imported.dropped.values().sum();
    let kept = imported.trace.jobs.len() as u64;
    assert!(dropped + kept <= imported.rows_read["log"]);
    let mut trace = imported.trace;
    drop_bad(&mut trace);
    shift_to_zero(&mut trace);
    let is_error = |finding: &Finding| finding.severity() == Severity::Error;
    assert!(!check(&trace).iter().any(is_error));
    let mut again = Trace { meta: trace.meta.clone(), ..Trace::default() };
    let tables: [(TableWriter, TableReader); 3] =
        [(write_nodes, read_nodes), (write_jobs, read_jobs), (write_tasks, read_tasks)];
    for (write, read) in tables {
        let mut written = Vec::new();
        write(&trace, &mut written).unwrap();
        read(&mut &written[..], "t.csv", &mut again, &mut faults);
    }
    again.arrange();
    assert_eq!(faults.list, []);
    assert!(trace == again);
}

/// A change at one place: overwrite, insert or cut. Pieces that mean something are likelier to
/// get past the first check than random bytes.
fn mutation() -> impl Strategy<Value = (prop::sample::Index, Vec<u8>, usize)> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::sample::select(vec![
            "\"",
            ",",
            "\n",
            "\r",
            "-1",
            "NaN",
            "inf",
            "1e308",
            "18446744073709551616",
            "4294967295",
            "9007199254740992",
            "=",
            "[",
            "\0",
            "|",
            ";",
            "0.0000001",
            "a=b",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    (any::<prop::sample::Index>(), piece, 0..12usize)
}

fn mutated(text: &str, changes: &[(prop::sample::Index, Vec<u8>, usize)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (at, piece, cut) in changes {
        let start = at.index(bytes.len() + 1);
        let end = (start + cut).min(bytes.len());
        bytes.splice(start..end, piece.iter().copied());
    }
    bytes
}

type TableWriter = fn(&Trace, &mut dyn std::io::Write) -> std::io::Result<()>;
type TableReader = fn(&mut dyn Read, &str, &mut Trace, &mut Faults);

/// What reads well can be checked and written, and reads again as the same.
fn survives(bytes: &[u8], reader: TableReader, table: usize) {
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    reader(&mut &bytes[..], "t.csv", &mut trace, &mut faults);
    trace.arrange();
    check(&trace);
    if !faults.list.is_empty() {
        assert!(!faults.to_string().is_empty());
        return;
    }
    let writers = [write_nodes, write_jobs, write_tasks, write_instances];
    let mut written = Vec::new();
    writers[table](&trace, &mut written).unwrap();
    let mut again = Trace::default();
    reader(&mut &written[..], "t.csv", &mut again, &mut faults);
    again.arrange();
    assert_eq!(faults.list, []);
    assert!(trace == again, "{}", String::from_utf8_lossy(&written));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_tables_never_panic(changes in prop::collection::vec(mutation(), 0..5)) {
        let tables: [(&str, TableReader); 4] = [
            (NODES, read_nodes),
            (JOBS, read_jobs),
            (TASKS, read_tasks),
            (INSTANCES, read_instances),
        ];
        for (table, (text, reader)) in tables.into_iter().enumerate() {
            survives(&mutated(text, &changes), reader, table);
        }
    }

    #[test]
    fn damaged_toml_never_panics(changes in prop::collection::vec(mutation(), 0..5)) {
        let text = |source| String::from_utf8_lossy(&mutated(source, &changes)).into_owned();
        if let Ok(meta) = Meta::parse(&text(META), "meta.toml") {
            prop_assert_eq!(Meta::parse(&meta.to_toml(), "meta.toml").unwrap(), meta);
        }
        if let Ok(cluster) = Cluster::parse(&text(LECTURE), "c.toml") {
            prop_assert!(cluster.capacity().nodes > 0);
        }
    }

    #[test]
    fn damaged_logs_never_panic(changes in prop::collection::vec(mutation(), 0..5)) {
        for (text, reader) in LOGS {
            imports(&mutated(text, &changes), reader);
        }
    }

    #[test]
    fn damaged_throughput_tables_never_panic(changes in prop::collection::vec(mutation(), 0..5)) {
        let (mut tables, mut faults) = (Throughputs::default(), Faults::default());
        let bytes = [SPEEDS, PAIRS, GAVEL_SPEEDS].map(|text| mutated(text, &changes));
        read_throughput_table(&mut &bytes[0][..], "t.csv", &mut tables, &mut faults);
        read_pair_table(&mut &bytes[1][..], "p.csv", &mut tables, &mut faults);
        let mut gavel = Throughputs::default();
        read_gavel_throughputs(&mut &bytes[2][..], "t.json", &mut gavel, &mut faults);
        prop_assert!(faults.list.is_empty() || !faults.to_string().is_empty());
        for tables in [tables, gavel] {
            prop_assert_eq!(tables.profiles(&[]).len(), tables.workloads().len());
        }
    }

    #[test]
    fn damaged_simulator_files_never_panic(changes in prop::collection::vec(mutation(), 0..5)) {
        for flavour in [Flavour::Estimate, Flavour::Gang] {
            let (mut imported, mut faults) = (Imported::default(), Faults::default());
            let bytes = mutated(SIM, &changes);
            read_pai_sim(&mut &bytes[..], "s.csv", flavour, &mut imported, &mut faults);
            let dropped: u64 = imported.dropped.values().sum();
            let kept = imported.trace.jobs.len() as u64;
            prop_assert!(dropped + kept <= imported.rows_read["s.csv"]);
        }
    }
}
