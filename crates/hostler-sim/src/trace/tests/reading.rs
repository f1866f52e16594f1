//! Reading and writing of good tables.

use super::super::priority::resolve;
use super::super::read::{ReadOptions, read};
use super::super::table::{InstanceRow, JobRow, NodeRow, OptU32, OptU64, Status, TaskRow, Trace};
use super::super::text::{TextId, TextPool};
use super::super::write::write;
use super::super::{Compression, PaiLike, check};
use super::{JOBS, NODES, Scratch, TASKS, tables, testdata};

/// Every column of every table holds something in some row.
fn full_trace() -> Trace {
    let nodes = "node_id,pool,gpu_model,gpu_count,gpu_mem_mib,cpu_milli,mem_mib,nic_mbps,link,\
                 rack,labels,up_from_s,up_to_s,islands,idle_watts,peak_watts\n\
                 n1,p,V100,8,16384,96000,524288,25000,nvlink,r1,zone=a;kind=b,0,100,2,300,900\n\
                 n1,p,V100,8,16384,96000,524288,25000,nvlink,r1,zone=a;kind=b,200,,2,300,900\n\
                 \"n,2\",,,0,,4000,,,none,,,,,,,\n";
    let jobs = "job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,\
                est_ms,status_in_trace,workload,attempts\n\
                late,u,g,q,high,5000,90000,80000,7000,Completed,ctr,2\n\
                early,\"o \"\"x\"\"\",,,-7,0,,,,NodeFail,,\n";
    let tasks = "job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,\
                 cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement\n\
                 late,ps,2,0,,,,,,1000,10,1,,,,,\n\
                 late,worker,4,1,2,8,2000,V100|A100,8192,6000,1024,1000,50,resnet,6000,7000,n1;n2\n\
                 early,w,1,,,,500,,,,,,3,,,,\n";
    let instances = "job_id,task,index,node_id,start_ms,end_ms,status,cpu_use_milli,\
                     gpu_use_milli,gpu_mem_used_mib\nlate,ps,0,n1,6000,7000,Failed,10,20,30\n";
    tables(nodes, jobs, tasks, instances).unwrap()
}

#[test]
fn rows_are_small_enough_for_a_million_jobs() {
    assert_eq!(size_of::<JobRow>(), 80);
    assert_eq!(size_of::<TaskRow>(), 96);
    assert_eq!(size_of::<InstanceRow>(), 56);
    assert_eq!(size_of::<NodeRow>(), 80);
    let trace = PaiLike { jobs: 100_000, ..PaiLike::default() }.generate().unwrap();
    let bytes_per_job = trace.heap_bytes() / 100_000;
    // 200 MiB for a million.
    assert!(bytes_per_job < 209, "{bytes_per_job} bytes per job and task with their text");
}

#[test]
fn jobs_are_sorted_by_submission_and_tasks_follow_their_jobs() {
    let trace = full_trace();
    let order: Vec<_> = trace.jobs.iter().map(|job| trace.str(job.job_id)).collect();
    assert_eq!(order, ["early", "late"]);
    let roles = |job: usize| -> Vec<_> {
        trace.tasks_of(&trace.jobs[job]).iter().map(|task| trace.str(task.task)).collect()
    };
    assert_eq!(roles(0), ["w"]);
    assert_eq!(roles(1), ["ps", "worker"]);
}

#[test]
fn values_arrive_in_their_columns() {
    let trace = full_trace();
    let (early, late) = (&trace.jobs[0], &trace.jobs[1]);
    assert_eq!((early.priority, late.priority), (-7, 1));
    assert_eq!(trace.str(early.user), "o \"x\"");
    assert_eq!(late.status_in_trace, Status::Completed);
    assert_eq!((late.deadline_ms.get(), early.deadline_ms.get()), (Some(90_000), None));
    assert_eq!((late.line, early.line), (2, 3));
    let worker = &trace.tasks_of(late)[1];
    assert_eq!(
        (worker.gang, worker.min_count, worker.max_count.get()),
        (Some(true), OptU32::some(2), Some(8))
    );
    assert_eq!(trace.list(worker.gpu_models, '|').collect::<Vec<_>>(), ["V100", "A100"]);
    assert_eq!(trace.list(worker.placement, ';').collect::<Vec<_>>(), ["n1", "n2"]);
    let single = &trace.tasks_of(early)[0];
    assert_eq!((single.gang, single.is_gang(), single.duration_ms), (None, false, OptU64::NONE));
}

