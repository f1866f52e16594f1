//! Orders that depend on attained service and on time, made of the stages from outside: least
//! attained service in queues, by events and in rounds, and ageing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use expect_test::{Expect, expect};
use hostler_core::job::{Job, Phase};
use hostler_core::pipeline::{Pipeline, Preempt};
use hostler_core::policy::{Cadence, Policy};
use hostler_core::stage::Order;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;
use hostler_policies::place::PlaceRule;
use hostler_sim::fixture;

/// GPU time after which a job sinks into the second queue.
const THRESHOLD: u64 = 40_000_000;

/// Two queues by attained GPU time; first come, first served in each.
struct TwoQueues;

impl Order for TwoQueues {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        i64::from(view.served(job) >= THRESHOLD)
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let left = THRESHOLD.checked_sub(view.served(job)).filter(|left| *left > 0)?;
        let gpus = u64::from(job.spec.gpus().max(1));
        matches!(job.phase, Phase::Starting(_) | Phase::Running(_))
            .then(|| view.now() + Span(left.div_ceil(gpus)))
    }
}

/// The least GPU time first, as of the last time that somebody asked.
struct LeastServed;

impl Order for LeastServed {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        i64::try_from(view.served(job)).unwrap_or(i64::MAX)
    }
}

/// By priority, and one more for each 20 s that a job has waited.
struct Ageing;

const AGE: u64 = 20_000_000;

impl Order for Ageing {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        let waited = view.now().since(job.submitted).0 / AGE;
        -i64::from(job.spec.priority) - waited as i64
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let waited = view.now().since(job.submitted).0 / AGE;
        (job.phase == Phase::Pending).then(|| job.submitted + Span((waited + 1) * AGE))
    }
}

fn check(
    order: fn() -> Box<dyn Order>,
    preempt: Preempt,
    cadence: Cadence,
    story: &str,
    expected: Expect,
) {
    let build = || -> Box<dyn Policy> {
        let stages = Pipeline::new(LeastServed, PlaceRule::BestFit.build());
        Box::new(Pipeline { order: order(), preempt, cadence, ..stages })
    };
    expected.assert_eq(&fixture::check(&build, story).text);
}

#[test]
fn a_job_that_had_its_share_gives_way_when_it_crosses_the_threshold() {
    let story = "
        cluster 2
        job a  at 0   gpus 2  for 100  save 1  load 1
        job b  at 5   gpus 2  for 10
        job c  at 6   gpus 2  for 10
    ";
    check(
        || Box::new(TwoQueues),
        Preempt::ByRank,
        Cadence::EveryEvent,
        story,
        expect![[r#"
        a  0..21 41..122
        b  21..31
        c  31..41
        avg jct 61.00  makespan 122  preemptions 1
    "#]],
    );
}

#[test]
fn an_order_with_rounds_is_woken_each_round_and_preempts_only_then() {
    let story = "
        cluster 1
        job a  at 0   gpus 1  for 40
        job b  at 3   gpus 1  for 25
    ";
    check(
        || Box::new(LeastServed),
        Preempt::ByRank,
        Cadence::Rounds(Span::from_secs(10)),
        story,
        expect![[r#"
            a  0..10 30..50 55..65
            b  10..30 50..55
            avg jct 58.50  makespan 65  preemptions 3
        "#]],
    );
}

#[test]
fn a_job_that_waited_overtakes_more_important_ones() {
    let story = "
        cluster 1
        job a  at 0   gpus 1  for 50
        job b  at 1   gpus 1  for 10
        job c  at 45  gpus 1  for 10  priority 1
        job d  at 46  gpus 1  for 10  priority 3
    ";
    check(
        || Box::new(Ageing),
        Preempt::Never,
        Cadence::EveryEvent,
        story,
        expect![[r#"
            a  0..50
            b  60..70
            c  70..80
            d  50..60
            avg jct 42.00  makespan 80  preemptions 0
        "#]],
    );
}
