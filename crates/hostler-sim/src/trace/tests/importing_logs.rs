//! Logs of clusters as sources: text in, native tables out.

use std::io::Read;

use expect_test::{Expect, expect};

use super::super::convert::{ConvertOptions, convert, drop_bad};
use super::super::error::Faults;
use super::super::import::{
    ImportOptions, Imported, Zone, importer, read_gavel, read_helios, read_helios_gpus,
    read_openb_nodes, read_openb_pods, read_philly, read_philly_table, read_sacct,
};
use super::super::read::{ReadOptions, read};
use super::super::write::{write_jobs, write_nodes, write_tasks};
use super::{Scratch, told};

/// What came of a text: every table that holds anything, and the counts.
fn shown(result: Result<Imported, super::super::TraceError>) -> String {
    let imported = match result {
        Ok(imported) => imported,
        Err(error) => return format!("{error}\n"),
    };
    let Imported { mut trace, mut dropped, noted, .. } = imported;
    dropped.extend(drop_bad(&mut trace));
    let mut written = Vec::new();
    if !trace.nodes.is_empty() {
        write_nodes(&trace, &mut written).unwrap();
    }
    if !trace.jobs.is_empty() {
        write_jobs(&trace, &mut written).unwrap();
        write_tasks(&trace, &mut written).unwrap();
    }
    let mut text = String::from_utf8(written).unwrap();
    text.extend(dropped.iter().map(|(why, rows)| format!("dropped {rows}: {why}\n")));
    text.extend(noted.iter().map(|(why, rows)| format!("noted {rows}: {why}\n")));
    text
}

type Reader = fn(&mut dyn Read, &str, &ImportOptions, &mut Imported, &mut Faults);

fn check(reader: Reader, options: ImportOptions, text: &str, expected: Expect) {
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    reader(&mut text.as_bytes(), "in", &options, &mut imported, &mut faults);
    expected.assert_eq(&shown(faults.or(imported)));
}

const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,\
                    creation_time,deletion_time,scheduled_time\n";

#[test]
fn openb_pods_become_jobs_of_one_instance() {
    let rows = "a,12000,16384,1,460,,LS,Running,10,70,12\n\
                b,8000,4096,4,1000,V100M16|V100M32,BE,Succeeded,11,12,11\n\
                c,4000,1024,0,0,,Burstable,Pending,12,20,\n\
                d,1,1,2,500,,LS,Failed,1,2,1\n\
                e,1,1,1,1000,,LS,Failed,,2,1\n\
                f,1,1,1,1000,,LS,Failed,1,2,3\n";
    let reader: Reader = |input, file, _, imported, faults| {
        read_openb_pods(input, file, imported, faults);
    };
    check(reader, ImportOptions::default(), &format!("{PODS}{rows}"), expect![]);
}

#[test]
fn openb_machines_come_from_the_list_beside_the_pods() {
    let scratch = Scratch::new();
    scratch.write("openb_node_list_all_node.csv", "sn,cpu_milli,memory_mib,gpu,model\nn,1,2,0,\n");
    let pods = format!("{PODS}a,12000,16384,1,460,,LS,Running,10,70,12\n");
    let pods = scratch.write("openb_pod_list_default.csv", pods);
    for path in [&pods, &scratch.0] {
        let importer = importer(None, path).unwrap();
        let options = ImportOptions::default();
        let imported = (importer.import)(path, &options, &mut |_, _| {}).unwrap();
        assert_eq!(
            (importer.name, imported.trace.nodes.len(), imported.files.len()),
            ("openb", 1, 2)
        );
    }
}

#[test]
fn openb_nodes_keep_their_models() {
    let text = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,393216,8,G2\n\
                n2,1,1,x,\n";
    let reader: Reader = |input, file, _, imported, faults| {
        read_openb_nodes(input, file, imported, faults);
    };
    check(reader, ImportOptions::default(), text, expect![]);
}

