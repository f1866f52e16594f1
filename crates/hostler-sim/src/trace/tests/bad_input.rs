//! Every kind of bad input gives a message with file, line, column and value.

use std::io::{Read, Write};

use expect_test::{Expect, expect};

use super::super::error::Faults;
use super::super::meta::Meta;
use super::super::read::{ReadOptions, read, read_jobs};
use super::super::table::Trace;
use super::{JOBS, Scratch, TASKS, tables, told};

fn check_jobs(jobs: &str, expected: Expect) {
    expected.assert_eq(&told(tables("", jobs, "", "")));
}

fn check_bytes(bytes: &[u8], expected: Expect) {
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    read_jobs(&mut &bytes[..], "jobs.csv", &mut trace, &mut faults);
    expected.assert_eq(&told(faults.or(())));
}

#[test]
fn bad_numbers_are_named() {
    let jobs = "job_id,submit_ms,attempts\na,NaN,1\nb,-5,1\nc,1.5,1\nd,99999999999999999999,1\n\
                e,1e3,4294967295\nf,,1\ng, 7,0x10\nh,9007199254740993,1\n,1,1\n";
    check_jobs(
        jobs,
        expect![[r#"
        jobs.csv:2: column `submit_ms`: not a whole number: `NaN`
        jobs.csv:3: column `submit_ms`: negative: `-5`
        jobs.csv:4: column `submit_ms`: not a whole number: `1.5`
        jobs.csv:5: column `submit_ms`: larger than 9007199254740992: `99999999999999999999`
        jobs.csv:6: column `submit_ms`: not a whole number: `1e3`
        jobs.csv:6: column `attempts`: larger than 4294967294: `4294967295`
        jobs.csv:7: column `submit_ms`: value is empty
        jobs.csv:8: column `submit_ms`: not a whole number: ` 7`
        jobs.csv:8: column `attempts`: not a whole number: `0x10`
        jobs.csv:9: column `submit_ms`: larger than 9007199254740992: `9007199254740993`
        jobs.csv:10: column `job_id`: value is empty
    "#]],
    );
}

#[test]
fn bad_words_are_named() {
    let nodes = "node_id,gpu_count,cpu_milli,link,labels\nn1,1,1,infiniband,a=b\nn2,129,1,,a;b\n";
    let tasks = "job_id,count,gang\na,1,yes\na,0,1\na,1000001,1\n";
    let jobs = "job_id,submit_ms,status_in_trace\na,0,Terminated\n";
    let instances = "job_id,status\na,ok\n";
    expect![[r#"
        nodes.csv:2: column `link`: unknown value; known: none, pcie, nvlink: `infiniband`
        nodes.csv:3: column `labels`: not `key=value;key=value`: `a;b`
        nodes.csv:3: column `gpu_count`: larger than 128: `129`
        jobs.csv:2: column `status_in_trace`: unknown value; known: Completed, Failed, Cancelled, Timeout, NodeFail, Interrupted, Running, Waiting: `Terminated`
        tasks.csv:2: column `gang`: unknown value; known: 0, 1: `yes`
        tasks.csv:4: column `count`: larger than 1000000: `1000001`
        instances.csv:2: column `status`: unknown value; known: Completed, Failed, Cancelled, Timeout, NodeFail, Interrupted, Running, Waiting: `ok`
    "#]].assert_eq(&told(tables(nodes, jobs, tasks, instances)));
}

#[test]
fn bad_headers_are_named() {
    check_jobs(
        "job_id,sbmit_ms,user,user\n",
        expect![[r#"
            jobs.csv:1: unknown column; known: job_id, user, group_tag, queue, priority_class, submit_ms, deadline_ms, time_limit_ms, est_ms, status_in_trace, workload, attempts, sharing: `sbmit_ms`
            jobs.csv:1: column `user`: column is there twice
            jobs.csv:1: column `submit_ms`: column is missing
        "#]],
    );
    check_jobs(
        "\n",
        expect![[r#"
        jobs.csv: the file is empty; expected a header line
    "#]],
    );
    check_bytes(
        b"",
        expect![[r#"
        jobs.csv: the file is empty; expected a header line
    "#]],
    );
}

#[test]
fn rows_with_too_many_or_few_fields_are_named() {
    check_jobs(
        "job_id,submit_ms\na\nb,1,2\n",
        expect![[r#"
        jobs.csv:2: 1 fields, but the header has 2
        jobs.csv:3: 3 fields, but the header has 2
    "#]],
    );
}

#[test]
fn bytes_that_are_no_text_are_named() {
    check_bytes(
        b"job_id,submit_ms\na,1\n\xff\xfe,2\n",
        expect![[r#"
            jobs.csv:3: column `job_id`: not UTF-8: `\xff\xfe`
        "#]],
    );
    check_bytes(
        b"job_id,submit_ms\na,\xff\n",
        expect![[r#"
            jobs.csv:2: column `submit_ms`: not a whole number: `\xff`
        "#]],
    );
    check_bytes(
        &[0xff; 100],
        expect![[r#"
            jobs.csv:1: unknown column; known: job_id, user, group_tag, queue, priority_class, submit_ms, deadline_ms, time_limit_ms, est_ms, status_in_trace, workload, attempts, sharing: `\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff..`
            jobs.csv:1: column `job_id`: column is missing
            jobs.csv:1: column `submit_ms`: column is missing
        "#]],
    );
}

#[test]
fn an_endless_line_is_refused_in_bounded_memory() {
    let mut endless = "job_id,submit_ms\na,1\nb".as_bytes().chain(std::io::repeat(b'x'));
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    read_jobs(&mut endless, "jobs.csv", &mut trace, &mut faults);
    expect![[r#"
        jobs.csv:3: record is longer than 1048576 bytes; is a quote left open?
    "#]]
    .assert_eq(&told(faults.or(())));
    assert!(trace.heap_bytes() < 10_000);
}

#[test]
fn an_open_quote_over_many_lines_is_refused() {
    let mut text = "job_id,submit_ms\n\"a,1\n".to_owned();
    text.push_str(&"b,1\n".repeat(400_000));
    check_jobs(
        &text,
        expect![[r#"
        jobs.csv:2: record is longer than 1048576 bytes; is a quote left open?
    "#]],
    );
}

#[test]
fn a_long_field_is_refused() {
    check_jobs(
        &format!("job_id,submit_ms\n{},1\n", "x".repeat(70_000)),
        expect![[r#"
            jobs.csv:2: column `job_id`: value is longer than 65536 bytes: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..`
        "#]],
    );
}

#[test]
fn reading_stops_after_a_hundred_faults() {
    let mut text = "job_id,submit_ms\n".to_owned();
    text.push_str(&"a,x\n".repeat(500));
    let message = told(tables("", &text, "", ""));
    assert_eq!(message.lines().count(), 101);
    assert!(message.ends_with("\nstopped after 100 faults\n"), "{message}");
}

fn packed(suffix: &str, text: &str) -> Vec<u8> {
    if suffix == "gz" {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(text.as_bytes()).unwrap();
        return encoder.finish().unwrap();
    }
    zstd::encode_all(text.as_bytes(), 3).unwrap()
}

#[test]
fn cut_off_and_damaged_packed_files_are_named() {
    let mut rows = "job_id,submit_ms\n".to_owned();
    for row in 0..20_000 {
        rows.push_str(&format!("job-{},{}\n", row * 7919 % 20_011, row));
    }
    for suffix in ["gz", "zst"] {
        let whole = packed(suffix, &rows);
        for bytes in [whole[..whole.len() / 2].to_vec(), whole[..3].to_vec(), vec![7; 100]] {
            let scratch = Scratch::new();
            scratch.write(&format!("jobs.csv.{suffix}"), bytes);
            scratch.write("tasks.csv", "job_id,count\n");
            let message = told(read(scratch.0.path(), ReadOptions::default()));
            let place = format!("jobs.csv.{suffix}:");
            assert!(message.starts_with(&place), "{message}");
            assert!(message.contains("cannot read on: "), "{message}");
        }
    }
}

#[test]
fn missing_and_doubled_files_are_named() {
    let scratch = Scratch::new();
    let place = scratch.0.path().display().to_string();
    let check = |expected: Expect| {
        let message = told(read(scratch.0.path(), ReadOptions::default()));
        expected.assert_eq(&message.replace(&place, "FOLDER"));
    };
    check(expect![[r#"
        no `jobs.csv` in `FOLDER`; expected it plain, `.gz` or `.zst`
    "#]]);
    scratch.write("jobs.csv", JOBS);
    check(expect![[r#"
        no `tasks.csv` in `FOLDER`; expected it plain, `.gz` or `.zst`
    "#]]);
    scratch.write("tasks.csv", TASKS);
    scratch.write("tasks.csv.gz", packed("gz", TASKS));
    check(expect![[r#"
        both `FOLDER/tasks.csv` and `FOLDER/tasks.csv.gz` exist; remove one
    "#]]);
}

#[test]
fn bad_meta_files_are_named() {
    let check = |text: &str, expected: Expect| {
        expected.assert_eq(&told(Meta::parse(text, "meta.toml")));
    };
    check(
        "source = \"x\"\nauthor = \"y\"\n",
        expect![[r#"
        meta.toml:2: unknown field `author`, expected one of `source`, `licence`, `time_origin`, `time_zone`, `importer`, `options`, `rows`, `rows_read`, `rows_dropped`, `rows_noted`, `inputs`
    "#]],
    );
    check(
        "source = \n",
        expect![[r#"
        meta.toml:1: string values must be quoted, expected literal string
    "#]],
    );
    check(
        "[rows]\njobs = -1\n",
        expect![[r#"
        meta.toml:2: invalid value: integer `-1`, expected u64
    "#]],
    );
    check(
        &"a.".repeat(10_000),
        expect![[r#"
        meta.toml:1: key with no value, expected `=`
    "#]],
    );
}
