//! Schedules of finish-time fairness by leases.

use expect_test::expect;

use crate::check;

/// A long job, and two that come while it runs.
const STORY: &str = "
    cluster 1
    job a  at 0   gpus 1  for 100
    job b  at 10  gpus 1  for 50
    job c  at 20  gpus 1  for 20
";

#[test]
fn a_lease_runs_out_before_others_have_a_turn() {
    // At 30 the lease of a is over. It was alone for 10 s, then one of two, then one of three:
    // among two on average its 100 s take 200. b would end 70 s after it came, and 125 are due to
    // it; c after 30 of 60. So b is worst off with 0.56, and at 60 it is c with 60 / 60.
    check(
        "kind = 'themis'\nmode = 'plain'\nlease_secs = 30",
        STORY,
        expect![[r#"
        a  0..30 100..170
        b  30..60 80..100
        c  60..80
        avg jct 106.67  makespan 170  preemptions 2
    "#]],
    );
}

#[test]
fn leases_may_end_together() {
    check(
        "kind = 'themis'\nmode = 'aligned'\nlease_secs = 25",
        STORY,
        expect![[r#"
        a  0..25 95..170
        b  25..50 70..95
        c  50..70
        avg jct 101.67  makespan 170  preemptions 2
    "#]],
    );
}

/// Two jobs that take turns in giving up their leases, and a gang that needs both GPUs.
const GANG: &str = "
    cluster 2
    job a  at 0   gpus 1  for 200
    job b  at 15  gpus 1  for 200
    job c  at 20  gpus 2  for 20
";

#[test]
fn plain_leases_starve_a_gang() {
    check(
        "kind = 'themis'\nmode = 'plain'\nlease_secs = 30",
        GANG,
        expect![[r#"
        a  0..200
        b  15..215
        c  215..235
        avg jct 205.00  makespan 235  preemptions 0
    "#]],
    );
}

#[test]
fn who_fares_badly_need_not_wait_for_leases_to_end() {
    // Among three jobs 60 s are due to c for its 20. When it has waited for 46 it would end a tenth
    // later than that, and need not wait any longer.
    check(
        "kind = 'themis'\nlease_secs = 300",
        GANG,
        expect![[r#"
        a  0..66.000001 86.000001..220
        b  15..66.000001 86.000001..235
        c  66.000001..86.000001
        avg jct 168.67  makespan 235  preemptions 2
    "#]],
    );
}

/// Two jobs that load what they saved for as long as a lease lasts.
const SLOW_TO_LOAD: &str = "
    cluster 1
    job a  at 0   gpus 1  for 50  load 20
    job b  at 5   gpus 1  for 50  load 20
";

#[test]
fn a_lease_is_longer_than_it_takes_to_load() {
    // Were they counted from their starts, leases would end before anything was done.
    check(
        "kind = 'themis'\nmode = 'plain'\nlease_secs = 20",
        SLOW_TO_LOAD,
        expect![[r#"
            a  0..20 40..80 120..150
            b  20..40 80..120 150..180
            avg jct 162.50  makespan 180  preemptions 4
        "#]],
    );
    check(
        "kind = 'themis'\nmode = 'aligned'\nlease_secs = 20",
        SLOW_TO_LOAD,
        expect![[r#"
            a  0..20 40..90
            b  20..40 90..140
            avg jct 112.50  makespan 140  preemptions 2
        "#]],
    );
}
