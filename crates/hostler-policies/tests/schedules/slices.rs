//! Schedules of time slices, pairs that are tried, and moves.

use expect_test::expect;

use crate::check;

#[test]
fn everybody_has_the_same_part_of_the_time() {
    check(
        "kind = 'gandiva'",
        "
        model V100 mem 16384
        node n gpus 1 model V100 cpu 64 mem 65536
        suspend fixed 0.1 out 0 back 0
        job a  at 0  gpus 1  for 300  saves never
        job b  at 0  gpus 1  for 300  saves never
        ",
        expect![[r#"
            a  0..60.1 120.1..180.1 240.1..300.1 360.1..420.1 480.1..540.1 600.1..601
            b  60.1..120.1 180.1..240.1 300.1..360.1 420.1..480.1 540.1..600.1 601..602
            avg jct 601.50  makespan 602  preemptions 10
        "#]],
    );
}

/// Two kinds of jobs on one GPU, of which nobody knows what they do beside each other.
fn strangers(rates: &str) -> String {
    format!(
        "
        model V100 mem 16384
        node n gpus 1 model V100 cpu 64 mem 65536
        profile p
        profile q
        pair p q {rates}
        speeds observed
        job a  at 0  gpus 1  for 600  profile p  sharing willing
        job b  at 0  gpus 1  for 600  profile q  sharing willing
        "
    )
}

#[test]
fn two_that_do_well_beside_each_other_go_on_sharing() {
    check(
        "kind = 'gandiva'",
        &strangers("0.6 0.6"),
        expect![[r#"
            a  0..60 120..1020
            b  60..120 120..1020
            avg jct 1020.00  makespan 1020  preemptions 2
        "#]],
    );
}

#[test]
fn two_that_do_not_are_parted_and_not_tried_again() {
    check(
        "kind = 'gandiva'",
        &strangers("0.45 0.45"),
        expect![[r#"
            a  0..60 120..180 180..240 300..360 420..480 540..600 660..720 780..840 900..960 1020..1080 1140..1173
            b  60..120 120..180 240..300 360..420 480..540 600..660 720..780 840..900 960..1020 1080..1140 1173..1206
            avg jct 1189.50  makespan 1206  preemptions 20
        "#]],
    );
}

#[test]
fn two_that_cannot_start_beside_each_other_are_tried_once() {
    check(
        "kind = 'gandiva'",
        &strangers("0 0"),
        expect![[r#"
            a  0..60 120..180 180..240 300..360 420..480 540..600 660..720 780..840 900..960 1020..1080
            b  60..120 120..120 240..300 360..420 480..540 600..660 720..780 840..900 960..1020 1080..1200
            avg jct 1140.00  makespan 1200  preemptions 17
        "#]],
    );
}

#[test]
fn nobody_shares_who_is_not_to() {
    check(
        "kind = 'gandiva'\npacked = false",
        &strangers("0.6 0.6"),
        expect![[r#"
        a  0..60 120..180 240..300 360..420 480..540 600..660 720..780 840..900 960..1020 1080..1140
        b  60..120 180..240 300..360 420..480 540..600 660..720 780..840 900..960 1020..1080 1140..1200
        avg jct 1170.00  makespan 1200  preemptions 18
    "#]],
    );
}

/// Two nodes with one job each, and one that needs a node for itself.
const PIECES: &str = "
    model V100 mem 16384
    node n gpus 4 model V100 cpu 64 mem 65536
    node m gpus 4 model V100 cpu 64 mem 65536
    job a  at 0  gpus 1  for 600
    job b  at 1  gpus 1  for 600
    job c  at 70  gpus 4  for 100
";

#[test]
fn jobs_leave_a_node_that_another_needs_whole() {
    check(
        "kind = 'gandiva'\nplace = 'spread'",
        PIECES,
        expect![[r#"
        a  0..120 120..600
        b  1..601
        c  120..220
        avg jct 450.00  makespan 601  preemptions 1
    "#]],
    );
}

#[test]
fn without_moves_it_waits() {
    check(
        "kind = 'gandiva'\nplace = 'spread'\nmigrate = false",
        PIECES,
        expect![[r#"
        a  0..600
        b  1..601
        c  600..700
        avg jct 610.00  makespan 700  preemptions 0
    "#]],
    );
}

#[test]
fn tasks_come_together_where_that_makes_them_faster() {
    // b is beside a, so that c finds one GPU on each node; when a is done there is another beside
    // b, and when b is done c has a node for itself.
    check(
        "kind = 'gandiva'",
        "
        model V100 mem 16384
        node n gpus 2 model V100 cpu 64 mem 65536
        node m gpus 2 model V100 cpu 64 mem 65536
        profile p V100=1 cluster=0.5 rack=0.5
        job a  at 0   gpus 1  for 20
        job b  at 0   gpus 1  for 90
        job d  at 1   gpus 1  for 600
        job c  at 30  gpus 1  count 2  for 600  profile p
        ",
        expect![[r#"
            a  0..20
            b  0..90
            d  1..601
            c  30..120 120..675
            avg jct 338.75  makespan 675  preemptions 1
        "#]],
    );
}
