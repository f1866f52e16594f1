//! What keeps jobs from a policy: quotas, other jobs and arrays, whatever the policy.

use expect_test::expect;

use super::check;

#[test]
fn a_tenant_has_no_more_gpus_than_its_quota_and_is_let_through_in_order() {
    check(
        "kind = 'fifo'",
        "
        cluster 8
        tenant red quota 3
        job a  at 0  gpus 2  for 10  tenant red
        job b  at 1  gpus 2  for 10  tenant red
        job c  at 2  gpus 1  for 10  tenant red
        job d  at 3  gpus 4  for 10  tenant blue
        ",
        expect![[r#"
            a  0..10
            b  10..20
            c  10..20
            d  3..13
            avg jct 14.25  makespan 20  preemptions 0
        "#]],
    );
}

#[test]
fn jobs_come_after_others_and_end_with_those_that_never_come() {
    check(
        "kind = 'sjf'",
        "
        cluster 8
        job a  at 0  gpus 1  for 10
        job b  at 0  gpus 1  for 5   after a
        job c  at 0  gpus 1  for 5   after b:started
        job d  at 0  gpus 1  for 20  limit 7
        job e  at 1  gpus 1  for 5   after d
        job f  at 1  gpus 1  for 5   after d:failed
        job g  at 1  gpus 1  for 5   after e:over
        ",
        expect![[r#"
            a  0..10
            b  10..15
            c  10..15
            d  0..7 timed out
            e  cancelled
            f  7..12
            g  7..12
            avg jct 12.40  makespan 15  preemptions 0
        "#]],
    );
}

#[test]
fn jobs_go_where_nodes_can_do_what_they_need_and_keep_nobody_else_waiting() {
    for kind in ["fifo-backfill", "sjf"] {
        check(
            &format!("kind = '{kind}'"),
            "
            node x  gpus 1
            node y  gpus 1  features 1
            node z  gpus 1  features 3
            job a  at 0  gpus 1  for 10  needs 2
            job b  at 1  gpus 1  for 10  needs 2
            job c  at 2  gpus 1  for 10  needs 1
            job d  at 3  gpus 1  for 10
            job e  at 4  gpus 1  for 10  needs 4
            ",
            expect![[r#"
                a  0..10
                b  10..20
                c  2..12
                d  3..13
                e  rejected
                avg jct 12.25  makespan 20  preemptions 0
            "#]],
        );
    }
}

#[test]
fn so_many_of_an_array_run_at_once() {
    check(
        "kind = 'fifo'",
        "
        cluster 8
        job a  at 0  gpus 1  for 10  array_of a  array_max 2
        job b  at 0  gpus 1  for 10  array_of a  array_max 2
        job c  at 0  gpus 1  for 10  array_of a  array_max 2
        job d  at 0  gpus 1  for 10
        ",
        expect![[r#"
            a  0..10
            b  0..10
            c  10..20
            d  0..10
            avg jct 12.50  makespan 20  preemptions 0
        "#]],
    );
}
