//! What jobs used of their GPUs enters the log before the end of their stay.

use expect_test::expect;

use crate::story::check;

#[test]
fn use_is_a_fact_of_jobs_that_finish() {
    check(
        "
        0 join n1 1
        0 join n2 1
        1 submit gpus=1 tasks=2
        2 n1 0 running
        2 n2 0 running
        3 n1 0 ended 0 300
        3 n1 0 ended 0 900
        4 n2 0 ended 0 5000
        5 submit gpus=1
        6 n1 1 running
        7 n1 1 ended 3 300
        8 submit gpus=1
        9 n1 2 running
        10 n1 2 ended 0
        11 ends
        ",
        expect![[""]],
    );
}
