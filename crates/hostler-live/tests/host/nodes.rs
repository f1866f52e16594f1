//! Machines that change, come back late, or know more than the store.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_shorter_fence_counts_only_when_the_longer_one_has_run_out() {
    check(
        "
        0 join n1 1
        0 join n2 1
        1 submit gpus=1
        2 n1 0 running
        3 restart fence=60
        4 join n2 1
        130 n2 beat
        130 nodes
        962 n2 beat
        963 n2 beat
        964 n2 1 running
        1031 n2 beat
        1100 restart fence=60
        1219 tick
        1219 nodes
        1220 tick
        1220 nodes
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 restart fence=60
            4 join n2 1
            130 n2 beat
            130 nodes
                n1 silent 1 used
                n2 up 0 used
            962 n2 beat
            963 n2 beat
                to n2: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n2.example:20001
            964 n2 1 running
            1031 n2 beat
            1100 restart fence=60
            1219 tick
            1219 nodes
                n1 down 0 used
                n2 silent 1 used
            1220 tick
            1220 nodes
                n1 down 0 used
                n2 down 0 used
        "#]],
    );
}

#[test]
fn a_machine_that_changed_joins_anew_when_nothing_runs_there() {
    check(
        "
        0 join n1 2
        1 submit gpus=1
        2 n1 0 running
        3 join n1 4 0 running
        3 nodes
        4 submit gpus=1
        5 n1 0 ended 0
        6 n1 beat
        6 nodes
        7 jobs
        ",
        expect![[r#"
            0 join n1 2
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 join n1 4 0 running
                close (old)
            3 nodes
                n1 resting 1 used
            4 submit gpus=1
                submitted [2]
            5 n1 0 ended 0
                to n1: forget lease0
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            6 n1 beat
            6 nodes
                n1 up 1 used
            7 jobs
                2 starting, on n1
        "#]],
    );
}

#[test]
fn nobody_waits_for_what_a_machine_was_before_it_changed() {
    check(
        "
        0 join n1 4
        0 join n2 1
        1 submit gpus=4
        1 submit gpus=2
        2 jobs
        3 join n1 1
        4 jobs
        5 restart
        6 join n1 1
        6 join n2 1
        7 submit gpus=4
        8 jobs
        ",
        expect![[r#"
            0 join n1 4
            0 join n2 1
            1 submit gpus=4
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000), (2, 1000), (3, 1000)] of 1 at n1.example:20000
            1 submit gpus=2
                submitted [2]
            2 jobs
                1 starting, on n1
                2 queued: needs 2 GPUs on one node; the most free on one is 1 (node `n2`)
            3 join n1 1
                close (old)
                to n1: forget lease0
            4 jobs
                1 held by nodes, on n1: needs 4 GPUs on one node; the largest, `n1`, has 1; it waits for other nodes to join
                2 held by nodes: needs 2 GPUs on one node; the largest, `n1`, has 1; it waits for other nodes to join
            5 restart
            6 join n1 1
            6 join n2 1
            7 submit gpus=4
                submitted [3]
            8 jobs
                1 held by nodes, on n1: needs 4 GPUs on one node; the largest, `n1`, has 1; it waits for other nodes to join
                2 held by nodes: needs 2 GPUs on one node; the largest, `n1`, has 1; it waits for other nodes to join
                3 held by nodes: needs 4 GPUs on one node; the largest, `n1`, has 1; it waits for other nodes to join
        "#]],
    );
}

#[test]
fn numbers_that_a_restored_store_does_not_know_are_not_given_out_again() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        2 backup
        3 n1 0 ended 0
        4 submit gpus=1
        5 n1 1 ended 0
        6 submit gpus=1
        7 restore
        8 jobs
        9 submit gpus=1
        10 cancel 1
        11 join n1 1 2 running
        12 jobs
        13 restart
        14 submit gpus=1
        14 nodes
        15 join n1 1 4000000000 unknown
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 backup
            3 n1 0 ended 0
                to n1: forget lease0
            4 submit gpus=1
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            5 n1 1 ended 0
                to n1: forget lease1
            6 submit gpus=1
                submitted [3]
                to n1: start lease2 job3 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20002
            7 restore
            8 jobs
                1 starting, on n1
            9 submit gpus=1
                submitted [2]
            10 cancel 1
                1 stopping, on n1: cancelled; it is being stopped
            11 join n1 1 2 running
                to n1: stop lease2 kill in 0 ms
                to n1: forget lease0
                to n1: start lease3 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20003
            12 jobs
                2 starting, on n1
            13 restart
            14 submit gpus=1
                submitted [3]
            14 nodes
                n1 resting 1 used
            15 join n1 1 4000000000 unknown
                to n1: Refused { fault: "it knows lease4000000000, the store none from lease4 on; restore a newer backup, or empty the agent's data folder", retry: false }
                close n1
        "#]],
    );
}

