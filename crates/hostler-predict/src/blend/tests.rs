//! What is heard, what is not, and what is forgotten.

use hostler_core::id::{GroupId, QueueId, TenantId};
use hostler_core::random::Random;

use super::*;
use crate::durations::tests::spec;

fn secs(estimate: Option<Estimate>) -> f64 {
    estimate.expect("something is known").run.secs_f64()
}

/// A job of one of two sorts, which only `mark` tells apart, among much that tells nothing.
fn job(random: &mut Random, sort: bool, mark: fn(&mut Features, bool)) -> Features {
    let mut features = Features {
        tenant: TenantId((random.bits() % 4) as u32),
        cpu_milli: 1000 * (1 + random.bits() % 3),
        gpu_milli: 1000,
        tasks: 1,
        ..Features::default()
    };
    mark(&mut features, sort);
    features
}

/// Teaches that jobs of one sort run for a minute and those of the other for a day, and asks.
fn told_apart_by(purpose: Purpose, mark: fn(&mut Features, bool)) -> [f64; 2] {
    let (mut blend, mut random) = (BlendRun::meant_for(purpose), Random::new(3));
    for number in 0..400 {
        let sort = random.bits() % 2 == 0;
        let features = job(&mut random, sort, mark);
        blend.foretell(JobId(number), &features);
        let noise = 0.9 + 0.2 * random.uniform();
        let run = if sort { 60.0 } else { 86_400.0 } * noise;
        blend.learn_of(JobId(number), &features, Span((run * 1e6) as u64));
    }
    [true, false].map(|sort| secs(blend.belief(&job(&mut random, sort, mark))))
}

#[test]
fn whatever_tells_jobs_apart_is_found_out() {
    let marks: [fn(&mut Features, bool); 7] = [
        |job, sort| job.queue = sort.then_some(QueueId(7)),
        |job, sort| job.priority = if sort { 0 } else { 5 },
        |job, sort| job.tenant = TenantId(if sort { 1 } else { 2 }),
        |job, sort| job.group = Some(GroupId(u32::from(sort))),
        |job, sort| job.name = Some(u64::from(sort)),
        |job, sort| job.mem_mib = if sort { 1024 } else { 2048 },
        |job, sort| job.told = Some(Span::from_secs(if sort { 600 } else { 100_000 })),
    ];
    for (at, mark) in marks.into_iter().enumerate() {
        let [minute, day] = told_apart_by(Purpose::Closeness, mark);
        assert!((50.0..70.0).contains(&minute), "mark {at}: {minute}");
        assert!((80_000.0..95_000.0).contains(&day), "mark {at}: {day}");
        // To rank, the odd voice that is not sure counts a little.
        let [minute, day] = told_apart_by(Purpose::Order, mark);
        assert!((50.0..600.0).contains(&minute), "mark {at}: {minute}");
        assert!((70_000.0..95_000.0).contains(&day), "mark {at}: {day}");
    }
}

#[test]
fn a_name_counts_without_its_digits_and_only_where_letters_are_left() {
    let named = |name: &str| {
        let name = name.into();
        Features::of(&JobSpec { name, ..spec(1, 1, None) }).name
    };
    assert_eq!(named("train-2026-11-16"), named("train-2026-11-17"));
    assert_ne!(named("train-1"), named("tests-1"));
    assert_eq!(["", "42", "j17", "a-b-c"].map(named), [None; 4]);
}

#[test]
fn a_change_is_noticed_within_a_window_of_five() {
    let (mut blend, features) = (BlendRun::default(), Features::default());
    for _ in 0..200 {
        blend.learn(&features, Span::from_secs(100));
    }
    assert_eq!(secs(blend.belief(&features)).round(), 100.0);
    let mut lessons = 0;
    while secs(blend.belief(&features)) < 500.0 {
        blend.learn(&features, Span::from_secs(1000));
        lessons += 1;
    }
    // Half of the fifty would be twenty-five.
    assert!((3..15).contains(&lessons), "after {lessons}");
}

#[test]
fn voices_are_judged_by_what_they_said_at_submission() {
    // Bursts of five jobs that take the same and end together; each burst takes something else.
    let mean = |blend: &BlendRun, window: usize| blend.records[0][window].mean(0.0, 0.0);
    let (mut judged, mut naive) = (BlendRun::default(), BlendRun::default());
    let (mut random, features) = (Random::new(11), Features::default());
    for burst in 0..400 {
        let run = Span((1e6 * libm::exp(3.0 * random.uniform())) as u64);
        let jobs = || (5 * burst..5 * burst + 5).map(JobId);
        jobs().for_each(|job| _ = judged.foretell(job, &features));
        jobs().for_each(|job| judged.learn_of(job, &features, run));
        jobs().for_each(|_| naive.learn(&features, run));
    }
    // When the jobs end, the last of the burst seem to know; when they come, nobody does.
    assert!(mean(&naive, 0) < mean(&naive, 2) / 1.2, "{:?}", naive.records[0]);
    assert!(mean(&judged, 0) > mean(&judged, 2), "{:?}", judged.records[0]);
}