/// `a` ran twice with a pause; `b` got an uneven gang; the others say too little.
const PHILLY: &str = r#"[
 {"status": "Pass", "vc": "v1", "jobid": "a", "submitted_time": "2017-10-09 07:00:00", "user": "u",
  "attempts": [
   {"start_time": "2017-10-09 07:01:00", "end_time": "2017-10-09 07:02:00", "detail": []},
   {"start_time": "2017-10-09 07:10:00", "end_time": "2017-10-09 07:10:30",
    "detail": [{"ip": "m2", "gpus": ["gpu0", "gpu1"]}, {"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]},
 {"status": "Killed", "vc": "v2", "jobid": "b", "submitted_time": "2017-10-09 06:00:00", "user": "w",
  "attempts": [{"start_time": "2017-10-09 06:00:05", "end_time": null,
    "detail": [{"ip": "m3", "gpus": ["gpu0"]}, {"ip": "m4", "gpus": ["gpu0", "gpu1", "gpu2"]}]}]},
 {"status": "Failed", "vc": "v", "jobid": "c", "submitted_time": "2017-10-09 06:00:00", "user": "w",
  "attempts": []},
 {"status": "Failed", "vc": "v", "jobid": "d", "submitted_time": null, "user": "w", "attempts": []},
 {"status": "Failed", "vc": "v", "jobid": 7, "submitted_time": null, "user": "w", "attempts": []},
 3
]"#;

#[test]
fn philly_attempts_are_summed() {
    check(read_philly, ImportOptions::default(), PHILLY, expect![]);
}

#[test]
fn philly_span_is_from_the_first_start_to_the_last_end() {
    let span = ImportOptions { span: true, ..ImportOptions::default() };
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    read_philly(&mut PHILLY.as_bytes(), "in", &span, &mut imported, &mut faults);
    let trace = faults.or(imported).unwrap().trace;
    let row = trace.tasks.iter().find(|task| trace.str(task.job_id) == "a").unwrap();
    // 07:01:00 to 07:10:30; the sum is 60 s and 30 s.
    assert_eq!(row.duration_ms.get(), Some(570_000));
    assert_eq!(trace.meta.options["duration"], "span");
}

#[test]
fn a_philly_log_that_is_cut_off_is_an_error() {
    check(read_philly, ImportOptions::default(), &PHILLY[..PHILLY.len() - 10], expect![]);
    check(read_philly, ImportOptions::default(), "{\"a\": 1}", expect![]);
    let endless = format!("[{{\"jobid\": \"{}\"}}]", "x".repeat(3 << 20));
    check(read_philly, ImportOptions::default(), &endless, expect![]);
}

#[test]
fn gpus_of_the_philly_table_are_split_over_servers_of_eight() {
    let text = "timestamp,duration,num_gpus,gpu_time,cluster\n\
                2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 07:00:00,10.5,12,1,6214e9\n\
                2017-10-09 07:00:01,7,9,1,6214e9\n2017-13-09 07:00:01,7,9,1,x\n\
                2017-10-09 07:00:01,7,0,1,x\n\n";
    check(read_philly_table, ImportOptions::default(), text, expect![]);
}

const HELIOS: &str = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,\
                      end_time,duration,queue\n";

#[test]
fn helios_jobs_are_shares_of_their_nodes() {
    let rows = "1,u1,vc6YE,16,64,2,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:20,\
                2020-04-01 00:01:20,60,10\n\
                2,u1,vc6YE,0,4,1,NODE_FAIL,2020-04-01 00:00:00,2020-04-01 00:00:00,\
                2020-04-01 00:00:01,1,0\n\
                3,u2,vcLJZ,8,8,1,CANCELLED,2020-04-01 00:00:30,None,2020-04-01 00:02:00,0,90\n\
                4,u2,vcLJZ,5,8,2,TIMEOUT,2020-04-01 00:00:40,2020-04-01 00:00:41,\
                2020-04-01 00:00:45,4,1\n\
                5,u2,vcLJZ,5,8,0,TIMEOUT,2020-04-01 00:00:40,2020-04-01 00:00:41,,4,1\n";
    let zone = ImportOptions { time_zone: Zone::parse("+08:00"), span: false };
    check(read_helios, zone, &format!("{HELIOS}{rows}"), expect![]);
}

#[test]
fn gpus_of_virtual_clusters_by_day_become_node_intervals() {
    let text = "date,vcA,vcB,total\n2020-04-01,16,0,16\n2020-04-02,16,4,20\n2020-04-03,8,8,16\n\
                2020-04-03,8,8,16\n2020-04-04,8,x,16\n";
    check(read_helios_gpus, ImportOptions::default(), text, expect![]);
}

const SACCT: &str = "JobIDRaw|JobName|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|\
                     ElapsedRaw|TimelimitRaw|NNodes|ReqTRES|AllocTRES|NodeList|Priority|\
                     Constraints|WorkDir|ExitCode\n";

#[test]
fn sacct_lines_become_jobs() {
    let day = "2024-05-01T00:0";
    let rows = [
        format!(
            "10|train \"x\"|ann|ml|gpu|high|CANCELLED by 1000|{day}1:00|{day}1:00|{day}2:00|\
             {day}3:00|60|120|2|billing=8,cpu=16,gres/gpu:a100=8,gres/gpu=8,mem=64G,node=2|\
             |gpu[01-02]|1||/w|0:0"
        ),
        format!(
            "11|train \"x\"|ann||gpu|normal|COMPLETED|{day}0:00||{day}2:00|{day}3:30|90|UNLIMITED|\
             1||cpu=4,gres/gpu=1,mem=512K|n7|1|[V100|A100]|/w|0:0"
        ),
        format!(
            "12|e|bob|ml|cpu|normal|PENDING|{day}4:00||Unknown|Unknown|0|10|1|cpu=1,mem=1.5G|||1|fast|/w|0:0"
        ),
        format!(
            "13|e|bob|ml|cpu|normal|RUNNING|{day}4:00||{day}5:00|Unknown|50|10|3|cpu=7,gres/gpu=4||a,b[1-2]|1||/w|0:0"
        ),
        format!("13.batch|e||ml|||RUNNING|{day}4:00||{day}5:00|Unknown|50||1|cpu=1||||||0:0"),
        format!(
            "14|a|b|ml|cpu|normal|FAILED|{day}4:00||{day}5:00|{day}6:00|60|10|1|cpu=1,gres/gpu:a=1,gres/gpu:b=1|||1||/w|0:0"
        ),
        "15|too|few".to_owned(),
    ];
    check(
        read_sacct,
        ImportOptions::default(),
        &format!("{SACCT}{}\n", rows.join("\n")),
        expect![],
    );
}

#[test]
fn sacct_needs_its_columns() {
    check(read_sacct, ImportOptions::default(), "JobIDRaw|JobName\n1|a\n", expect![]);
    check(read_sacct, ImportOptions::default(), "", expect![]);
}

#[test]
fn gavel_lines_of_both_layouts_become_jobs_with_work() {
    let reader: Reader =
        |input, file, _, imported, faults| read_gavel(input, file, imported, faults);
    let text = "LM (batch size 5)\tpython3 x\tlm\t-s\t1\t346\t2\t1\t-1.000000\t0\n\
                ResNet-18\tpython3 y\tcv\t-n\t1\t36\t1\t5\t1.2\t7.25\n\
                ResNet-18\tpython3 y\tcv\t-n\t1\t36\t0\t5\t1.2\t7.25\nx\ty\n";
    check(reader, ImportOptions::default(), text, expect![]);
    let old = "LM (batch size 5)\tpython3 x\t-s\t1\t13407515\t364815.000000\t4\n";
    check(reader, ImportOptions::default(), old, expect![]);
    check(reader, ImportOptions::default(), "a\tb\n", expect![]);
}

#[test]
fn zones_are_distances_from_utc() {
    let told = |text: &str| Zone::parse(text).map_or("-".to_owned(), |zone| zone.to_string());
    let texts = ["UTC", "Z", "+08:00", "-0730", "+15:00", "08:00", "+8", "+08:60", "", "+é:0"];
    expect![].assert_eq(&texts.map(told).join(" "));
}

#[test]
fn an_option_without_meaning_for_a_format_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.write("sacct.txt", SACCT);
    let reading = ImportOptions { span: true, ..ImportOptions::default() };
    let options = ConvertOptions { reading, ..ConvertOptions::default() };
    expect![].assert_eq(&told(convert(&path, &scratch.0.join("out"), &options, &mut |_, _| {})));
}

/// The first submission is time 0, and the meta says when that was.
#[test]
fn converting_a_log_notes_its_origin_zone_and_what_was_left_out() {
    let scratch = Scratch::new();
    let path = scratch.write("cluster_job_log", PHILLY);
    let time_zone = Zone::parse("-07:00");
    let reading = ImportOptions { time_zone, ..ImportOptions::default() };
    let options = ConvertOptions { reading, runnable: true, ..ConvertOptions::default() };
    let output = scratch.0.join("out");
    let report = convert(&path, &output, &options, &mut |_, _| {}).unwrap();
    assert_eq!(
        (report.importer, report.rows["jobs"], report.rows_read["cluster_job_log"]),
        ("philly", 1, 6)
    );
    let trace = read(&output, ReadOptions::default()).unwrap();
    assert_eq!(trace.jobs[0].submit_ms, 0);
    let mut meta = trace.meta;
    meta.importer = None;
    expect![].assert_eq(&meta.to_toml());
}
