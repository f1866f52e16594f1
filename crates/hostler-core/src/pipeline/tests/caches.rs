//! What a pipeline remembers changes no decision, and makes questions cost what changed.

use std::fmt::Write;

use super::orders::{Ageing, ByPriority, ByRemaining, Count, Drifting, Restless, TwoQueues};
use crate::decision::Decision;
use crate::pipeline::{Head, Pipeline, Preempt, ShareRule};
use crate::policy::Cadence;
use crate::random::Random;
use crate::stage::Order;
use crate::testkit::*;
use crate::units::{Span, Time};

/// Some jobs with sizes, roles, priorities and run times by chance.
fn some_jobs(seed: u64, count: usize) -> String {
    let mut random = Random::new(seed);
    let mut below = |most: u64| random.bits() % most;
    let (mut text, mut at) = (String::new(), 0);
    for _ in 0..count {
        at += below(4);
        write!(text, "{at} lasts {} priority {} ", 1 + below(30), below(4)).unwrap();
        match below(8) {
            0 => write!(text, "gpus {} tasks {}", 1 + below(3), 1 + below(3)),
            1 => write!(text, "gpu {} mem {}", 100 + 50 * below(10), below(60)),
            2 => write!(text, "gpus 1 + tasks {} cores 2", 1 + below(3)),
            3 => write!(text, "gpus 2 near node tasks {}", 1 + below(2)),
            4 => write!(text, "cores {} mem {}", 1 + below(9), below(90)),
            5 => write!(text, "gpus 1 on 1 mem {}", 10 + below(40)),
            6 => write!(text, "gpus 9 tasks {}", 1 + below(2)),
            _ => write!(text, "gpus {}", 1 + below(4)),
        }
        .unwrap();
        text.push('\n');
    }
    text
}

const CLUSTER: &str = "4 cores 12 mem 100 | 4 mem 90 | 2 model 1 | 0 cores 9";

/// Starts and stops: what is said of those who wait may be told another way.
fn moves(decisions: &[(Time, Decision)]) -> Vec<(Time, Decision)> {
    let moves = decisions.iter().filter(|(_, decision)| {
        matches!(decision, Decision::Start { .. } | Decision::Stop { .. } | Decision::Reject { .. })
    });
    moves.cloned().collect()
}

/// The policy gives the same schedule when it is made anew before each question.
fn remembers_nothing_that_matters(make: impl Fn() -> Pipeline + Clone + 'static) {
    for seed in 0..4 {
        let jobs = some_jobs(seed, 30);
        let mut kept = Schedule::new(CLUSTER, make()).jobs(&jobs);
        let again = make.clone();
        let anew = Schedule::new(CLUSTER, make()).forgetful(move || Box::new(again()));
        let mut anew = anew.jobs(&jobs);
        assert_eq!(kept.run(), anew.run(), "seed {seed}");
        assert_eq!(moves(&kept.decisions), moves(&anew.decisions), "seed {seed}");
    }
}

fn with(order: impl Order + 'static, head: Head, preempt: Preempt) -> Pipeline {
    Pipeline { head, preempt, ..Pipeline::new(order, Box::new(FirstFit)) }
}

#[test]
fn the_strict_pass_remembers_nothing_that_matters() {
    let order = ByPriority::default;
    remembers_nothing_that_matters(move || with(order(), Head::Blocks, Preempt::Never));
    remembers_nothing_that_matters(|| with(Ageing::default(), Head::Blocks, Preempt::Never));
}

#[test]
fn the_greedy_pass_remembers_nothing_that_matters() {
    remembers_nothing_that_matters(|| with(ByPriority::default(), Head::Skips, Preempt::Never));
    remembers_nothing_that_matters(|| with(Ageing::default(), Head::Skips, Preempt::Never));
    remembers_nothing_that_matters(|| {
        let whole = with(ByPriority::default(), Head::Skips, Preempt::Never);
        Pipeline { sharing: ShareRule::Off, ..whole }
    });
}

#[test]
fn the_pass_by_rank_remembers_nothing_that_matters() {
    remembers_nothing_that_matters(|| with(ByPriority::default(), Head::Skips, Preempt::ByRank));
    remembers_nothing_that_matters(|| with(ByPriority::default(), Head::Blocks, Preempt::ByRank));
    remembers_nothing_that_matters(|| with(TwoQueues::default(), Head::Skips, Preempt::ByRank));
}

/// Many that ask for much the same on nodes that are full, and take their time to give way.
fn crowd(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut below = |most: u64| random.bits() % most;
    let (mut text, mut at) = (String::new(), 0);
    for _ in 0..150 {
        at += below(3);
        let long = [5, 20, 80][below(3) as usize];
        write!(text, "{at} lasts {} saves {} ", 1 + below(long), below(5) / 2).unwrap();
        match below(6) {
            0 => write!(text, "gpus 1 tasks {} mem {}", 2 + below(9), 8 + below(8)),
            1 => write!(text, "gpu {} mem {}", 250 * (1 + below(3)), 8 + below(8)),
            2 => write!(text, "gpus 2 near node tasks 2 mem {}", 8 + below(8)),
            3 => write!(text, "gpus 4 tasks {}", 1 + below(2)),
            4 => write!(text, "gpus 1 mem {} + tasks 2 cores 2", 16 + below(16)),
            _ => write!(text, "gpus 1 mem {}", 16 + below(16)),
        }
        .unwrap();
        text.push('\n');
    }
    text
}

#[test]
fn a_crowd_that_preempts_remembers_nothing_that_matters() {
    a_crowd_is_told_the_same(|| with(ByRemaining, Head::Skips, Preempt::ByRank));
}

