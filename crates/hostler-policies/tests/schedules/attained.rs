//! Schedules of the policies that go by attained service.

use expect_test::expect;

use crate::check;

/// A long job, one of middle length, and a short one that comes when both have run.
const STORY: &str = "
    cluster 1
    job a  at 0   gpus 1  for 100
    job b  at 10  gpus 1  for 60
    job c  at 50  gpus 1  for 10
";

#[test]
fn las_lets_jobs_take_turns_by_quanta() {
    // At 20 a has had a quantum and b none. At 40 both have had one, and nobody is stopped among
    // equals; at 50 c has had none. When c is done a goes on, as it is older than b; at 80 it has
    // had two quanta. From 90 on both have.
    check(
        "kind = 'las'\nquantum_gpu_secs = 20",
        STORY,
        expect![[r#"
            a  0..20 60..80 110..170
            b  20..50 80..110
            c  50..60
            avg jct 93.33  makespan 170  preemptions 3
        "#]],
    );
}

#[test]
fn las_without_preemption_ranks_those_who_wait() {
    check(
        "kind = 'las'\npreempt = false",
        STORY,
        expect![[r#"
            a  0..100
            b  100..160
            c  160..170
            avg jct 123.33  makespan 170  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_sinks_at_the_very_second_and_gives_way() {
    // At 30 a sinks and b takes its place; c comes at 50 and waits, as b is in its queue. At 60 b
    // sinks, and c runs. Then both are in the second queue, and a was there first.
    check(
        "kind = 'tiresias'\nlimits_gpu_secs = [30]",
        STORY,
        expect![[r#"
            a  0..30 70..140
            b  30..60 140..170
            c  60..70
            avg jct 106.67  makespan 170  preemptions 2
        "#]],
    );
}

#[test]
fn gangs_sink_sooner() {
    // Four GPUs use 40 GPU seconds in ten seconds.
    check(
        "kind = 'tiresias'\nlimits_gpu_secs = [40]",
        "
        cluster 4
        job a  at 0  gpus 4  for 30  save 1  load 2
        job b  at 2  gpus 1  for 20
        ",
        expect![[r#"
            a  0..11 31..53
            b  11..31
            avg jct 41.00  makespan 53  preemptions 1
        "#]],
    );
}

#[test]
fn who_has_waited_long_enough_begins_anew() {
    // a sinks at 20 and waits while others keep coming. With `promote = 2` it is back in the first
    // queue after 40 seconds, at 60, and before e there. By 70 waiting has paid back 25 seconds, so
    // that 20 more count at 95. By then c has waited twice as long as it ran, too.
    let story = "
        cluster 1
        job a  at 0   gpus 1  for 60
        job b  at 10  gpus 1  for 15
        job c  at 20  gpus 1  for 45
        job d  at 30  gpus 1  for 15
        job e  at 65  gpus 1  for 10
    ";
    check(
        "kind = 'tiresias'\nlimits_gpu_secs = [20]",
        story,
        expect![[r#"
            a  0..20 80..120
            b  20..35
            c  35..55 120..145
            d  55..70
            e  70..80
            avg jct 65.00  makespan 145  preemptions 2
        "#]],
    );
    check(
        "kind = 'tiresias'\nlimits_gpu_secs = [20]\npromote = 2.0",
        story,
        expect![[r#"
            a  0..20 70..95 125..140
            b  20..35
            c  35..55 95..115 140..145
            d  55..70
            e  115..125
            avg jct 78.00  makespan 145  preemptions 4
        "#]],
    );
}

#[test]
fn who_begins_anew_works_before_it_sinks_again() {
    // Loading takes as long as the first queue lasts: were that service, both would sink before
    // they do anything, and be stopped for each other again and again.
    check(
        "kind = 'tiresias'\nlimits_gpu_secs = [20]\npromote = 1.0",
        "
        cluster 1
        job a  at 0   gpus 1  for 60  load 20
        job b  at 0   gpus 1  for 60  load 20
        ",
        expect![[r#"
            a  0..20 40..80 140..180
            b  20..40 80..140
            avg jct 160.00  makespan 180  preemptions 3
        "#]],
    );
}

#[test]
fn a_start_that_is_confirmed_late_hides_no_change_of_queue() {
    check(
        "kind = 'tiresias'\nlimits_gpu_secs = [30]",
        "
        cluster 1
        job a  at 0   gpus 1  for 60
        job b  at 10  gpus 1  for 20
        fault start a late 20
        ",
        expect![[r#"
            a  0..30 50..80
            b  30..50
            avg jct 60.00  makespan 80  preemptions 1
        "#]],
    );
}

/// Four jobs that teach, and three that come when they are over.
const LESSONS: &str = "
    cluster 1
    job a  at 0   gpus 1  for 10
    job b  at 0   gpus 1  for 10
    job c  at 0   gpus 1  for 10
    job d  at 0   gpus 1  for 40
    job e  at 70  gpus 1  for 40
    job f  at 72  gpus 1  for 20
    job g  at 90  gpus 1  for 10
";

#[test]
fn gittins_goes_by_what_jobs_needed() {
    // Within 20 seconds three of four newcomers end, which takes 50 / 3 seconds each. Of those that
    // have had 15 none ends so soon, and of those that have had 30 all do, in 10. So e gives way to
    // f at 85, and f to g at 100; then e was there first, and from 125 on it comes before all.
    check(
        "kind = 'gittins'\nlimits_gpu_secs = []\nspan_gpu_secs = 20\nquantum_gpu_secs = 15\n\
         ends_min = 4",
        LESSONS,
        expect![[r#"
            a  0..10
            b  10..20
            c  20..30
            d  30..70
            e  70..85 110..135
            f  85..100 135..140
            g  100..110
            avg jct 40.43  makespan 140  preemptions 2
        "#]],
    );
}

#[test]
fn gittins_goes_by_queues_until_enough_jobs_are_over() {
    check(
        "kind = 'gittins'\nlimits_gpu_secs = [25]\nspan_gpu_secs = 20\nquantum_gpu_secs = 15\n\
         ends_min = 8",
        LESSONS,
        expect![[r#"
            a  0..10
            b  10..20
            c  20..30
            d  30..70
            e  70..95 125..140
            f  95..115
            g  115..125
            avg jct 39.71  makespan 140  preemptions 1
        "#]],
    );
    check(
        "kind = 'tiresias'\nlimits_gpu_secs = [25]",
        LESSONS,
        expect![[r#"
        a  0..10
        b  10..20
        c  20..30
        d  30..70
        e  70..95 125..140
        f  95..115
        g  115..125
        avg jct 39.71  makespan 140  preemptions 1
    "#]],
    );
}

#[test]
fn gittins_looks_at_like_jobs_where_enough_of_them_are_over() {
    // At 60 two jobs of the group of f are known, which took 5 seconds each. Of the other group one
    // is known, which is too few: of all three an end takes 20 seconds.
    check(
        "kind = 'gittins'\nlimits_gpu_secs = []\nspan_gpu_secs = 60\nquantum_gpu_secs = 100\n\
         ends_min = 2",
        "
        cluster 1
        job a  at 0  gpus 1  for 5   group s
        job b  at 0  gpus 1  for 5   group s
        job c  at 0  gpus 1  for 50  group l
        job d  at 0  gpus 1  for 50  group l
        job e  at 1  gpus 1  for 50  group l
        job f  at 2  gpus 1  for 5   group s
        ",
        expect![[r#"
            a  0..5
            b  5..10
            c  10..60
            d  65..115
            e  115..165
            f  60..65
            avg jct 69.50  makespan 165  preemptions 0
        "#]],
    );
}
