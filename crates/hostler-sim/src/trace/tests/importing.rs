//! Importing and converting.

use std::path::Path;

use expect_test::expect;

use super::super::convert::{ConvertOptions, convert, drop_bad, shift_to_zero};
use super::super::error::Faults;
use super::super::import::{Flavour, ImportOptions, Imported, importer, read_pai_sim};
use super::super::pailike::Format;
use super::super::read::{ReadOptions, read};
use super::super::source::fingerprint;
use super::super::{Compression, PaiLike, Trace, check};
use super::{NODES, Scratch, TASKS, tables, testdata, told};
use crate::fixture::published_data;

fn pai_sim(text: &str, flavour: Flavour) -> Imported {
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    read_pai_sim(&mut text.as_bytes(), "pai.csv", flavour, &mut imported, &mut faults);
    faults.or(imported).unwrap()
}

const ESTIMATE: &str = "job_id,user,num_gpu,num_cpu,num_pod,duration,job_name,submit_time,group,\
                        gpu_type,wait_time,user_dur,group_dur,group_gpu_dur\n";

#[test]
fn totals_of_an_estimate_file_become_shares_of_its_pods() {
    let rows = "0,ann,0.0,2.0,1.0,34,n,0,g,CPU,3,1.0,1.0,1.0\n\
                1,bob,3.0,72.0,12.0,15748,n,3,g,T4,2,1.0,1.0,1.0\n";
    let Imported { trace, dropped, .. } = pai_sim(&format!("{ESTIMATE}{rows}"), Flavour::Estimate);
    assert!(dropped.is_empty());
    let (single, gang) = (&trace.tasks[0], &trace.tasks[1]);
    assert_eq!((single.gpu_milli.get(), single.cpu_milli.get()), (Some(0), Some(2000)));
    assert!(single.gpu_models.is_empty());
    assert_eq!((gang.count, gang.gang, gang.gpu_milli.get()), (12, Some(true), Some(250)));
    assert_eq!((gang.cpu_milli.get(), trace.str(gang.gpu_models)), (Some(6000), "T4"));
    assert_eq!(gang.duration_ms.get(), Some(15_748_000));
    assert_eq!(trace.jobs[1].submit_ms, 3000);
}