#[test]
fn words_over_the_old_connection_of_a_changed_machine_are_not_heard() {
    check(
        "
        0 join n1 2
        1 join n1 4
        32 n1 beat
        32 old n1 beat
        33 submit gpus=4
        ",
        expect![[r#"
            0 join n1 2
            1 join n1 4
                close (old)
            32 n1 beat
            32 old n1 beat
            33 submit gpus=4
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000), (2, 1000), (3, 1000)] of 1 at n1.example:20000
        "#]],
    );
}

#[test]
fn only_the_agent_that_was_asked_gives_output() {
    check(
        "
        0 join n1 1
        0 join n2 1
        1 submit gpus=1
        2 n1 0 running
        3 output 1
        4 n2 piece 1 forged
        5 n1 piece 1 true
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 output 1
                to n1: read 1 of lease0
            4 n2 piece 1 forged
            5 n1 piece 1 true
                output true
        "#]],
    );
}

#[test]
fn jobs_whose_files_an_agent_has_are_not_numbered_again_by_a_restored_store() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        2 backup
        3 submit gpus=1 array=3
        4 restore
        5 join n1 1 files 4
        6 submit gpus=1
        7 restart
        8 join n1 1 files 5
        9 submit gpus=1
        10 join n2 1 files 4000000000
        11 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 backup
            3 submit gpus=1 array=3
                submitted [2, 3, 4]
            4 restore
            5 join n1 1 files 4
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            6 submit gpus=1
                submitted [5]
            7 restart
            8 join n1 1 files 5
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            9 submit gpus=1
                submitted [6]
            10 join n2 1 files 4000000000
                to n2: Refused { fault: "it has files of job 4000000000, the store knows none from 7 on; restore a newer backup, or move `jobs` and `checkpoints` of the agent's data folder away", retry: false }
                close n2
            11 jobs
                1 starting, on n1
                5 queued: needs 1 GPU; none is free
                6 queued: needs 1 GPU; none is free
        "#]],
    );
}

#[test]
fn the_last_number_of_a_job_that_an_empty_store_leaves_out_can_be_read_back() {
    check(
        "
        0 join n1 1 files 1048576
        1 restart
        2 join n1 1 files 1048575
        3 restart
        4 join n1 1 files 1048575
        5 submit gpus=1
        ",
        expect![[r#"
            0 join n1 1 files 1048576
                to n1: Refused { fault: "it has files of job 1048576, the store knows none from 1 on; restore a newer backup, or move `jobs` and `checkpoints` of the agent's data folder away", retry: false }
                close n1
            1 restart
            2 join n1 1 files 1048575
            3 restart
            4 join n1 1 files 1048575
            5 submit gpus=1
                submitted [1048576]
                to n1: start lease0 job1048576 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
        "#]],
    );
}

#[test]
fn the_last_number_of_a_lease_that_an_empty_store_leaves_out_can_be_read_back() {
    check(
        "
        0 join n1 1 4194304 running
        1 restart
        2 join n1 1 4194303 running
        3 restart
        4 join n1 1 4194303 unknown
        5 submit gpus=1
        ",
        expect![[r#"
            0 join n1 1 4194304 running
                to n1: Refused { fault: "it knows lease4194304, the store none from lease0 on; restore a newer backup, or empty the agent's data folder", retry: false }
                close n1
            1 restart
            2 join n1 1 4194303 running
                to n1: stop lease4194303 kill in 0 ms
            3 restart
            4 join n1 1 4194303 unknown
            5 submit gpus=1
                submitted [1]
                to n1: start lease4194304 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:24304
        "#]],
    );
}

#[test]
fn a_node_whose_agent_is_gone_gets_nothing_until_it_is_back() {
    check(
        "
        0 join n1 2
        1 submit gpus=1
        2 n1 0 running
        3 lose n1
        4 submit gpus=1
        5 jobs
        5 nodes
        6 join n1 2 0 running
        6 nodes
        7 jobs
        ",
        expect![[r#"
            0 join n1 2
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 lose n1
            4 submit gpus=1
                submitted [2]
            5 jobs
                1 running, on n1: node `n1` has said nothing for 4 s; its agent is not connected
                2 queued: none of 1 nodes takes jobs; see `hostler nodes`
            5 nodes
                n1 silent 1 used
            6 join n1 2 0 running
                to n1: start lease1 job2 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20001
            6 nodes
                n1 up 2 used
            7 jobs
                1 running, on n1
                2 starting, on n1
        "#]],
    );
}

#[test]
fn a_machine_with_more_gpus_than_can_be_counted_is_refused() {
    check(
        "
        0 join n1 128
        0 join n2 129
        0 nodes
        ",
        expect![[r#"
            0 join n1 128
            0 join n2 129
                to n2: Refused { fault: "it has 129 GPUs; a node may have 128", retry: false }
                close n2
            0 nodes
                n1 up 0 used
        "#]],
    );
}
