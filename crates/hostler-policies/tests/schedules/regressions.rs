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

#[test]
fn nobody_is_put_beside_another_where_it_may_not_be() {
    for kind in ["max-throughput", "finish-time-fairness", "max-min-fairness", "gandiva"] {
        let policy = format!("kind = '{kind}'\npacked = true\nround_secs = 60");
        let scenario = "
            node n0 gpus 1 model B cpu 4 mem 1000 rack 0 island 0
            node n1 gpus 2 model A cpu 5 mem 1887 rack 0 island 0
            window w0 nodes n0 from 40 until 203 evicts yes
            profile p
            profile q
            pair p p 0 0
            pair p q 0.3 0.3
            pair q q 0 0
            job j0 at 0 gpus 1 cpu 1 for 57 estimate 1 load 4 profile q sharing willing
            job j1 at 0 gpus 1 cpu 1 model B for 1 estimate 1 gpu_mem 200 saves never profile p sharing willing
            job j2 at 0 gpus 0 count 2 cpu 1 for 1 estimate 1 profile q sharing willing
            job j3 at 15 gpus 0 cpu 1 model B for 1 estimate 1 profile p sharing willing
            job j4 at 15 gpus 0 cpu 1 for 1 estimate 1 profile q sharing willing
            job j5 at 15 gpus 0 cpu 1 model B for 1 estimate 1 profile p sharing willing
            job j6 at 15 gpus 0 cpu 1 model B for 1 estimate 1 profile q sharing willing
            job j7 at 15 gpus 0.1 cpu 1 for 21 estimate 1 save 4 every 10 profile p sharing willing
            job j8 at 142 gpus 0.1 cpu 1 mem 623 for 1 estimate 1 profile q sharing willing
            fault node-down n1 at 7 for 166
        ";
        hostler_sim::fixture::check(&|| build(&policy), scenario);
    }
}
