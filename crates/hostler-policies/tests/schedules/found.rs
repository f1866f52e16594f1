//! Schedules beside a job that nobody here started.

use expect_test::expect;

use crate::check;

/// A job that is kept back and runs all the same, and two that come while it does.
const STORY: &str = "
    cluster 2
    job a  at 0   gpus 1  for 50
    job b  at 10  gpus 2  for 10
    job c  at 20  gpus 1  for 60
    kept a at 0 for 500
    found a at 5 on node
";

#[test]
fn a_calendar_knows_of_a_job_that_was_found() {
    // At 5 one of two GPUs is taken until 55, though nobody saw a wait; so b has to wait for that,
    // and c, which would take longer, for b.
    check(
        "kind = 'conservative-backfill'",
        STORY,
        expect![[r#"
        a  5..55
        b  55..65
        c  65..125
        avg jct 71.67  makespan 125  preemptions 0
    "#]],
    );
}

#[test]
fn a_job_that_was_found_counts_as_one_that_runs() {
    // Whoever overtakes b may hold three GPUs in all. From 15 on a has two of them, so that there
    // is none for c until a ends, but one for d.
    check(
        "kind = 'bounded-sjf'\nestimate = 'oracle'\nstretch = 2",
        "
        cluster 6
        job x  at 0   gpus 2  for 100
        job b  at 10  gpus 6  for 10
        job a  at 12  gpus 2  for 70
        job c  at 20  gpus 2  for 60
        job d  at 21  gpus 1  for 30
        kept a at 12 for 500
        found a at 15 on node
        ",
        expect![[r#"
            x  0..100
            b  145..155
            a  15..85
            c  85..145
            d  21..51
            avg jct 94.60  makespan 155  preemptions 0
        "#]],
    );
}

#[test]
fn who_was_found_with_fewer_tasks_than_it_asks_for_is_not_suspended() {
    // It would wait for a place for all three of them.
    check(
        "kind = 'sjf'\npreempt = true",
        "
        node n gpus 3 model A cpu 7
        suspend fixed 0 out 0 back 0
        job x  at 0   gpus 1  cpu 1  for 30
        job a  at 1   gpus 1  count 3  cpu 2  for 50  saves never
        job b  at 20  gpus 0  count 3  cpu 2  for 1
        found a at 10 on n
        ",
        expect![[r#"
            x  0..30
            a  10..60
            b  60..61
            avg jct 43.33  makespan 61  preemptions 0
        "#]],
    );
}
