//! Two agents with one folder: a copy, and the same one come back.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_copy_is_refused_for_good_once_the_first_is_heard_again() {
    check(
        "
        0 join n1 1 from a@1
        1 submit gpus=1
        2 n1 0 running
        3 join n1 1 from b@1
        5 old n1 beat
        6 join n1 1 from b@1
        7 jobs
        ",
        expect![[r#"
            0 join n1 1 from a@1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 join n1 1 from b@1
                to n1: Refused { fault: "another agent speaks for node `n1` from n1.example and was heard 3 s ago; this one has to wait until that is surely gone", retry: true }
                close n1
            5 old n1 beat
            6 join n1 1 from b@1
                to n1: Refused { fault: "another agent speaks for node `n1` from n1.example and lives; this one has a copy of its folder or token: stop one of them, or let this machine join under a name of its own, with an empty `--data` folder and a token of `hostler token create --role agent NAME`", retry: false }
                close n1
            7 jobs
                1 running, on n1
        "#]],
    );
}

#[test]
fn an_agent_that_was_killed_comes_back_at_once_whatever_its_old_connection_looks_like() {
    check(
        "
        0 join n1 1 from a@1
        1 submit gpus=1
        2 n1 0 running
        3 join n1 1 from a@1 0 running
        4 lose n1
        5 restart
        6 join n1 1 from a@1 0 running
        7 jobs
        ",
        expect![[r#"
            0 join n1 1 from a@1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 join n1 1 from a@1 0 running
                close (old)
            4 lose n1
            5 restart
            6 join n1 1 from a@1 0 running
            7 jobs
                1 running, on n1
        "#]],
    );
}

#[test]
fn a_machine_that_was_started_again_waits_until_it_cannot_be_a_copy() {
    check(
        "
        0 join n1 1 from a@1
        1 submit gpus=1
        2 n1 0 running
        9 join n1 1 from a@2 0 killed
        32 join n1 1 from a@2 0 killed
        ",
        expect![[r#"
            0 join n1 1 from a@1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            9 join n1 1 from a@2 0 killed
                to n1: Refused { fault: "another agent speaks for node `n1` from n1.example and was heard 9 s ago; this one has to wait until that is surely gone", retry: true }
                close n1
            32 join n1 1 from a@2 0 killed
                close (old)
                to n1: forget lease0
                to n1: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n1.example:20001
        "#]],
    );
}

#[test]
fn a_copy_of_an_agent_that_is_gone_waits_until_its_jobs_surely_are() {
    check(
        "
        0 join n1 1 from a@1
        1 submit gpus=1
        2 n1 0 running
        3 lose n1
        4 restart
        40 join n1 1 from b@1 0 killed
        964 tick
        965 join n1 1 from b@1 0 killed
        966 join n1 1 from a@1 0 running
        ",
        expect![[r#"
            0 join n1 1 from a@1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 lose n1
            4 restart
            40 join n1 1 from b@1 0 killed
                to n1: Refused { fault: "another agent speaks for node `n1` from n1.example and was heard 36 s ago; this one has to wait until that is surely gone", retry: true }
                close n1
            964 tick
            965 join n1 1 from b@1 0 killed
                to n1: forget lease0
                to n1: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n1.example:20001
            966 join n1 1 from a@1 0 running
                to n1: Refused { fault: "another agent speaks for node `n1` from n1.example and was heard 1 s ago; this one has to wait until that is surely gone", retry: true }
                close n1
        "#]],
    );
}
