//! Stories of tasks that are suspended and go on.

use expect_test::expect;

use super::check;

#[test]
#[expect(clippy::too_many_lines, reason = "most of it is recorded text")]
fn suspended_tasks_go_on_under_the_next_number() {
    check(
        "
        0 connect 1
        5 1 welcome
        6 1 start 7
        7 runs 7
        8 1 suspend 7
        9 suspended 7 7
        10 1 start 9 from 7
        11 suspended 7 7
        12 runs 7
        13 1 suspend 7
        14 step 7 40
        15 1 suspend 9
        16 suspended 7 9
        crash
        20 suspended 7 9
        21 connect 2
        22 2 welcome
        23 2 start 12 from 9
        24 runs 7
        25 2 read 12
        26 ends 7 0
        27 2 forget 12
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            5 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            6 1 start 7
                launch lease7
            7 runs 7
                1 report lease7 running
            8 1 suspend 7
                Stop { lease: lease7, how: Suspend, grace_ms: 500 }
            9 suspended 7 7
                1 report lease7 suspended { of: lease7 }
            10 1 start 9 from 7
                Resume { lease: lease7, now_for: lease9 }
            11 suspended 7 7
                Resume { lease: lease7, now_for: lease9 }
            12 runs 7
                1 report lease9 running
            13 1 suspend 7
                1 report lease7 unknown
            14 step 7 40
                1 lease9 step 40
            15 1 suspend 9
                Stop { lease: lease7, how: Suspend, grace_ms: 500 }
            16 suspended 7 9
                1 report lease9 suspended { of: lease9 }
            crash
                Watch { lease: lease7 }
            20 suspended 7 9
            21 connect 2
                2 hello [lease9 suspended { of: lease9 }]
            22 2 welcome
                StillAlive(Alive { sent_ms: 21, fence_ms: 10000 })
            23 2 start 12 from 9
                Resume { lease: lease7, now_for: lease12 }
            24 runs 7
                2 report lease12 running
            25 2 read 12
                ReadOutput { session: 2, request: 1, lease: lease7, rank: 0, stream: Stdout, offset: -10, ended: false }
            26 ends 7 0
                2 report lease12 ended [0]
            27 2 forget 12
                Forgotten { lease: lease7 }
        "#]],
    );
}

#[test]
fn tasks_that_go_on_and_were_not_told_are_told_by_the_next_agent() {
    check(
        "
        0 connect 1
        5 1 welcome
        6 1 start 7
        7 runs 7 , 1 suspend 7
        8 suspended 7 7
        9 1 start 9 from 7
        crash
        10 suspended 7 7
        11 runs 7
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            5 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            6 1 start 7
                launch lease7
            7 runs 7 , 1 suspend 7
                1 report lease7 running
                Stop { lease: lease7, how: Suspend, grace_ms: 500 }
            8 suspended 7 7
                1 report lease7 suspended { of: lease7 }
            9 1 start 9 from 7
                Resume { lease: lease7, now_for: lease9 }
            crash
                Watch { lease: lease7 }
            10 suspended 7 7
                Resume { lease: lease7, now_for: lease9 }
            11 runs 7
        "#]],
    );
}

#[test]
fn what_cannot_be_suspended_is_told_and_not_asked_again() {
    check(
        "
        0 connect 1
        5 1 welcome
        6 1 start 7
        7 runs 7
        8 1 suspend 7
        9 refuses 7
        10 runs 7
        11 1 suspend 7
        12 suspended 7 7
        13 1 resume 7
        14 suspended 7 7
        15 runs 7
        16 1 start 9 from 3
        ",
        expect![[r#"
            0 connect 1
                1 hello []
            5 1 welcome
                StillAlive(Alive { sent_ms: 0, fence_ms: 10000 })
            6 1 start 7
                launch lease7
            7 runs 7
                1 report lease7 running
            8 1 suspend 7
                Stop { lease: lease7, how: Suspend, grace_ms: 500 }
            9 refuses 7
                1 cannot suspend lease7: not supported
            10 runs 7
            11 1 suspend 7
                Stop { lease: lease7, how: Suspend, grace_ms: 500 }
            12 suspended 7 7
                1 report lease7 suspended { of: lease7 }
            13 1 resume 7
                Resume { lease: lease7, now_for: lease7 }
            14 suspended 7 7
                Resume { lease: lease7, now_for: lease7 }
            15 runs 7
                1 report lease7 running
            16 1 start 9 from 3
                1 report lease9 notstarted { fault: "what it was to go on from is not there any more", of_machine: false }
        "#]],
    );
}
