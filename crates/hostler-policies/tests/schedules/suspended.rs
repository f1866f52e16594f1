//! Jobs that are suspended in favour of others, and go on where they were.

use expect_test::expect;
use hostler_core::decision::{Decision, StopHow};
use hostler_core::id::{ModelId, ProfileKey};
use hostler_core::profile::{PairPace, PairRun, Run};
use hostler_core::record::Record;
use hostler_core::units::{Pace, Span};
use hostler_sim::fixture::{self, Fixture};

use crate::{build, check, check_reasons};

/// Two GPUs of 16 GiB in a node with 64 GiB; 1 s and 1 s for each GiB out, half a second back.
const NODE: &str = "
    model V100 mem 16384
    node n gpus 2 model V100 cpu 64 mem 65536
    suspend fixed 1 out 1 back 0.5
";

#[test]
fn a_job_that_cannot_be_saved_is_suspended_and_loses_nothing() {
    // 17 s out, 9 s back: a runs for 2, is gone at 19, waits until 24 and goes on at 33.
    check(
        "kind = 'srtf'",
        &format!(
            "{NODE}
            job a  at 0  gpus 1  for 100  saves never
            job b  at 0  gpus 1  for 1000  saves never  suspend never
            job c  at 2  gpus 1  for 5
            "
        ),
        expect![[r#"
            a  0..19 24..131
            b  0..1000
            c  19..24
            avg jct 384.33  makespan 1000  preemptions 1
        "#]],
    );
}

#[test]
fn what_saves_itself_at_less_cost_is_saved_and_may_go_on_elsewhere() {
    check(
        "kind = 'srtf'",
        &format!(
            "{NODE}
            job a  at 0  gpus 2  for 100  save 2  load 3
            job b  at 10  gpus 2  for 5
            "
        ),
        expect![[r#"
            a  0..12 17..110
            b  12..17
            avg jct 58.50  makespan 110  preemptions 1
        "#]],
    );
}

#[test]
fn what_saves_itself_at_more_cost_is_suspended() {
    check(
        "kind = 'srtf'",
        &format!(
            "{NODE}
            job a  at 0  gpus 2  gpu_mem 4096  for 100  save 20  load 30
            job b  at 10  gpus 2  for 5
            "
        ),
        expect![[r#"
            a  0..19 24..119
            b  19..24
            avg jct 66.50  makespan 119  preemptions 1
        "#]],
    );
}

#[test]
fn without_memory_for_it_nobody_is_suspended() {
    // 48 of 64 GiB are taken, and 2 x 16 GiB would move.
    check(
        "kind = 'srtf'",
        &format!(
            "{NODE}
            job a  at 0  gpus 2  mem 49152  for 100  saves never
            job b  at 10  gpus 2  for 5
            "
        ),
        expect![[r#"
            a  0..100
            b  100..105
            avg jct 97.50  makespan 105  preemptions 0
        "#]],
    );
}

#[test]
fn memory_of_suspended_jobs_is_kept_from_others() {
    // While a waits in 20 + 16 GiB, c finds 28 GiB and d finds its 30 only when a goes on.
    check(
        "kind = 'srtf'",
        &format!(
            "{NODE}
            job a  at 0  gpus 1  mem 20480  for 100  saves never
            job b  at 2  gpus 2  for 50
            job c  at 30  gpus 0  mem 28672  for 10
            job d  at 30  gpus 0  mem 30720  for 60
            "
        ),
        expect![[r#"
            a  0..19 69..176
            b  19..69
            c  30..40
            d  69..129
            avg jct 88.00  makespan 176  preemptions 1
        "#]],
    );
}

#[test]
fn a_suspended_job_waits_for_its_own_gpus() {
    // b takes the GPU of a; when it could go on, the other one is free and its own is not.
    check(
        "kind = 'priority'\npreempt = true",
        &format!(
            "{NODE}
            job a  at 0  gpus 1  for 100  priority 1  saves never
            job x  at 0  gpus 1  for 30  priority 9
            job b  at 2  gpus 1  for 60  priority 5
            "
        ),
        expect![[r#"
            a  0..19 79..186
            x  0..30
            b  19..79
            avg jct 97.67  makespan 186  preemptions 1
        "#]],
    );
}

#[test]
fn who_waits_suspended_is_told_so() {
    check_reasons(
        "kind = 'srtf'",
        &format!(
            "{NODE}
            job a  at 0  gpus 2  for 100  saves never
            job b  at 10  gpus 2  for 5
            "
        ),
        expect![[r#"
            10  job 1: 1 jobs are being stopped in its favour
        "#]],
    );
}

#[test]
fn a_node_that_fails_takes_suspended_jobs_along() {
    // a did 10 s of work, which nobody saved.
    check(
        "kind = 'srtf'",
        &format!(
            "{NODE}
            job a  at 0  gpus 2  for 100  saves never
            job b  at 10  gpus 2  for 50
            fault node-down n at 60 for 10
            "
        ),
        expect![[r#"
            a  0..43 120..220
            b  43..60 70..120
            avg jct 165.00  makespan 220  preemptions 1
        "#]],
    );
}

#[test]
fn a_job_that_is_suspended_goes_on_by_the_same_devices_and_by_suspension_alone() {
    let scenario = format!(
        "{NODE}
        job a  at 0  gpus 2  for 100  saves never
        job b  at 10  gpus 2  for 5
        "
    );
    let checked = fixture::check(&|| build("kind = 'srtf'"), &scenario);
    let outputs = checked.records.iter().filter_map(|record| match record {
        Record::Output { decisions, .. } => Some(decisions),
        Record::Input { .. } => None,
    });
    let stops = outputs.flatten().filter_map(|decision| match decision {
        Decision::Stop { how, .. } => Some(*how),
        _ => None,
    });
    assert_eq!(stops.collect::<Vec<_>>(), [StopHow::Suspend]);
}

#[test]
fn a_job_that_could_only_be_suspended_is_not_told_to_run_elsewhere() {
    // Model A comes first among equals, but is gone when the job starts again.
    check(
        "kind = 'fifo-fastest'",
        "
        node n0 gpus 8 model B cpu 8 mem 4786
        node n1 gpus 8 model A cpu 8 mem 1000
        suspend fixed 0 out 0 back 0
        job j0  at 0  gpus 1  cpu 1  for 61  estimate 1  gpu_mem 200  saves never
        fault node-down n1 at 300 for 1
        fault finish j0 late 239
        ",
        expect![[r#"
            j0  0..300 300..361
            avg jct 361.00  makespan 361  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_that_is_to_run_elsewhere_is_saved_and_not_suspended() {
    check(
        "kind = 'fifo-fastest'",
        "
        node n0 gpus 8 model B cpu 8 mem 40000
        node n1 gpus 8 model A cpu 8 mem 40000
        suspend fixed 0 out 0 back 0
        job j0  at 0  gpus 1  cpu 1  for 1000  save 5  load 5  gpu_mem 200
        fault node-down n1 at 0 for 100
        ",
        expect![[r#"
            j0  0..365 365..1010
            avg jct 1010.00  makespan 1010  preemptions 1
        "#]],
    );
}

#[test]
fn who_is_about_to_go_on_from_memory_is_left_alone_until_it_does() {
    // a has done 70 s when it is told to leave, goes on at 168 and is back 30 s later: c, which
    // comes in between, has it leave then and no sooner.
    let scenario = format!(
        "{NODE}
        job a  at 0  gpus 2  for 1000  saves never
        job b  at 100  gpus 2  for 5
        job c  at 180  gpus 2  for 5
        "
    );
    let mut scenario = Fixture::parse(&scenario).unwrap();
    scenario.site.physics.start_delay = Span::from_secs(30);
    let expected = expect![[r#"
        a  0..133 168..231 266..1243
        b  133..168
        c  231..266
        avg jct 465.67  makespan 1243  preemptions 2
    "#]];
    expected.assert_eq(&scenario.check(&|| build("kind = 'srtf'")).text);
}

#[test]
fn who_is_suspended_is_not_put_beside_another() {
    // Together each is nearly as fast as alone, but a can go on with all of its GPU only.
    let scenario = "
        model V100 mem 16384
        node n gpus 1 model V100 cpu 64 mem 65536
        suspend fixed 1 out 1 back 0.5
        profile p V100=1
        job a  at 0  gpus 1  for 1000  saves never  profile p  sharing willing
        job b  at 10  gpus 1  for 1000  save 60  load 60  profile p  sharing willing
        job c  at 20  gpus 1  for 1000  save 60  load 60
    ";
    let mut scenario = Fixture::parse(scenario).unwrap();
    let (key, model) = (ProfileKey(0), ModelId(0));
    let profile = scenario.site.physics.profiles.get_mut(&key).unwrap();
    profile.measured.set(Run(model, false, 1), Pace::ONE);
    let nearly = Pace::from_steps_per_sec(0.9).unwrap();
    profile.measured.set_pair(PairRun(key, model, 1), PairPace(nearly, nearly));
    let expected = expect![[r#"
        a  0..377 1817..2177 2841..3156
        b  377..737 1097..1457 2177..2509
        c  737..1097 1457..1817 2509..2841
        avg jct 2825.33  makespan 3156  preemptions 6
    "#]];
    let policy = "kind = 'max-min-fairness'\npacked = true";
    expected.assert_eq(&scenario.check(&|| build(policy)).text);
}

#[test]
fn who_takes_the_memory_that_another_needs_is_saved_although_it_costs_more() {
    // a would wait in 30 + 32 of 64 GiB, and b needs 20.
    check(
        "kind = 'priority'\npreempt = true",
        &format!(
            "{NODE}
            job a  at 0  gpus 2  mem 30720  for 1000  priority 1  save 40  load 40
            job b  at 10  gpus 2  mem 20480  for 5  priority 9
            "
        ),
        expect![[r#"
            a  0..50 55..1085
            b  50..55
            avg jct 565.00  makespan 1085  preemptions 1
        "#]],
    );
}

#[test]
fn who_would_wait_in_memory_that_is_not_free_yet_is_saved() {
    // x is saved, at less cost; what y would take is free only when x is gone.
    check(
        "kind = 'priority'\npreempt = true",
        &format!(
            "{NODE}
            job y  at 0  gpus 1  mem 10240  for 1000  priority 1  save 40  load 40
            job x  at 0  gpus 1  mem 40960  for 1000  priority 1  save 1  load 1
            job b  at 10  gpus 2  for 5  priority 9
            "
        ),
        expect![[r#"
            y  0..50 55..1085
            x  0..11 55..1046
            b  50..55
            avg jct 725.33  makespan 1085  preemptions 2
        "#]],
    );
}

#[test]
fn in_rounds_who_would_not_leave_the_memory_for_the_next_is_saved() {
    // a would wait in 40 + 16 of 64 GiB, and b needs 20.
    check(
        "kind = 'max-min-fairness'",
        "
        model V100 mem 16384
        node n gpus 1 model V100 cpu 64 mem 65536
        suspend fixed 1 out 1 back 0.5
        job a  at 0  gpus 1  mem 40960  for 1000  save 60  load 60
        job b  at 0  gpus 1  mem 20480  for 1000  save 60  load 60
        ",
        expect![[r#"
            a  0..420 1140..1860 2260..2360
            b  420..1140 1860..2260
            avg jct 2310.00  makespan 2360  preemptions 3
        "#]],
    );
}

#[test]
fn in_rounds_who_can_neither_be_saved_nor_find_memory_stays() {
    check(
        "kind = 'max-min-fairness'",
        "
        model V100 mem 16384
        node n gpus 1 model V100 cpu 64 mem 65536
        suspend fixed 1 out 1 back 0.5
        job a  at 0  gpus 1  mem 40960  for 1000  saves never
        job b  at 0  gpus 1  mem 20480  for 1000  saves never
        ",
        expect![[r#"
            a  0..1000
            b  1000..2000
            avg jct 1500.00  makespan 2000  preemptions 0
        "#]],
    );
}

#[test]
fn a_window_that_evicts_lets_suspended_jobs_go_on_elsewhere() {
    // When b is done, a would not be over before the window any more. It waits until that begins,
    // and has then nothing to wait for; its memory is for those of the window.
    check(
        "kind = 'srtf'",
        "
        model V100 mem 16384
        node n gpus 2 model V100 cpu 64 mem 65536
        node m gpus 2 model V100 cpu 64 mem 65536
        suspend fixed 1 out 1 back 0.5
        window w nodes n from 1000 until 10000 evicts yes
        job a  at 0  gpus 2  mem 20480  for 200  limit 860  saves never
        job z  at 0  gpus 2  for 300  saves never  suspend never
        job b  at 10  gpus 2  for 150  limit 700
        job c  at 1000  gpus 2  mem 40960  for 10  window w
        ",
        expect![[r#"
            a  0..43 1000..1200
            z  0..300
            b  43..193
            c  1000..1010
            avg jct 423.25  makespan 1200  preemptions 1
        "#]],
    );
}

#[test]
fn those_whose_place_is_of_no_use_come_back_although_others_waited_in_their_memory() {
    // On trial some leave their places to h or g, one of them to wait in memory that another left.
    // That one stays after all, the trial fails, and the first is to come back beside it.
    check(
        "kind = 'srtf'",
        "
        node n0 gpus 8 model B cpu 19 mem 5589
        node n1 gpus 1 model A cpu 12 mem 1773
        suspend fixed 0 out 0 back 0
        job a  at 0 gpus 1 count 3 cpu 1 mem 711 for 161 estimate 1 gpu_mem 200 saves never
        job b  at 0 gpus 0.7 count 2 cpu 1 mem 1221 model B for 71 estimate 1 save 13 every 10
        job c  at 54 gpus 0 count 1 cpu 1 mem 1 model B for 143 estimate 1 save 18 every 10
        job d  at 54 gpus 0 count 2 cpu 1 mem 508 locality node for 90 estimate 1
        job e  at 54 gpus 0 count 1 cpu 1 mem 1014 for 1 estimate 1
        job f  at 54 gpus 0 count 1 cpu 1 mem 979 for 143 estimate 1
        role gpus 0.5 count 2 cpu 1 mem 35
        job h  at 116 gpus 0 count 1 cpu 1 mem 0 for 24 estimate 1 save 10 every 10
        role gpus 0 count 2 cpu 1 mem 414
        job g  at 117 gpus 0.7 count 4 cpu 1 mem 1 locality node for 1 estimate 1
        ",
        expect![[r#"
            a  0..161
            b  0..162
            c  54..449
            d  55..145
            e  54..55
            f  54..116 145..226
            h  116..160
            g  161..162
            avg jct 133.88  makespan 449  preemptions 1
        "#]],
    );
}