#[test]
fn rows_without_a_meaning_are_dropped_and_counted() {
    let rows = "0,ann,1,6,1,34,n,0,g,T4,0,,,\n1,ann,1,6,1,,n,0,g,T4,0,,,\n\
                2,ann,1,6,1,0,n,0,g,T4,0,,,\n3,ann,1,6,1,9,n,,g,T4,0,,,\n\
                4,ann,0,0,1,9,n,0,g,T4,0,,,\n5,ann,1.5,6,1,9,n,0,g,T4,0,,,\n\
                6,ann,nan,6,1,9,n,0,g,T4,0,,,\n7,ann,1,6,0,9,n,0,g,T4,0,,,\n\
                8,ann,1,6,1,1e300,n,0,g,T4,0,,,\n,ann,1,6,1,9,n,0,g,T4,0,,,\n";
    let Imported { trace, dropped, rows_read, .. } =
        pai_sim(&format!("{ESTIMATE}{rows}"), Flavour::Estimate);
    assert_eq!((trace.jobs.len(), rows_read["pai.csv"]), (1, 10));
    expect![[r#"
        1 a number cannot be read
        1 a number is too large
        1 asks zero GPUs and zero CPUs
        1 duration is below 1 s
        1 duration is missing
        1 job_id is missing
        1 more than one GPU per instance, but not a whole number
        1 number of instances is below 1
        1 submit_time is missing
    "#]]
    .assert_eq(&dropped.iter().map(|(why, rows)| format!("{rows} {why}\n")).collect::<String>());
}

/// Both simulator formats carry the same jobs as the native tables they were made beside.
#[test]
fn generated_simulator_files_come_back_as_the_native_trace() {
    let options = PaiLike { jobs: 500, seed: 3, ..PaiLike::default() };
    let native = options.generate().unwrap();
    let scratch = Scratch::new();
    for (format, name) in [(Format::PaiSimEstimate, "est.csv.gz"), (Format::PaiSimGang, "gang.csv")]
    {
        let path = scratch.0.path().join(name);
        options.write(&path, format, Compression::None).unwrap();
        let importer = importer(None, &path).unwrap();
        let Imported { trace, dropped, .. } =
            (importer.import)(&path, &ImportOptions::default(), &mut |_, _| {}).unwrap();
        assert!(dropped.is_empty(), "{dropped:?}");
        assert_eq!(demands(&trace), demands(&native), "{name}");
    }
}

fn demands(trace: &Trace) -> Vec<(u64, &str, u32, [u32; 2], u64)> {
    let row = |job: &super::super::JobRow| {
        let task = trace.tasks_of(job)[0];
        let asks = [task.gpu_milli.or(0), task.cpu_milli.or(0)];
        (job.submit_ms, trace.text.get(job.user), task.count, asks, task.duration_ms.or(0))
    };
    trace.jobs.iter().map(row).collect()
}

#[test]
fn converting_repacks_and_notes_where_the_tables_come_from() {
    let scratch = Scratch::new();
    let output = scratch.0.path().join("out");
    let options = ConvertOptions { packing: Compression::Zstd, ..ConvertOptions::default() };
    let report = convert(&testdata("example_2k"), &output, &options, &mut |_, _| {}).unwrap();
    assert_eq!((report.importer, report.rows["jobs"], report.dropped.len()), ("native", 2000, 0));
    let trace = read(&output, ReadOptions::default()).unwrap();
    // The first job of the example arrives after 14 s.
    assert_eq!((trace.jobs[0].submit_ms, trace.jobs[1].submit_ms), (0, 24_000));
    assert_eq!(trace.meta.options["shifted_ms"], "14000");
    let jobs = trace.meta.inputs.iter().find(|input| input.file == "jobs.csv.gz").unwrap();
    assert_eq!(*jobs, fingerprint(&testdata("example_2k/jobs.csv.gz")).unwrap());
    assert_eq!(jobs.sha256.len(), 64);
}

/// From the standard that defines SHA-256: the message "abc".
#[test]
fn fingerprints_are_sha256() {
    let scratch = Scratch::new();
    let print = fingerprint(&scratch.write("abc", "abc")).unwrap();
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!((print.sha256.as_str(), print.bytes), (known, 3));
}

const BAD_JOBS: &str = "job_id,submit_ms\na,5000\nb,6000\na,7000\nc,8000\n";
const BAD_TASKS: &str = "job_id,count,cpu_milli,gpu_milli\nb,1,1,1500\nb,1,1,\nz,1,1,\na,1,1,\n";

#[test]
fn converting_drops_jobs_that_break_rules_and_counts_them() {
    let mut trace = tables(NODES, BAD_JOBS, BAD_TASKS, "job_id\na\nb\nq\n").unwrap();
    let dropped = drop_bad(&mut trace);
    expect![[r#"
        1 above 1000 only whole multiples of 1000
        1 instance of a dropped job
        1 instance of a job that is not in jobs.csv
        1 job has no tasks
        1 job_id is there twice
        2 task of a dropped job
        1 task of a job that is not in jobs.csv
    "#]]
    .assert_eq(&dropped.iter().map(|(why, rows)| format!("{rows} {why}\n")).collect::<String>());
    assert_eq!((trace.jobs.len(), trace.tasks.len(), trace.instances.len()), (1, 1, 1));
    assert_eq!(trace.str(trace.tasks_of(&trace.jobs[0])[0].job_id), "a");
    assert!(check(&trace).iter().all(|finding| finding.severity() < super::super::Severity::Error));
}

#[test]
fn strict_conversion_refuses_to_drop() {
    let scratch = Scratch::new();
    scratch.write("jobs.csv", BAD_JOBS);
    scratch.write("tasks.csv", BAD_TASKS);
    let options = ConvertOptions { strict: true, ..ConvertOptions::default() };
    let output = scratch.0.path().join("out");
    let message = told(convert(scratch.0.path(), &output, &options, &mut |_, _| {}));
    expect![[r#"
        6 rows would be dropped (above 1000 only whole multiples of 1000: 1, job has no tasks: 1, job_id is there twice: 1, task of a dropped job: 2, task of a job that is not in jobs.csv: 1); convert without `--strict` to drop them
    "#]].assert_eq(&message);
    assert!(!output.exists());
}

#[test]
fn moving_times_to_zero_moves_all_times() {
    let nodes = "node_id,gpu_count,cpu_milli,up_from_s,up_to_s\nn,0,1,0,5\nn,0,1,6,20\nm,0,1,1,\n";
    let jobs = "job_id,submit_ms,deadline_ms\na,5000,9000\nb,7000,\n";
    let tasks = "job_id,count,cpu_milli,start_ms,end_ms\na,1,1,6000,7000\nb,1,1,,\n";
    let mut trace = tables(nodes, jobs, tasks, "job_id,start_ms\na,6000\n").unwrap();
    assert_eq!(shift_to_zero(&mut trace), 5000);
    assert_eq!([trace.jobs[0].submit_ms, trace.jobs[1].submit_ms], [0, 2000]);
    assert_eq!(trace.jobs[0].deadline_ms.get(), Some(4000));
    assert_eq!((trace.tasks[0].start_ms.or(9), trace.tasks[0].end_ms.or(9)), (1000, 2000));
    assert_eq!(trace.instances[0].start_ms.get(), Some(1000));
    let intervals: Vec<_> =
        trace.nodes.iter().map(|n| (n.up_from_s.get(), n.up_to_s.get())).collect();
    assert_eq!(intervals, [(Some(1), Some(15)), (Some(0), None)]);
}

#[test]
fn unknown_sources_are_named() {
    let scratch = Scratch::new();
    let path = scratch.write("x.csv", TASKS);
    let place = scratch.0.path().display().to_string();
    let message = |name| told(importer(name, &path).map(|_| ())).replace(&place, "FOLDER");
    expect![[r#"
        `FOLDER/x.csv` is in no known trace format; name one of: native, pai-tables, pai-sim-estimate, pai-sim-gang, openb, philly, philly-table, helios, sacct, gavel, tiresias-sim
    "#]].assert_eq(&message(None));
    expect![[r#"
        unknown trace format `borg`; known: native, pai-tables, pai-sim-estimate, pai-sim-gang, openb, philly, philly-table, helios, sacct, gavel, tiresias-sim
    "#]]
    .assert_eq(&message(Some("borg")));
}

/// Real rows are read where they lie, never copied.
#[test]
fn published_simulator_rows_import_without_drops() {
    let Some(data) = published_data("published_simulator_rows_import_without_drops") else {
        return;
    };
    let folder = data.join("theirs/pai/sim");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        let jobs = import_published(&path);
        println!("{}: {jobs} jobs", path.display());
        files += 1;
    }
    assert!(files > 0, "no files in {}", folder.display());
}

fn import_published(path: &Path) -> usize {
    let importer = importer(None, path).unwrap();
    let Imported { trace, dropped, .. } =
        (importer.import)(path, &ImportOptions::default(), &mut |_, _| {}).unwrap();
    assert!(dropped.is_empty(), "{}: {dropped:?}", path.display());
    trace.jobs.len()
}

/// Of two tasks of a job the first tells when it was submitted; one that does not say is dropped.
#[test]
fn pai_jobs_follow_from_their_tasks_where_no_table_lists_them() {
    let folder = Scratch::new();
    folder.write(
        "pai_task_table.csv",
        "a,worker,2.0,Terminated,110.0,900.0,600.0,29.5,50.0,V100\n\
         a,ps,1.0,Terminated,100.0,900.0,600.0,29.5,,V100\n\
         b,worker,1.0,Waiting,,,600.0,1.0,100.0,T4\n",
    );
    let importer = importer(None, folder.0.path()).unwrap();
    let Imported { trace, dropped, noted, .. } =
        (importer.import)(folder.0.path(), &ImportOptions::default(), &mut |_, _| {}).unwrap();
    let job = &trace.jobs[0];
    assert_eq!((trace.jobs.len(), trace.str(job.job_id), job.submit_ms), (1, "a", 100_000));
    assert_eq!(trace.str(trace.tasks_of(job)[0].gpu_models), "V100");
    let reason = "pai_task_table: start_time is missing, and there is no table of jobs";
    assert_eq!(dropped[reason], 1, "{dropped:?}");
    assert_eq!(noted.values().copied().collect::<Vec<u64>>(), [1]);
    let gone = folder.0.path().join("pai_task_table.csv");
    std::fs::remove_file(gone).unwrap();
    let refused =
        (importer.import)(folder.0.path(), &ImportOptions::default(), &mut |_, _| {}).unwrap_err();
    assert!(refused.to_string().contains("pai_task_table"), "{refused}");
}

/// A job of two instances, one that never came to a time, one that failed: times of a task are
/// those of its instances, its run time is their mean.
#[test]
#[expect(clippy::too_many_lines, reason = "most of it is recorded text")]
fn tables_of_the_pai_trace_become_native_tables() {
    let folder = Scratch::new();
    folder.write("pai_machine_spec.csv", "m1,V100,96,384,8\nm2,CPU,64,512,0\n");
    folder.write("pai_group_tag_table.csv", "ia,ada,V100,g1,ctr\n");
    folder.write(
        "pai_job_table.csv",
        "a,ia,ada,Terminated,100.0,900.0\nb,ib,bob,Waiting,0,\nc,ic,eve,Failed,150.0,200.0\n",
    );
    folder.write(
        "pai_task_table.csv",
        "a,worker,2.0,Terminated,110.0,900.0,600.0,29.5,50.0,V100\n\
         b,worker,1.0,Waiting,,,600.0,1.0,100.0,T4\n\
         c,ps,1.0,Failed,150.0,200.0,100.0,1.0,,\n",
    );
    folder.write(
        "pai_instance_table.csv",
        "a,worker,n1,w1,ia,Terminated,200.0,800.0,m1\n\
         a,worker,n2,w2,ia,Terminated,300.0,500.0,m1\n\
         c,ps,n3,w3,ic,Failed,160.0,,m2\n",
    );
    // Workers of a use 10 and 30 per cent of a GPU, and at most 2 and 4 GB of its memory.
    folder.write(
        "pai_sensor_table.csv",
        "a,worker,w1,ia,m1,g0,500,10.0,1,1,1,2.0,0,0,0,0\n\
         a,worker,w2,ia,m1,g0,500,30.0,1,1,1,4.0,0,0,0,0\n\
         c,ps,w3,ic,m2,,100,,1,1,,,0,0,0,0\n",
    );
    let importer = importer(None, folder.0.path()).unwrap();
    let Imported { trace, dropped, .. } =
        (importer.import)(folder.0.path(), &ImportOptions::default(), &mut |_, _| {}).unwrap();
    let mut lines = format!("{}\n", importer.name);
    for (reason, rows) in &dropped {
        lines += &format!("dropped {rows} {reason}\n");
    }
    for job in &trace.jobs {
        let text = |id| trace.str(id);
        lines += &format!(
            "{} {} {} {} {}\n",
            text(job.job_id),
            text(job.user),
            text(job.group_tag),
            job.submit_ms,
            job.status_in_trace.name()
        );
        for task in trace.tasks_of(job) {
            lines += &format!(
                "  {} x{} gpu {:?} {} cpu {:?} mem {:?}\n  {:?}..{:?} run {:?}\n",
                text(task.task),
                task.count,
                task.gpu_milli,
                text(task.gpu_models),
                task.cpu_milli,
                task.mem_mib,
                task.start_ms,
                task.end_ms,
                task.duration_ms
            );
            if let Some((gpu, mem)) = task.gpu_use_milli.get().zip(task.gpu_mem_use_mib.get()) {
                lines += &format!("  used {gpu} of a GPU, {mem} MiB\n");
            }
        }
    }
    expect![[r#"
        pai-tables
        dropped 1 pai_job_table: start_time (submission) is missing
        dropped 1 pai_task_table: its job is not in the table of jobs
        a ada g1 100000 Completed
          worker x2 gpu Some(500) V100 cpu Some(6000) mem Some(30208)
          Some(200000)..Some(800000) run Some(400000)
          used 200 of a GPU, 3072 MiB
        c eve  150000 Failed
          ps x1 gpu None  cpu Some(1000) mem Some(1024)
          Some(160000)..None run None
    "#]]
    .assert_eq(&lines);
    assert_eq!((trace.nodes.len(), trace.instances.len()), (2, 3));
}
