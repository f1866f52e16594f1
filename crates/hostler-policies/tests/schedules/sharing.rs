//! Schedules of jobs that share GPUs, worked out by hand. The law is that of `docs/sharing.md`;
//! most fixtures leave only the part of it on that they are about.

use expect_test::expect;

use crate::check;

#[test]
fn jobs_that_use_little_do_not_slow_each_other_down() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        sharing capacity=1 interference=0
        job a  at 0  gpus 0.5  for 100  use 0.3
        job b  at 0  gpus 0.5  for 100  use 0.7
        ",
        expect![[r#"
            a  0..100
            b  0..100
            avg jct 100.00  makespan 100  preemptions 0
        "#]],
    );
}

#[test]
fn jobs_that_use_more_than_the_device_slow_each_other_down_until_one_is_done() {
    // a gets what it uses, 0.4, and b the other 0.6 of the 0.8 that it uses: 3/4 of its speed. At
    // 100 a is done and b has done 75 of 100; alone it goes at full speed again.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        sharing capacity=1 interference=0
        job a  at 0  gpus 0.5  for 100  use 0.4
        job b  at 0  gpus 0.5  for 100  use 0.8
        ",
        expect![[r#"
            a  0..100
            b  0..125
            avg jct 112.50  makespan 125  preemptions 0
        "#]],
    );
}

#[test]
fn a_gang_goes_at_the_speed_of_its_slowest_share() {
    // One task of g shares a device with a and gets half of it; the other is alone and waits for
    // it. At 100 g is done and a has done 50.
    check(
        "kind = 'fifo'",
        "
        cluster 2
        sharing capacity=1 interference=0
        job a  at 0  gpus 0.5  for 100  use 1
        job g  at 0  gpus 0.5  for 50   use 1  count 2
        ",
        expect![[r#"
            a  0..150
            g  0..100
            avg jct 125.00  makespan 150  preemptions 0
        "#]],
    );
}

#[test]
fn memory_beyond_the_guarantee_is_lent_until_a_newcomer_books_it() {
    // a uses 12000 of 16384 MiB and is guaranteed 4096. Until 50 it has them all. Then b books
    // 8192: 4096 are left, 3808 are missing, and a goes at 1 - 0.5 * 3808/12000 = 0.841333 of its
    // speed: its other 50 take 59.43.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        sharing capacity=1 interference=0 spill=0.5
        job a  at 0   gpus 0.25  for 100  use 0.1  mem_use 12000
        job b  at 50  gpus 0.5   for 100  use 0.1
        ",
        expect![[r#"
            a  0..109.429501
            b  50..150
            avg jct 104.71  makespan 150  preemptions 0
        "#]],
    );
}

const RECURRING: &str = "
    model gpu mem 16000
    cluster 1
    sharing capacity=1 interference=0
    job a1  at 0    gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
    job a2  at 20   gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
    job a3  at 40   gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
    job a4  at 100  gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
    job a5  at 100  gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
    job a6  at 100  gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
    job a7  at 100  gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
    job a8  at 100  gpus 0.6  gpu_mem 4000  for 10  use 0.2  group g  sharing willing
";

#[test]
fn without_sharing_every_job_has_a_device_of_its_own() {
    check(
        "kind = 'fifo'\nsharing = 'off'",
        RECURRING,
        expect![[r#"
        a1  0..10
        a2  20..30
        a3  40..50
        a4  100..110
        a5  110..120
        a6  120..130
        a7  130..140
        a8  140..150
        avg jct 22.50  makespan 150  preemptions 0
    "#]],
    );
}

#[test]
fn by_request_one_such_job_fits_a_device() {
    check(
        "kind = 'fifo'\nsharing = 'requests'",
        RECURRING,
        expect![[r#"
        a1  0..10
        a2  20..30
        a3  40..50
        a4  100..110
        a5  110..120
        a6  120..130
        a7  130..140
        a8  140..150
        avg jct 22.50  makespan 150  preemptions 0
    "#]],
    );
}

#[test]
fn willing_jobs_are_packed_by_what_like_jobs_used_until_memory_is_full() {
    // Three jobs of the group were seen to use 0.2: five would fit by compute, memory holds four.
    check(
        "kind = 'fifo'\nsharing = 'packed'",
        RECURRING,
        expect![[r#"
        a1  0..10
        a2  20..30
        a3  40..50
        a4  100..110
        a5  100..110
        a6  100..110
        a7  100..110
        a8  110..120
        avg jct 11.25  makespan 120  preemptions 0
    "#]],
    );
}

#[test]
fn jobs_that_are_not_willing_are_never_packed() {
    let never = RECURRING.replace("sharing willing", "sharing never");
    check(
        "kind = 'fifo'\nsharing = 'packed'",
        &never,
        expect![[r#"
        a1  0..10
        a2  20..30
        a3  40..50
        a4  100..110
        a5  110..120
        a6  120..130
        a7  130..140
        a8  140..150
        avg jct 22.50  makespan 150  preemptions 0
    "#]],
    );
}

#[test]
fn a_job_beside_packed_ones_that_use_more_than_expected_keeps_what_it_booked() {
    // The group was seen to use 0.2, so b1 and b2 book 0.2 each beside the 0.6 of n; but they use
    // 0.9. n books 0.6 and uses 0.6: it is not slowed. Of the other 0.4 each gets 0.2 of 0.9 until
    // n is done at 130; they have done 6.67 of 20 by then and go on at 0.5/0.9: 24 s
    // more, but for rates that are rounded to millionths.
    check(
        "kind = 'fifo'\nsharing = 'packed'",
        "
        model gpu mem 16000
        cluster 1
        sharing capacity=1 interference=0
        job a1  at 0    gpus 0.5  gpu_mem 1000  for 10  use 0.2  group g  sharing willing
        job a2  at 20   gpus 0.5  gpu_mem 1000  for 10  use 0.2  group g  sharing willing
        job a3  at 40   gpus 0.5  gpu_mem 1000  for 10  use 0.2  group g  sharing willing
        job n   at 100  gpus 0.6  for 30  use 0.6
        job b1  at 100  gpus 0.5  gpu_mem 1000  for 20  use 0.9  group g  sharing willing
        job b2  at 100  gpus 0.5  gpu_mem 1000  for 20  use 0.9  group g  sharing willing
        ",
        expect![[r#"
            a1  0..10
            a2  20..30
            a3  40..50
            n   100..130
            b1  100..153.999993
            b2  100..153.999993
            avg jct 28.00  makespan 153.999993  preemptions 0
        "#]],
    );
}
