//! Tables that are damaged, senseless or hostile: each a clear error that names the place.

use std::io::Write;

use crate::program::{Folder, Tables};

const SIMULATE: &str = "simulate --policy fifo --trace trace";

/// A trace with one good job, in which `change` breaks something; it must be told by `words`.
#[track_caller]
fn refused(change: impl FnOnce(&mut Tables), words: &[&str]) {
    let folder = Folder::new();
    let mut tables = Tables::new().plain_job("good", 0);
    change(&mut tables);
    tables.write(&folder);
    folder.run(SIMULATE).fails(1, words);
}

#[test]
fn senseless_numbers_are_refused_with_their_place() {
    let task = |line: &'static str| move |tables: &mut Tables| tables.tasks += line;
    let job = |line: &'static str| move |tables: &mut Tables| tables.jobs += line;
    let place = "tasks.csv:3: column `duration_ms`";
    refused(task("good,1,1000,,1000,-5,\n"), &[place, "negative: `-5`"]);
    refused(task("good,1,1000,,1000,NaN,\n"), &[place, "not a whole number: `NaN`"]);
    refused(task("good,1,1000,,1000,1e9,\n"), &[place, "not a whole number: `1e9`"]);
    refused(task("good,1,1000,,1000,18446744073709551615,\n"), &[place, "larger than"]);
    refused(task("good,1,1000,,1000,99999999999999999999999,\n"), &[place, "larger than"]);
    refused(task("good,1,1000,,4294967295,1,\n"), &["tasks.csv:3: column `cpu_milli`", "larger"]);
    refused(task("good,1,1001,,1000,1,\n"), &["tasks.csv:3: column `gpu_milli`", "1001"]);
    refused(task("good,0,1000,,1000,1,\n"), &["tasks.csv:3: column `count`", "below 1"]);
    refused(task("good,,1000,,1000,1,\n"), &["tasks.csv:3: column `count`", "empty"]);
    refused(task("good,1000001,0,,1,1,\n"), &["tasks.csv:3: column `count`", "larger than"]);
    refused(job("late,ada,,18446744073709551615,,\n"), &["jobs.csv:3: column `submit_ms`"]);
    refused(job("late,ada,,0,18446744073709551615,\n"), &["jobs.csv:3: column `deadline_ms`"]);
    refused(job("late,ada,,-1,,\n"), &["jobs.csv:3: column `submit_ms`", "negative: `-1`"]);
    refused(job(",ada,,0,,\n"), &["jobs.csv:3: column `job_id`", "empty"]);
}

#[test]
fn rows_that_contradict_each_other_are_refused_with_their_place() {
    refused(|tables| tables.jobs += "good,bob,,5,,\n", &["jobs.csv:3:", "twice: `good`"]);
    refused(|tables| tables.jobs += "idle,bob,,5,,\n", &["jobs.csv:3:", "no tasks: `idle`"]);
    refused(
        |tables| tables.tasks += "other,1,1000,,1000,5,\n",
        &["tasks.csv:3:", "not in jobs.csv: `other`"],
    );
    refused(
        |tables| tables.nodes += "n1,V100,2,8000,65536,,\n",
        &["nodes.csv:3:", "intervals of a node overlap"],
    );
    refused(
        |tables| tables.nodes += "n2,V100,2,8000,65536,20,10\n",
        &["nodes.csv:3:", "goes down before it comes up"],
    );
}

#[test]
fn a_job_without_a_run_time_is_refused_by_name() {
    let folder = Folder::new();
    Tables::new().job("endless", 0, "1,1000,,1000,,").write(&folder);
    folder.run(SIMULATE).fails(1, &["jobs.csv:2: job `endless` has no run time", "duration_ms"]);
}

#[test]
fn a_job_with_a_million_tasks_is_refused_by_name() {
    let folder = Folder::new();
    Tables::new().job("huge", 0, "1000000,0,,1,1000,").write(&folder);
    folder.run(SIMULATE).fails(1, &["tasks.csv:2: `count` of job `huge`: 1000000"]);
}

#[test]
fn a_job_with_a_hundred_thousand_tasks_runs_or_is_rejected() {
    let folder = Folder::new();
    let tables = Tables::new().plain_job("plain", 0).job("many", 0, "100000,0,,1,1000,");
    let mut tables = tables.job("over", 0, "100000,0,,1000,1000,");
    tables.nodes = tables.nodes.replace("8000", "100000");
    tables.write(&folder);
    let run = folder.json(&format!("{SIMULATE} --json"));
    assert_eq!(run["jobs_done"], 2);
    assert_eq!(run["jobs_rejected"], 1);
}

#[test]
fn the_largest_values_that_are_allowed_do_not_overflow() {
    let folder = Folder::new();
    let most = (1u64 << 53).to_string();
    let mut tables = Tables::new().plain_job("first", 0);
    tables.jobs += &format!("last,ada,2147483647,{most},{most},{most}\n");
    tables.tasks += &format!("last,1,1000,,4294967294,{most},\n");
    tables.nodes = format!(
        "node_id,gpu_model,gpu_count,cpu_milli,mem_mib,up_from_s,up_to_s\n\
         n1,V100,64,4294967294,4294967294,,{most}\n\
         n2,V100,64,4294967294,4294967294,,\n"
    );
    tables.write(&folder);
    for def in hostler_policies::builtin().all() {
        let line = format!("compare --trace trace --json --policies {}", def.kind);
        let run = &folder.json(&line)["runs"][0];
        assert_eq!(run["jobs_done"], 2, "{}", def.kind);
    }
}

