//! One test for each bug that was found, named after it.

use std::fmt::Write as _;

use expect_test::expect;

use crate::{build, check};

#[test]
fn a_job_that_does_not_get_in_rules_out_none_that_asks_for_less_memory() {
    check(
        "kind = 'priority'\npreempt = true",
        "
        node n gpus 2 mem 65536
        job r at 0 gpus 1 mem 24576 for 1000 priority 3
        job a at 1 gpus 1 mem 48128 for 100 priority 2
        job b at 2 gpus 1 mem 33792 for 100 priority 1
        ",
        expect![[r#"
            r  0..1000
            a  1000..1100
            b  2..102
            avg jct 733.00  makespan 1100  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_behind_thousands_that_cannot_run_starts_all_the_same() {
    let mut text = String::from("node v gpus 1 model V\nnode t gpus 1 model T\n");
    for at in 0..4200 {
        writeln!(text, "job v{at} at 1 gpus 1 model V for 1").expect("writing to a string");
    }
    text.push_str("job t at 1 gpus 1 model T for 5\nfault node-down v at 0\n");
    let fixture = hostler_sim::fixture::Fixture::parse(&text).expect("a fixture");
    let first = fixture.check(&|| build("kind = 'srtf'"));
    assert_eq!(first.endings.len(), 1, "only the job on the node that is there ends");
}

#[test]
fn a_job_whose_roles_never_fit_together_is_rejected_and_blocks_nobody() {
    for kind in ["fifo", "sjf", "srtf", "fifo-backfill", "conservative-backfill"] {
        check(
            &format!("kind = '{kind}'"),
            "
            cluster 2
            job big at 0 gpus 2 for 10
            role gpus 2
            job small at 1 gpus 1 for 10
            ",
            expect![[r#"
                big    rejected
                small  1..11
                avg jct 10.00  makespan 11  preemptions 0
            "#]],
        );
    }
}

#[test]
fn gpu_memory_of_a_task_without_gpus_keeps_nobody_waiting() {
    check(
        "kind = 'fifo'",
        "
        node n gpus 1 model V
        job odd at 0 gpus 0 model V gpu_mem 99999 for 10
        job next at 1 gpus 1 for 10
        ",
        expect![[r#"
            odd   0..10
            next  1..11
            avg jct 10.00  makespan 11  preemptions 0
        "#]],
    );
}