#[test]
fn what_is_written_is_read_back_in_every_packing() {
    let mut trace = full_trace();
    trace.meta.source = "a test with \"quotes\"\nand lines".to_owned();
    trace.meta.options.insert("seed".to_owned(), "1".to_owned());
    trace.meta.rows = trace.row_counts();
    for (packing, suffix) in Compression::SUFFIXES {
        let scratch = Scratch::new();
        write(&trace, scratch.0.path(), packing).unwrap();
        assert!(scratch.0.path().join(format!("instances.csv{suffix}")).is_file());
        assert_eq!(read(scratch.0.path(), ReadOptions::default()).unwrap(), trace);
    }
}

#[test]
fn a_changed_value_makes_traces_differ() {
    let (trace, mut other) = (full_trace(), full_trace());
    assert!(trace == other);
    other.tasks[0].mem_mib = OptU32::some(11);
    assert!(trace != other);
    let mut renamed = full_trace();
    renamed.jobs[0].user = renamed.text.intern("someone else").unwrap();
    assert!(trace != renamed);
}

#[test]
fn writing_twice_to_a_folder_is_refused() {
    let scratch = Scratch::new();
    write(&full_trace(), scratch.0.path(), Compression::Gzip).unwrap();
    let again = super::told(write(&full_trace(), scratch.0.path(), Compression::None));
    assert!(again.contains("nodes.csv.gz` exists; remove it or write elsewhere"), "{again}");
}

#[test]
fn columns_may_come_in_any_order_and_optional_ones_may_be_absent() {
    let jobs = "submit_ms,job_id\n7,x\n";
    let trace = tables("", jobs, "cpu_milli,count,job_id\n1,1,x\n", "").unwrap();
    assert_eq!(trace.jobs[0].submit_ms, 7);
    assert_eq!(trace.str(trace.jobs[0].job_id), "x");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_accepted() {
    let trace = tables("", "\u{feff}job_id,submit_ms\r\nx,7\r\n", "job_id,count\r\nx,1\r\n", "");
    assert_eq!(trace.unwrap().jobs[0].submit_ms, 7);
}

#[test]
fn the_example_of_two_thousand_jobs_reads_without_findings() {
    let mut told = Vec::new();
    let mut progress = |read, total| told.push((read, total));
    let options = ReadOptions { progress: Some(&mut progress), ..ReadOptions::default() };
    let trace = read(&testdata("example_2k"), options).unwrap();
    assert_eq!((trace.nodes.len(), trace.jobs.len(), trace.tasks.len()), (1897, 2000, 2000));
    let instances: u32 = trace.tasks.iter().map(|task| task.count).sum();
    assert_eq!(instances, 7834);
    assert_eq!(trace.jobs[1999].submit_ms, 29_183_000);
    assert_eq!(check(&trace), []);
    let (read, total) = told[told.len() - 1];
    assert!(read == total && total > 10_000, "progress ended at {read} of {total}");
}

#[test]
fn the_lecture_example_reads_without_findings() {
    let trace = read(&testdata("lecture"), ReadOptions::default()).unwrap();
    assert_eq!(check(&trace), []);
    let rows: Vec<_> = trace
        .jobs
        .iter()
        .map(|job| (job.submit_ms, trace.tasks_of(job)[0].duration_ms.or(0), job.priority))
        .collect();
    assert_eq!(rows, [(0, 30_000, 3), (0, 10_000, 1), (1000, 25_000, 2), (4000, 40_000, 4)]);
    assert_eq!(trace.nodes[0].gpu_count, 2);
}

#[test]
fn the_smallest_tables_are_valid() {
    assert_eq!(check(&tables(NODES, JOBS, TASKS, "").unwrap()), []);
}

#[test]
fn texts_keep_their_ids_while_the_pool_grows() {
    let mut pool = TextPool::default();
    let names: Vec<_> = (0..5000).map(|number| format!("name {number}")).collect();
    let ids: Vec<_> = names.iter().map(|name| pool.intern(name).unwrap()).collect();
    for (name, id) in names.iter().zip(&ids) {
        assert_eq!((pool.get(*id), pool.find(name)), (name.as_str(), Some(*id)));
        assert_eq!(pool.intern(name), Ok(*id));
    }
    assert_eq!((pool.len(), pool.find("other")), (5001, None));
    assert_eq!((pool.get(TextId::EMPTY), pool.find("")), ("", Some(TextId::EMPTY)));
}

#[test]
fn priority_classes_are_numbers_or_known_names() {
    let classes = ["", "12", "-3", "BE", "Spot", "low", "normal", "LS", "HP", "Production", "x"];
    let values = classes.map(resolve);
    let known = [0, 12, -3, -1, -1, -1, 0, 1, 1, 2].map(Some);
    assert_eq!(values[..10], known);
    assert_eq!(values[10], None);
}
