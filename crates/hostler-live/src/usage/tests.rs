//! Sums that were worked out by hand.

use super::*;
use crate::job::JobRequest;
use crate::store::{JobFacts, JobOrigin};

const SECOND: u64 = 1_000_000;
const HOUR: u64 = 3600 * SECOND;

/// Monday, 16 November 2026, 00:00 UTC.
const MONDAY: u64 = 1_794_787_200 * SECOND;

fn stay(from: u64, to: Option<u64>, model: &str, gpus: u64) -> StayRow {
    let gpu_micros = to.map_or(0, |to| gpus * (to - from));
    let gpu_milli = gpus * 1000;
    StayRow { from, to, model: model.to_owned(), gpu_milli, gpu_micros, ..StayRow::default() }
}

fn job(
    id: u32,
    user: &str,
    state: JobState,
    times: (u64, Option<u64>),
    stays: &[StayRow],
) -> JobRow {
    JobRow {
        id,
        version: 0,
        tenant: "lab".to_owned(),
        user: user.to_owned(),
        state,
        submitted: times.0,
        ended: times.1,
        array_of: None,
        request: JobRequest { group: format!("g{}", id % 2), ..JobRequest::default() },
        facts: JobFacts { stays: stays.to_vec(), ..JobFacts::default() },
        origin: JobOrigin::Ours,
    }
}

fn told(by: UsageBy, since: u64, until: u64, now: u64, jobs: &[JobRow]) -> Vec<String> {
    let mut meter = Meter::new(by, since, until, now);
    jobs.iter().for_each(|job| meter.add(job));
    let usage = meter.report();
    let line = |row: &UsageRow| {
        format!(
            "{} jobs={} ok={} bad={} gpu={:.2} failed={:.2} lost={:.2} waited={:.2}",
            if row.key.is_empty() { "sum" } else { &row.key },
            row.jobs,
            row.finished,
            row.failed,
            row.gpu_hours,
            row.failed_gpu_hours,
            row.lost_gpu_hours,
            row.waited_hours,
        )
    };
    usage.rows.iter().chain([&usage.total]).map(line).collect()
}

/// Ada: 2 h on 4 A100 (lost to a preemption), 1 h waiting, 3 h on 2 V100, finished; submitted half
/// an hour before her first stay. Bob: 1 h on 8 A100, failed; and one that runs on 1 A100 since
/// 20:00.
fn week() -> Vec<JobRow> {
    let at = |hours: u64| MONDAY + hours * HOUR;
    let mut lost = stay(at(10), Some(at(12)), "A100", 4);
    lost.lost = true;
    let ada = [lost, stay(at(13), Some(at(16)), "V100", 2)];
    let bob = [stay(at(22), Some(at(23)), "A100", 8)];
    let runs = [stay(at(20), None, "A100", 1)];
    vec![
        job(1, "ada", JobState::Finished, (at(10) - HOUR / 2, Some(at(16))), &ada),
        job(2, "bob", JobState::Failed, (at(22), Some(at(23))), &bob),
        job(3, "bob", JobState::Running, (at(20), None), &runs),
    ]
}

#[test]
fn all_stays_of_a_job_count_and_one_that_runs_counts_up_to_now() {
    let now = MONDAY + 26 * HOUR;
    assert_eq!(
        told(UsageBy::User, 0, u64::MAX, now, &week()),
        [
            "ada jobs=1 ok=1 bad=0 gpu=14.00 failed=0.00 lost=8.00 waited=1.50",
            "bob jobs=2 ok=0 bad=1 gpu=14.00 failed=8.00 lost=0.00 waited=0.00",
            "sum jobs=3 ok=1 bad=1 gpu=28.00 failed=8.00 lost=8.00 waited=1.50",
        ]
    );
    assert_eq!(
        told(UsageBy::Model, 0, u64::MAX, now, &week()),
        [
            "A100 jobs=3 ok=1 bad=1 gpu=22.00 failed=8.00 lost=8.00 waited=1.50",
            "V100 jobs=1 ok=0 bad=0 gpu=6.00 failed=0.00 lost=0.00 waited=0.00",
            "sum jobs=3 ok=1 bad=1 gpu=28.00 failed=8.00 lost=8.00 waited=1.50",
        ]
    );
}

