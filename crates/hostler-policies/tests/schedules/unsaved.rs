//! Jobs that cannot be saved: they are left alone, or lose only so much.

use expect_test::expect;

use super::{check, check_of};

#[test]
fn who_cannot_be_saved_stays_until_its_end() {
    check_of(
        &["srtf", "max-min-fairness", "finish-time-fairness", "isolated"],
        "cluster 8
        job a at 0 gpus 8 for 1000 saves never
        job b at 10 gpus 8 for 50 saves never",
        expect![[r#"
            a  0..1000
            b  1000..1050
            avg jct 1020.00  makespan 1050  preemptions 0
        "#]],
    );
}

#[test]
fn a_round_gives_the_rest_to_the_others() {
    check(
        "kind = 'max-min-fairness'\nround_secs = 100",
        "cluster 2
        job a at 0 gpus 1 for 1000 saves never
        job b at 0 gpus 1 for 300
        job c at 0 gpus 1 for 300",
        expect![[r#"
            a  0..1000
            b  0..100 200..300 400..500
            c  100..200 300..400 500..600
            avg jct 700.00  makespan 1000  preemptions 4
        "#]],
    );
}

#[test]
fn where_work_may_be_lost_each_stay_is_longer_than_all_before() {
    check(
        "kind = 'max-min-fairness'\nround_secs = 100",
        "cluster 1
        lost_max 1000
        job a at 0 gpus 1 for 700 saves never
        job b at 0 gpus 1 for 700 saves never",
        expect![[r#"
            a  0..100 200..400 600..1200 1800..2500
            b  100..200 400..600 1200..1800 2500..3200
            avg jct 2850.00  makespan 3200  preemptions 6
        "#]],
    );
}