#[test]
fn half_of_the_truths_are_within_the_spread() {
    let (mut blend, mut random) = (BlendRun::default(), Random::new(17));
    let mut within = 0;
    for number in 0..4000 {
        let tenant = TenantId((random.bits() % 5) as u32);
        let features = Features { tenant, ..Features::default() };
        let said = blend.foretell(JobId(number), &features);
        // Each tenant has a middle of his own; few are far from it, which quartiles do not tell.
        let far = if random.bits() % 3 == 0 { 3.0 } else { 0.3 };
        let log = f64::from(tenant.0) + far * random.normal();
        let run = Span((libm::exp(log) * 1e8) as u64);
        if let Some(said) = said.filter(|_| number >= 2000) {
            within += u32::from(said.run.0.abs_diff(run.0) <= said.spread.0);
        }
        blend.learn_of(JobId(number), &features, run);
    }
    assert!((950..1050).contains(&within), "{within} of 2000");
}

#[test]
fn a_job_that_is_looked_at_again_is_judged_once_by_what_was_said_first() {
    let (mut blend, features) = (BlendRun::default(), Features::default());
    blend.learn(&features, Span::from_secs(10));
    let (first, second) = (JobId(1), JobId(2));
    blend.foretell(first, &features);
    blend.learn(&features, Span::from_secs(1000));
    blend.foretell(first, &features);
    assert_eq!(blend.noted[&first].voices[0].middles[0], log_micro(Span::from_secs(10)));
    blend.learn_of(first, &features, Span::from_secs(10));
    assert!(blend.noted.is_empty());
    // One that nobody asked about teaches, too.
    blend.learn_of(second, &features, Span::from_secs(10));
    assert_eq!(blend.memory.entry(0).oldest_first.len(), 4);
}

#[test]
fn the_user_is_heard_until_something_has_finished() {
    let mut blend = BlendRun::default();
    assert_eq!(blend.estimate(JobId(0), &spec(1, 1, None)), None);
    assert_eq!(secs(blend.estimate(JobId(1), &spec(1, 1, Some(7)))), 7.0);
    blend.observe(JobId(0), &spec(1, 1, None), Span::from_secs(90));
    assert_eq!(secs(blend.estimate(JobId(2), &spec(2, 2, Some(7)))).round(), 90.0);
}

#[test]
fn jobs_of_a_group_that_wait_are_told_anew() {
    let mut blend = BlendRun::default();
    for job in 0..3 {
        blend.estimate(JobId(job), &spec(1, 1, None));
    }
    let anew = blend.observe(JobId(0), &spec(1, 1, None), Span::from_secs(9));
    assert_eq!(anew, [JobId(1), JobId(2)]);
}

#[test]
fn memory_is_bounded_and_the_same_lessons_give_the_same_estimates() {
    let run = || {
        let (mut blend, mut random) = (BlendRun::remembering(50, 20), Random::new(23));
        let mut said = Vec::new();
        for number in 0..3000 {
            let features = Features {
                tenant: TenantId((random.bits() % 40) as u32),
                group: Some(GroupId((random.bits() % 90) as u32)),
                gpu_milli: 1000 * (random.bits() % 9),
                ..Features::default()
            };
            said.push(blend.foretell(JobId(number), &features));
            if random.bits() % 3 > 0 {
                let over =
                    JobId((u64::from(number) - random.bits() % 30 % u64::from(number + 1)) as u32);
                blend.learn_of(over, &features, Span::from_secs(1 + random.bits() % 5000));
            }
            assert!(blend.noted.len() <= 20);
        }
        said
    };
    assert_eq!(run(), run());
}

#[test]
fn run_times_at_the_ends_of_the_scale_do_no_harm() {
    let mut blend = BlendRun::default();
    for run in [0, 1, u64::MAX, u64::MAX, u64::MAX] {
        blend.learn(&Features::default(), Span(run));
    }
    let said = blend.belief(&Features::default()).expect("something is known");
    assert_eq!(said, Estimate { run: RUN_MAX, spread: said.spread });
    assert!(said.spread <= RUN_MAX);
}

/// Jobs of one user: half crash after a minute, the others train for anything up to days. Jobs of
/// another take half an hour.
#[test]
fn a_guess_is_close_as_often_as_can_be_and_a_rank_is_safe() {
    let said = |purpose: Purpose| {
        let (mut blend, mut random) = (BlendRun::meant_for(purpose), Random::new(29));
        let of = |tenant: u32| Features { tenant: TenantId(tenant), ..Features::default() };
        for number in 0..600 {
            let (features, crashes) = (of(number % 2), random.bits() % 2 == 0);
            blend.foretell(JobId(number), &features);
            let secs = match number % 2 {
                0 if crashes => 60.0 + 3.0 * random.uniform(),
                0 => 3600.0 * libm::exp(4.0 * random.uniform()),
                _ => 1800.0,
            };
            blend.learn_of(JobId(number), &features, Span((secs * 1e6) as u64));
        }
        [0, 1].map(|tenant| secs(blend.belief(&of(tenant))))
    };
    let [mixed, steady] = said(Purpose::Closeness);
    assert!((48.0..80.0).contains(&mixed) && (1500.0..2300.0).contains(&steady));
    let [mixed, steady] = said(Purpose::Order);
    assert!(mixed > 2.0 * steady, "{mixed} is to come after {steady}");
}