#[test]
fn a_crowd_whose_ranks_drift_is_remembered_nothing_that_matters() {
    a_crowd_is_told_the_same(|| with(Drifting, Head::Skips, Preempt::ByRank));
}

/// Again by a policy that is made anew before each question.
fn a_crowd_is_told_the_same(make: fn() -> Pipeline) {
    let cluster = "4 cores 12 mem 60 | 4 cores 12 mem 60 | 4 mem 60 | 4 mem 60 | 2 mem 40 | 2";
    for seed in 0..24 {
        let jobs = crowd(seed);
        let mut kept = Schedule::new(cluster, make()).jobs(&jobs);
        let mut anew = Schedule::new(cluster, make()).forgetful(move || Box::new(make()));
        anew = anew.jobs(&jobs);
        assert_eq!(kept.run(), anew.run(), "seed {seed}");
        assert_eq!(moves(&kept.decisions), moves(&anew.decisions), "seed {seed}");
        let stops = |(_, decision): &&(Time, Decision)| matches!(decision, Decision::Stop { .. });
        assert!(kept.decisions.iter().filter(stops).count() > 20, "seed {seed} preempts");
    }
}

#[test]
fn who_is_counted_as_gone_for_a_smaller_job_is_not_for_a_larger_one() {
    // Of the jobs that want two GPUs the first two are turned away: beside those that rank before
    // them there is too little memory. The last may take the place of all but one.
    let jobs = "
        0 gpus 1 mem 24 priority 0 lasts 90
        0 gpus 1 mem 24 priority 1 lasts 90
        0 gpus 1 mem 8 priority 2 lasts 90
        0 gpus 1 mem 6 priority 4 lasts 90
        0 gpus 1 mem 38 priority 6 lasts 90
        1 gpus 2 mem 48 priority 0 lasts 9
        1 gpus 2 mem 60 priority 3 lasts 9
        2 gpus 2 mem 60 priority 5 lasts 9
    ";
    let make = || with(ByPriority::default(), Head::Skips, Preempt::ByRank);
    let mut kept = Schedule::new("5 mem 100", make()).jobs(jobs);
    let mut anew =
        Schedule::new("5 mem 100", make()).forgetful(move || Box::new(make())).jobs(jobs);
    let schedule = kept.run();
    assert_eq!(schedule, anew.run());
    assert!(schedule.contains("job7 2..11"), "{schedule}");
}

#[test]
fn those_who_run_are_ranked_once_a_question_whoever_seeks_victims() {
    // Seven of eight GPUs could be taken, and everybody wants all of them.
    let asked = |kinds: usize| {
        let count = Count::default();
        let policy = with(Restless(count.clone()), Head::Skips, Preempt::ByRank);
        let mut world = World::with_policy("8", policy);
        world.submit(0, 0, &["gpus 1 priority 9"]);
        world.submit(0, 1, &["gpus 1"; 7]);
        world.step(0, (0..8).map(started).collect(), vec![]);
        let large = |id: usize| asks(&format!("gpus 8 priority 1 cores {}", id + 1));
        let large = (0..kinds).map(|id| submit(8 + id as u32, large(id))).collect();
        count.take();
        world.step(1, large, vec![]);
        count.take()
    };
    let few = asked(8);
    assert!((8 + 8..8 + 4 * 8).contains(&few), "all are ranked, and not for each search: {few}");
    assert_eq!(asked(80), few + 72, "those who wait are ranked once, too");
}

#[test]
fn passes_in_rounds_remember_nothing_that_matters() {
    remembers_nothing_that_matters(|| {
        let cadence = Cadence::Rounds(Span::from_secs(15));
        Pipeline { cadence, ..with(ByPriority::default(), Head::Skips, Preempt::ByRank) }
    });
}

#[test]
fn an_order_is_asked_about_what_changed_and_not_about_the_queue() {
    for head in [Head::Skips, Head::Blocks] {
        let count = Count::default();
        let policy = with(ByPriority(count.clone()), head, Preempt::Never);
        let mut world = World::with_policy("1", policy);
        let jobs = (0..500).map(|id| submit(id, asks("gpus 1"))).collect();
        world.step(0, jobs, vec![]);
        assert_eq!(count.take(), 500);
        world.step(1, vec![started(0)], vec![]);
        assert_eq!(count.take(), 0);
        world.step(2, vec![submit(500, asks("gpus 1"))], vec![]);
        assert_eq!(count.take(), 1);
        // One ends and one starts: no rank is another.
        world.step(3, vec![finished(0, 3)], vec![]);
        assert_eq!(world.state().lease_count(), 1);
        assert_eq!(count.take(), 0);
        world.step(4, vec![held(7, true)], vec![]);
        assert_eq!(count.take(), 0);
        world.step(5, vec![held(7, false)], vec![]);
        assert_eq!(count.take(), 1);
        world.step(6, vec![stopped(1, crate::event::Outcome::Interrupted, 0, 0)], vec![]);
        assert_eq!(count.take(), 1);
    }
}

#[test]
fn an_order_by_time_is_asked_about_those_who_are_due() {
    let count = Count::default();
    let policy = with(Ageing(count.clone()), Head::Skips, Preempt::Never);
    let mut world = World::with_policy("1", policy);
    for at in 0..100 {
        world.step_at(Time(at * 50_000), vec![submit(at as u32, asks("gpus 1"))], vec![]);
    }
    count.take();
    // Between 10 s and 10.5 s ten jobs grow older, and nobody looks at the others.
    while world.engine.wake().is_some_and(|at| at <= Time::from_millis(10_500)) {
        let at = world.engine.wake().unwrap();
        world.step_at(at, vec![], vec![]);
    }
    let asked = count.take();
    assert!((10..=22).contains(&asked), "asked {asked} times");
}
