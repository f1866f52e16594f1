//! Logs of clusters as sources: text in, native tables out.

use std::io::Read;

use expect_test::{Expect, expect};

use super::super::convert::{ConvertOptions, convert, drop_bad};
use super::super::error::Faults;
use super::super::import::{
    ImportOptions, Imported, Zone, importer, read_gavel, read_helios, read_helios_gpus,
    read_openb_nodes, read_openb_pods, read_philly, read_philly_table, read_sacct, read_tiresias,
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
    check(
        reader,
        ImportOptions::default(),
        &format!("{PODS}{rows}"),
        expect![[r#"
        job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
        a,,,,LS,10000,,,,Running,,
        b,,,,BE,11000,,,,Completed,,
        c,,,,Burstable,12000,,,,Waiting,,
        job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
        a,pod,1,0,,,460,,,12000,16384,58000,,,12000,70000,
        b,pod,1,0,,,4000,V100M16|V100M32,,8000,4096,1000,,,11000,12000,
        c,pod,1,0,,,0,,,4000,1024,,,,,,
        dropped 1: a part of each of several GPUs
        dropped 1: creation_time is missing
        dropped 1: deletion_time is before scheduled_time
    "#]],
    );
}

#[test]
fn openb_machines_come_from_the_list_beside_the_pods() {
    let scratch = Scratch::new();
    scratch.write("openb_node_list_all_node.csv", "sn,cpu_milli,memory_mib,gpu,model\nn,1,2,0,\n");
    let pods = format!("{PODS}a,12000,16384,1,460,,LS,Running,10,70,12\n");
    let pods = scratch.write("openb_pod_list_default.csv", pods);
    for path in [&pods, scratch.0.path()] {
        let importer = importer(None, path).unwrap();
        let options = ImportOptions::default();
        let imported = (importer.import)(path, &options, &mut |_, _| {}).unwrap();
        assert_eq!(
            (importer.name, imported.trace.nodes.len(), imported.files.len()),
            ("openb", 1, 2)
        );
        assert!(imported.noted.is_empty(), "{:?}", imported.noted);
    }
    // A folder with other lists beside the default one says so.
    scratch.write("openb_pod_list_cpu250.csv", PODS);
    let importer = importer(None, scratch.0.path()).unwrap();
    let imported =
        (importer.import)(scratch.0.path(), &ImportOptions::default(), &mut |_, _| {}).unwrap();
    assert_eq!(imported.noted["another list of pods is there; name its file to read it"], 1);
}

#[test]
fn openb_nodes_keep_their_models() {
    let text = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,393216,8,G2\n\
                n2,1,1,x,\n";
    let reader: Reader = |input, file, _, imported, faults| {
        read_openb_nodes(input, file, imported, faults);
    };
    check(
        reader,
        ImportOptions::default(),
        text,
        expect![[r#"
        node_id,pool,gpu_model,gpu_count,gpu_mem_mib,cpu_milli,mem_mib,nic_mbps,link,rack,labels,up_from_s,up_to_s
        n0,,,0,,32000,262144,,,,,,
        n1,,G2,8,,96000,393216,,,,,,
        dropped 1: a number cannot be read
    "#]],
    );
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
    check(
        read_philly,
        ImportOptions::default(),
        PHILLY,
        expect![[r#"
            job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
            b,w,,v2,,1507528800000,,,,Cancelled,,1
            a,u,,v1,,1507532400000,,,,Completed,,2
            job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
            b,worker,1,1,,,3000,,,,,,,,1507528805000,,m4
            b,worker-2,1,1,,,1000,,,,,,,,1507528805000,,m3
            a,worker,2,1,,,2000,,,,,90000,,,1507532460000,1507533030000,m1;m2
            dropped 1: a value is not a text
            dropped 1: jobid is missing
            dropped 1: no attempt: never started, and what it asked is not known
            dropped 1: submitted_time is missing
            noted 1: attempt without start or end; not part of the run time
        "#]],
    );
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
    check(
        read_philly,
        ImportOptions::default(),
        &PHILLY[..PHILLY.len() - 10],
        expect![[r#"
        in:13: cannot read on: EOF while parsing a value at line 13 column 93
    "#]],
    );
    check(
        read_philly,
        ImportOptions::default(),
        "{\"a\": 1}",
        expect![[r#"
        in:1: cannot read on: invalid type: map, expected a list of jobs at line 1 column 1
    "#]],
    );
    let endless = format!("[{{\"jobid\": \"{}\"}}]", "x".repeat(3 << 20));
    check(
        read_philly,
        ImportOptions::default(),
        &endless,
        expect![[r#"
        in:1: record is longer than 1048576 bytes; is a quote left open?
    "#]],
    );
}

#[test]
fn gpus_of_the_philly_table_are_split_over_servers_of_eight() {
    let text = "timestamp,duration,num_gpus,gpu_time,cluster\n\
                2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 07:00:00,10.5,12,1,6214e9\n\
                2017-10-09 07:00:01,7,9,1,6214e9\n2017-13-09 07:00:01,7,9,1,x\n\
                2017-10-09 07:00:01,7,0,1,x\n\n";
    check(
        read_philly_table,
        ImportOptions::default(),
        text,
        expect![[r#"
        job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
        1,,,6214e9,,1507532400000,,,,,,
        2,,,6214e9,,1507532401000,,,,,,
        0,,,11cb48,,1507532515000,,,,,,
        job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
        1,worker,2,1,,,6000,,,,,10500,,,,,
        2,worker,1,1,,,5000,,,,,7000,,,,,
        2,worker-2,1,1,,,4000,,,,,7000,,,,,
        0,worker,1,0,,,1000,,,,,66000,,,,,
        dropped 1: a time cannot be read
        dropped 1: asks zero GPUs
    "#]],
    );
}

#[test]
fn jobs_of_the_tiresias_simulator_are_gangs_of_single_gpus() {
    let text = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n\
                0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n2,0,53,1,x,1,1\n\
                ,2,53,1,x,1,1\n3,2,53,157,,127,26\n";
    let reader: Reader =
        |input, file, _, imported, faults| read_tiresias(input, file, imported, faults);
    check(
        reader,
        ImportOptions::default(),
        text,
        expect![[r#"
        job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
        0,,,,,0,,,,,,
        1,,,,,30000,,,,,,
        3,,,,,53000,,,,,,
        job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
        0,worker,1,0,,,1000,,,,,164000,,vgg19,,,
        1,worker,8,1,,,1000,,,,,147000,,vgg11,,,
        3,worker,2,1,,,1000,,,,,127000,,,,,
        dropped 1: asks zero GPUs
        dropped 1: job_id is missing
    "#]],
    );
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
    check(
        read_helios,
        zone,
        &format!("{HELIOS}{rows}"),
        expect![[r#"
        job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
        2,u1,,vc6YE,,1585670400000,,,,NodeFail,,
        1,u1,,vc6YE,,1585670410000,,,,Completed,,
        3,u2,,vcLJZ,,1585670430000,,,,Cancelled,,
        4,u2,,vcLJZ,,1585670440000,,,,Timeout,,
        job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
        2,worker,1,0,,,0,,,4000,,1000,,,1585670400000,1585670401000,
        1,worker,2,1,,,8000,,,32000,,60000,,,1585670420000,1585670480000,
        3,worker,1,0,,,8000,,,8000,,,,,,,
        4,worker,1,1,,,3000,,,4000,,4000,,,1585670441000,1585670445000,
        4,worker-2,1,1,,,2000,,,4000,,4000,,,1585670441000,1585670445000,
        dropped 1: node_num is missing or 0
        noted 1: GPUs do not divide evenly over nodes; what is left over is on the first
        noted 1: never started
    "#]],
    );
}

#[test]
fn gpus_of_virtual_clusters_by_day_become_machines_that_move() {
    let text = "date,vcA,vcB,total\n2020-04-01,16,0,16\n2020-04-02,16,4,20\n2020-04-03,8,8,16\n\
                2020-04-03,8,8,16\n2020-04-04,8,x,16\n";
    check(
        read_helios_gpus,
        ImportOptions::default(),
        text,
        expect![[r#"
        node_id,pool,gpu_model,gpu_count,gpu_mem_mib,cpu_milli,mem_mib,nic_mbps,link,rack,labels,up_from_s,up_to_s
        node-3,vcB,,4,,,,,,,,1585785600,1585872000
        node-2,vcA,,8,,,,,,,,1585699200,1585872000
        node-1,vcA,,8,,,,,,,,1585699200,
        node-2,vcB,,8,,,,,,,,1585872000,
        dropped 1: day of a GPU table cannot be read or is out of order
        dropped 1: day of a GPU table has a number that cannot be read
    "#]],
    );
}

/// A machine that left before the first submission is not part of the trace, and is counted.
#[test]
fn helios_machines_come_from_the_table_beside_the_log() {
    let scratch = Scratch::new();
    scratch.write("earth_gpu_number.csv", "date,vcA,total\n2020-04-01,16,16\n2020-04-02,8,8\n");
    let row = "1,u,vcA,8,8,1,COMPLETED,2020-04-03 00:00:00,2020-04-03 00:00:00,\
               2020-04-03 00:01:00,60,0\n";
    let path = scratch.write("cluster_log.csv", format!("{HELIOS}{row}"));
    let output = scratch.0.path().join("out");
    let report = convert(&path, &output, &ConvertOptions::default(), &mut |_, _| {}).unwrap();
    assert_eq!((report.importer, report.rows["nodes"]), ("helios", 1));
    assert_eq!(report.dropped["node interval ended before the first submission"], 1);
    let trace = read(&output, ReadOptions::default()).unwrap();
    assert_eq!((trace.nodes[0].up_from_s.get(), trace.nodes[0].up_to_s.get()), (Some(0), None));
    assert_eq!(trace.meta.options["gpus_per_node"], "8");
    assert_eq!(trace.meta.time_origin, "2020-04-03T00:00:00Z");
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
             1||cpu=4,gres/gpu=1,mem=512K|n7|1|A100|/w|0:0"
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
        expect![[r#"
            job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
            11,ann,7208a2285d055fa5,gpu,normal,1714521600000,,,,Completed,,
            10,ann,8c8dbbd4d6028640,ml/gpu,high,1714521660000,,7200000,7200000,Cancelled,,
            12,bob,115567f21815d092,ml/cpu,normal,1714521840000,,600000,600000,Waiting,,
            13,bob,5cf9c06611e13846,ml/cpu,normal,1714521840000,,600000,600000,Running,,
            job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
            11,worker,1,0,,,1000,A100,,4000,1,90000,,,1714521720000,1714521810000,n7
            10,worker,2,1,,,4000,a100,,8000,32768,60000,,,1714521720000,1714521780000,gpu01;gpu02
            12,worker,1,0,,,0,,,1000,1536,,,,,,
            13,worker,1,1,,,2000,,,2333,,,,,1714521900000,,
            13,worker-2,2,1,,,1000,,,2333,,,,,1714521900000,,
            dropped 1: asks several GPU models at once
            dropped 1: fields do not match the header; sacct --delimiter takes another separator
            dropped 1: step of a job; sacct -X leaves them out
            noted 1: Constraints that are no GPU model are not kept
            noted 1: GPUs do not divide evenly over nodes; what is left over is on the first
            noted 1: ReqTRES is empty; AllocTRES taken
            noted 1: never started
        "#]],
    );
}

#[test]
fn sacct_lines_with_another_separator_may_hold_bars() {
    let text = "JobIDRaw;Submit;State;NNodes;ReqTRES;JobName;Constraints\n\
                1;2024-05-01T00:01:00;PENDING;1;cpu=1,gres/gpu=1;a|b;[V100|A100]\n\
                2;2024-05-01T00:01:00;PENDING;1;cpu=1,gres/gpu=1;a|b;V100|fast\n";
    check(
        read_sacct,
        ImportOptions::default(),
        text,
        expect![[r#"
        job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
        1,,d29ead51d1aa3485,,,1714521660000,,,,Waiting,,
        2,,d29ead51d1aa3485,,,1714521660000,,,,Waiting,,
        job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
        1,worker,1,0,,,1000,V100|A100,,1000,,,,,,,
        2,worker,1,0,,,1000,,,1000,,,,,,,
        noted 1: Constraints that are no GPU model are not kept
        noted 2: never started
    "#]],
    );
    let scratch = Scratch::new();
    assert_eq!(importer(None, &scratch.write("x", text)).unwrap().name, "sacct");
}

/// The first got a whole node for one GPU, the second all cores of one, the third two threads for
/// one.
#[test]
fn sacct_jobs_that_got_more_than_they_asked_for_are_noted() {
    let text = "JobIDRaw|Submit|State|NNodes|ReqTRES|AllocTRES\n\
                1|2024-05-01T00:01:00|PENDING|1|cpu=1,gres/gpu:a100=1|cpu=64,gres/gpu:a100=8\n\
                2|2024-05-01T00:01:00|PENDING|1|cpu=4,mem=1G|cpu=64,mem=1G\n\
                3|2024-05-01T00:01:00|PENDING|1|cpu=1|cpu=2\n";
    check(
        read_sacct,
        ImportOptions::default(),
        text,
        expect![[r#"
            job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
            1,,53c63b3f5dcf9a9c,,,1714521660000,,,,Waiting,,
            2,,3e235fc1e3505819,,,1714521660000,,,,Waiting,,
            3,,f375fc76fbf7c929,,,1714521660000,,,,Waiting,,
            job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
            1,worker,1,0,,,8000,a100,,64000,,,,,,,
            2,worker,1,0,,,0,,,4000,1024,,,,,,
            3,worker,1,0,,,0,,,1000,,,,,,,
            noted 1: AllocTRES has more GPUs than ReqTRES, as with --exclusive: imported as allocated
            noted 1: AllocTRES has more than twice the cores of ReqTRES, as with --exclusive: imported as requested
            noted 3: never started
        "#]],
    );
}

#[test]
fn sacct_needs_its_columns() {
    check(
        read_sacct,
        ImportOptions::default(),
        "JobIDRaw|JobName\n1|a\n",
        expect![[r#"
        in:1: column `State`: column is missing
        in:1: column `Submit`: column is missing
        in:1: column `NNodes`: column is missing
    "#]],
    );
    check(
        read_sacct,
        ImportOptions::default(),
        "",
        expect![[r#"
        in: the file is empty; expected a header line
    "#]],
    );
}

#[test]
fn gavel_lines_of_both_layouts_become_jobs_with_work() {
    let reader: Reader =
        |input, file, _, imported, faults| read_gavel(input, file, imported, faults);
    let text = "LM (batch size 5)\tpython3 x\tlm\t-s\t1\t346\t2\t1\t-1.000000\t0\n\
                ResNet-18\tpython3 y\tcv\t-n\t1\t36\t1\t5\t1.2\t7.25\n\
                ResNet-18\tpython3 y\tcv\t-n\t1\t36\t0\t5\t1.2\t7.25\nx\ty\n";
    check(
        reader,
        ImportOptions::default(),
        text,
        expect![[r#"
            job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts,sharing
            0,,,,1,0,,,,,,,willing
            1,,,,5,7250,,,,,,,willing
            job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
            0,worker,2,1,,,1000,,,,,,346,LM (batch size 5),,,
            1,worker,1,0,,,1000,,,,,,36,ResNet-18,,,
            dropped 1: number of columns differs from the first line
            dropped 1: scale_factor is below 1
            noted 1: SLO is a factor of a run time that is not known; deadline left empty
        "#]],
    );
    let old = "LM (batch size 5)\tpython3 x\t-s\t1\t13407515\t364815.000000\t4\n";
    check(
        reader,
        ImportOptions::default(),
        old,
        expect![[r#"
            job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts,sharing
            0,,,,,364815000,,,,,,,willing
            job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
            0,worker,4,1,,,1000,,,,,,13407515,LM (batch size 5),,,
        "#]],
    );
    check(
        reader,
        ImportOptions::default(),
        "a\tb\n",
        expect![[r#"
            in:1: 2 fields; expected 7 or 10
        "#]],
    );
}

#[test]
fn zones_are_distances_from_utc() {
    let told = |text: &str| Zone::parse(text).map_or("-".to_owned(), |zone| zone.to_string());
    let texts = ["UTC", "Z", "+08:00", "-0730", "+15:00", "08:00", "+8", "+08:60", "", "+é:0"];
    expect!["UTC UTC UTC+08:00 UTC-07:30 - - - - - -"].assert_eq(&texts.map(told).join(" "));
}

#[test]
fn an_option_without_meaning_for_a_format_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.write("sacct.txt", SACCT);
    let reading = ImportOptions { span: true, ..ImportOptions::default() };
    let options = ConvertOptions { reading, ..ConvertOptions::default() };
    expect![[r#"
        format `sacct` has no option `--span`; leave it out
    "#]]
    .assert_eq(&told(convert(&path, &scratch.0.path().join("out"), &options, &mut |_, _| {})));
}

/// The first submission is time 0, and the meta says when that was.
#[test]
fn converting_a_log_notes_its_origin_zone_and_what_was_left_out() {
    let scratch = Scratch::new();
    let path = scratch.write("cluster_job_log", PHILLY);
    let time_zone = Zone::parse("-07:00");
    let reading = ImportOptions { time_zone, ..ImportOptions::default() };
    let options = ConvertOptions { reading, runnable: true, ..ConvertOptions::default() };
    let output = scratch.0.path().join("out");
    let report = convert(&path, &output, &options, &mut |_, _| {}).unwrap();
    assert_eq!(
        (report.importer, report.rows["jobs"], report.rows_read["cluster_job_log"]),
        ("philly", 1, 6)
    );
    let trace = read(&output, ReadOptions::default()).unwrap();
    assert_eq!(trace.jobs[0].submit_ms, 0);
    let mut meta = trace.meta;
    meta.importer = None;
    expect![[r#"
        source = "Philly job log (2017)"
        licence = "CC BY 4.0"
        time_origin = "2017-10-09T14:00:00Z"
        time_zone = "UTC-07:00"

        [options]
        duration = "sum of attempts"
        runnable = "true"
        shifted_ms = "1507557600000"
        strict = "false"

        [rows]
        jobs = 1
        tasks = 1

        [rows_read]
        cluster_job_log = 6

        [rows_dropped]
        "a value is not a text" = 1
        "jobid is missing" = 1
        "no attempt: never started, and what it asked is not known" = 1
        "run time is not known" = 1
        "submitted_time is missing" = 1
        "task of a dropped job" = 2

        [rows_noted]
        "attempt without start or end; not part of the run time" = 1

        [[inputs]]
        file = "cluster_job_log"
        bytes = 980
        sha256 = "43ca22e3e229dd6bd5e43f6af7cd160552b876ff85f5ce1533e0797db1ee49a9"
    "#]]
    .assert_eq(&meta.to_toml());
}