#[test]
fn a_period_cuts_what_is_across_its_borders() {
    let now = MONDAY + 26 * HOUR;
    // 11:00 to 13:30: one hour of ada's first stay, one of waiting, half an hour of her second.
    assert_eq!(
        told(UsageBy::User, MONDAY + 11 * HOUR, MONDAY + 27 * HOUR / 2, now, &week()),
        [
            "ada jobs=1 ok=0 bad=0 gpu=5.00 failed=0.00 lost=4.00 waited=1.00",
            "sum jobs=1 ok=0 bad=0 gpu=5.00 failed=0.00 lost=4.00 waited=1.00",
        ]
    );
    // Nothing is used in the time to come, nor before anybody came.
    let nothing = ["sum jobs=0 ok=0 bad=0 gpu=0.00 failed=0.00 lost=0.00 waited=0.00"];
    assert_eq!(told(UsageBy::Day, now + HOUR, now + 2 * HOUR, now, &week()), nothing);
    assert_eq!(told(UsageBy::Day, 0, MONDAY, now, &week()), nothing);
}

#[test]
fn time_is_cut_where_days_weeks_and_months_begin() {
    // From 22:00 on 31 October 2026, a Saturday, for 28 h: Sunday ends in between.
    let from = MONDAY - 16 * 24 * HOUR + 22 * HOUR;
    let jobs = [job(
        1,
        "ada",
        JobState::Finished,
        (from, Some(from + 28 * HOUR)),
        &[stay(from, Some(from + 28 * HOUR), "A100", 1)],
    )];
    let rows = |by| {
        let lines = told(by, 0, u64::MAX, MONDAY, &jobs);
        let cut = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            format!("{} {} {}", words[0], words[2], words[4])
        };
        lines.iter().map(cut).collect::<Vec<_>>()
    };
    assert_eq!(
        rows(UsageBy::Day),
        [
            "2026-10-31 ok=0 gpu=2.00",
            "2026-11-01 ok=0 gpu=24.00",
            "2026-11-02 ok=1 gpu=2.00",
            "sum ok=1 gpu=28.00"
        ]
    );
    assert_eq!(
        rows(UsageBy::Week),
        ["2026-10-26 ok=0 gpu=26.00", "2026-11-02 ok=1 gpu=2.00", "sum ok=1 gpu=28.00"]
    );
    assert_eq!(
        rows(UsageBy::Month),
        ["2026-10 ok=0 gpu=2.00", "2026-11 ok=1 gpu=26.00", "sum ok=1 gpu=28.00"]
    );
}

#[test]
fn jobs_of_an_older_version_count_as_one_stay_and_are_told() {
    let mut old = job(4, "ada", JobState::Finished, (MONDAY, Some(MONDAY + 3 * HOUR)), &[]);
    old.facts.started = Some(MONDAY + HOUR);
    (old.request.gpus, old.request.tasks) = (0.5, 4);
    let mut meter = Meter::new(UsageBy::Model, 0, u64::MAX, MONDAY + 9 * HOUR);
    meter.add(&old);
    let usage = meter.report();
    assert_eq!((usage.total.gpu_hours, usage.total.waited_hours), (4.0, 1.0));
    assert_eq!((usage.guessed_jobs, usage.rows[0].key.as_str()), (1, "-"));
}

#[test]
fn days_are_dates() {
    let dates = [0, 59, 789, 11_016, 20_773, u64::MAX].map(|day| date(day).to_string());
    let expected =
        ["1970-01-01", "1970-03-01", "1972-02-29", "2000-02-29", "2026-11-16", "1970-01-01"];
    assert_eq!(dates, expected);
}

#[test]
fn energy_is_spread_over_its_stay_and_counted_where_it_was_measured() {
    let at = |hours: u64| MONDAY + hours * HOUR;
    // 7.2 MJ are 2 kWh, over four hours.
    let measured = StayRow { joules: Some(7_200_000), ..stay(at(22), Some(at(26)), "A100", 1) };
    let silent = stay(at(1), Some(at(2)), "V100", 1);
    let times = (at(1), Some(at(26)));
    let jobs = [
        job(1, "ada", JobState::Finished, times, &[measured]),
        job(2, "bob", JobState::Finished, times, &[silent]),
    ];
    let energy = |by, since, until| -> Vec<Option<f64>> {
        let mut meter = Meter::new(by, since, until, at(48));
        jobs.iter().for_each(|job| meter.add(job));
        let usage = meter.report();
        usage.rows.iter().chain([&usage.total]).map(|row| row.energy_kwh).collect()
    };
    assert_eq!(energy(UsageBy::Model, at(0), at(48)), [Some(2.0), None, Some(2.0)]);
    // Half of it was before midnight.
    assert_eq!(energy(UsageBy::Day, at(0), at(48)), [Some(1.0), Some(1.0), Some(2.0)]);
    assert_eq!(energy(UsageBy::User, at(0), at(23)), [Some(0.5), None, Some(0.5)]);
    assert_eq!(energy(UsageBy::User, at(0), at(20)), [None, None, None]);
}