#[test]
fn a_table_that_is_cut_off_is_refused_with_its_line() {
    refused(|tables| tables.tasks += "good,1,10", &["tasks.csv:3: 3 fields, but the header has 7"]);
    refused(|tables| tables.jobs += "\"open", &["jobs.csv:3: "]);
    refused(|tables| tables.jobs.clear(), &["jobs.csv: the file is empty"]);
    refused(
        |tables| tables.tasks = "job_id,count".to_owned(),
        &["jobs.csv:2:", "no tasks: `good`"],
    );
    refused(|tables| tables.tasks = "job_id\n".to_owned(), &["tasks.csv:1: column `count`"]);
    refused(
        |tables| tables.jobs = tables.jobs.replace("user", "uzer"),
        &["jobs.csv:1: unknown column", "uzer", "known: job_id, user"],
    );
}

#[test]
fn a_packed_table_that_is_cut_off_or_is_none_is_refused() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    for at in 0..2000 {
        tables = tables.plain_job(&format!("job-{at}"), at * 977);
    }
    tables.write(&folder);
    folder.quiet("trace convert trace gzip --compress gzip");
    folder.quiet("trace convert trace zstd --compress zstd");
    for (packed, suffix) in [("gzip", "gz"), ("zstd", "zst")] {
        let name = format!("{packed}/jobs.csv.{suffix}");
        let whole = folder.read(&name);
        folder.write(&name, &whole[..whole.len() / 2]);
        let line = format!("simulate --policy fifo --trace {packed}");
        let place = format!("jobs.csv.{suffix}:");
        folder.run(&line).fails(1, &[&place, "cannot read on"]);
        folder.write(&name, "job_id,submit_ms\n");
        folder.run(&line).fails(1, &[&place, "cannot read on"]);
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let folder = Folder::new();
    let tables = Tables::new().plain_job("good", 0);
    tables.write(&folder);
    let mut jobs = tables.jobs.into_bytes();
    jobs.extend_from_slice(b"bad\xff,ada,,1,,\n");
    folder.write("trace/jobs.csv", jobs);
    folder.run(SIMULATE).fails(1, &["jobs.csv:3: column `job_id`: not UTF-8: `bad\\xff`"]);
}

#[test]
fn what_is_not_there_or_is_no_file_is_refused_by_name() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("trace")).expect("a folder can be made");
    folder.run(SIMULATE).fails(1, &["no `jobs.csv` in `trace`"]);
    folder.write("trace/jobs.csv", "job_id,submit_ms\n");
    folder.run(SIMULATE).fails(1, &["no `tasks.csv` in `trace`"]);
    std::fs::create_dir(folder.path("trace/tasks.csv")).expect("a folder can be made");
    folder.run(SIMULATE).fails(1, &["tasks.csv"]);
    folder.run("simulate --policy fifo --trace trace/jobs.csv").fails(1, &["trace/jobs.csv"]);
    folder.run("trace check missing").fails(1, &["`missing`"]);
}

#[test]
fn the_same_table_twice_is_refused() {
    let folder = Folder::new();
    Tables::new().plain_job("good", 0).write(&folder);
    folder.write("trace/jobs.csv.gz", "");
    folder.run(SIMULATE).fails(1, &["jobs.csv", "jobs.csv.gz", "remove one"]);
}

#[test]
fn a_trace_without_machines_asks_for_a_cluster() {
    let folder = Folder::new();
    Tables::new().plain_job("good", 0).write(&folder);
    std::fs::remove_file(folder.path("trace/nodes.csv")).expect("it was written");
    folder.run(SIMULATE).fails(1, &["no nodes.csv in `trace`", "--cluster"]);
}

/// Ten gigabytes of one letter, packed to less than a megabyte.
fn endless_line() -> Vec<u8> {
    let block = vec![b'a'; 64 << 20];
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("zstd is there");
    encoder.write_all(&block).expect("memory is there");
    // Frames follow one another: the first is packed once and repeated.
    let frame = encoder.finish().expect("memory is there");
    frame.repeat((10 << 30) / block.len())
}

#[test]
fn a_line_of_ten_gigabytes_is_refused_at_its_limit() {
    let folder = Folder::new();
    Tables::new().plain_job("good", 0).write(&folder);
    std::fs::remove_file(folder.path("trace/jobs.csv")).expect("it was written");
    let packed = endless_line();
    assert!(packed.len() < 1 << 20, "{} bytes", packed.len());
    folder.write("trace/jobs.csv.zst", &packed);
    let words = ["jobs.csv.zst:1: record is longer than 1048576 bytes"];
    folder.run(SIMULATE).fails(1, &words);
    folder.write("nodes.csv.zst", &packed);
    folder.run("simulate --policy fifo --cluster nodes.csv.zst").fails(1, &["longer than"]);
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_refused_by_name() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    Tables::new().plain_job("good", 0).write(&folder);
    let path = folder.path("trace/jobs.csv");
    let locked = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(&path, locked).expect("it is ours");
    // An administrator may read everything: there is nothing to see then.
    if std::fs::File::open(&path).is_err() {
        folder.run(SIMULATE).fails(1, &["cannot read", "jobs.csv", "denied"]);
    }
}

#[test]
fn what_is_not_there_is_told_once() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    for (line, words) in [
        ("trace check nosuch", "there is no file or folder `nosuch`"),
        ("trace convert nosuch out", "there is no file or folder `nosuch`"),
        ("analyze nosuch", "there is no file or folder `nosuch`"),
        (
            "simulate --trace trace --policy fifo --cluster nosuch.toml",
            "cannot read `nosuch.toml`: No such file or directory (os error 2)",
        ),
    ] {
        let ran = folder.run(line);
        assert_eq!(ran.stderr, format!("error: {words}\n"), "{line}");
        assert_eq!(ran.code, Some(1), "{line}");
    }
}
