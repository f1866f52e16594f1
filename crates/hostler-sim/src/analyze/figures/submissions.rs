//! When tasks come, and how much is asked for by the hour.

use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::analyze::stats::{Clock, ascending, mean, quantile};
use crate::report::chart::{Axis, ChartShape};
use crate::report::data::Format;

/// The figure `submissions`.
pub const SUBMISSIONS: Def = Def {
    key: "submissions",
    title: "Submissions over time",
    meaning: "Quiet hours are where work that can wait, maintenance and saving of power belong; \
              peaks are what a queue must survive.",
    published: "",
    needs: &[Need::Sizes, Need::Submissions],
    compute: submissions,
};

/// The figure `requested`.
pub const REQUESTED: Def = Def {
    key: "requested",
    title: "Resources asked for over time",
    meaning: "What is asked for within an hour shows which resource runs out first at the peak.",
    published: "",
    needs: &[Need::Tasks, Need::Submissions],
    compute: requested,
};

const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;

/// What hours of a day are called: those of a clock, where the tables tell it.
fn hours(input: &Input) -> &'static str {
    match input.clock_known {
        true => "hour of the day",
        false => "hours since the first submission, day by day",
    }
}

/// Seconds to add to a time so that hours and days begin with it.
fn offset(input: &Input) -> f64 {
    let first = || input.tasks.iter().map(|task| task.asked).fold(f64::NAN, f64::min);
    if input.clock_known { input.zone_secs } else { -first() }
}

fn submissions(input: &Input, figure: &mut Figure) {
    let times = || input.tasks.iter().map(|task| task.asked).filter(|time| time.is_finite());
    let offset = offset(input);
    let spans = times().map(|time| (time, time + 1.0));
    let Some(clock) = Clock::at(spans, 1, offset) else { return };
    let mut counts = vec![0.0; clock.buckets];
    let mut weekdays = [0.0; 7];
    for time in times() {
        let bucket = ((time - clock.start) / clock.width) as usize;
        counts[bucket.min(clock.buckets - 1)] += 1.0;
        let day = ((time + input.zone_secs) / DAY).floor().rem_euclid(7.0);
        weekdays[day as usize % 7] += 1.0;
    }
    let per_hour = HOUR / clock.width;
    let rates: Vec<f64> = counts.iter().map(|count| count * per_hour).collect();
    figure.fact("per_hour", "tasks per hour, mean", mean(&rates), Format::Number);
    let points = clock.times().into_iter().zip(rates.iter().copied()).collect();
    figure.lines(
        "Tasks submitted per hour",
        Axis::linear("time since start", Format::Duration),
        Axis::linear("tasks per hour", Format::Count),
        vec![("tasks".to_owned(), ChartShape::Straight, points)],
    );
    let boxes = hours_of_day(&rates, &clock, offset);
    if boxes.is_empty() {
        let note = "Less than one full day: no figures by hour of the day.";
        figure.notes.push(note.to_owned());
        return;
    }
    let medians = boxes.iter().map(|(_, row)| row[2]);
    let (low, high) = medians
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let quiet = percent(low / high);
    let text = match input.clock_known {
        true => format!("The quietest hour of the day has {quiet} of the busiest."),
        false => format!(
            "The quietest hour of a day has {quiet} of the busiest, counted from the first \
             submission: the tables do not say at which hour that was."
        ),
    };
    figure.finding(0.1, low / high, times().count(), &text);
    box_lines(figure, "Tasks per hour", "tasks per hour", boxes, hours(input));
    if input.clock_known {
        let bars: Vec<(String, f64)> =
            DAYS.iter().zip(weekdays).map(|(day, count)| ((*day).to_owned(), count)).collect();
        // Weeks begin on Monday.
        let bars = [&bars[4..], &bars[..4]].concat();
        figure.bars("Tasks by weekday", "tasks", Format::Count, &bars);
    }
}

/// Least, quartiles and most of each hour of the day, over full days only.
fn hours_of_day(rates: &[f64], clock: &Clock, zone_secs: f64) -> Vec<(String, Vec<f64>)> {
    if clock.width > HOUR {
        return Vec::new();
    }
    let first = ((clock.start + zone_secs) / HOUR).round() as i64;
    let skip = (24 - first.rem_euclid(24)) as usize % 24;
    let full = rates.get(skip..).unwrap_or_default();
    let full = &full[..full.len() / 24 * 24];
    if full.is_empty() {
        return Vec::new();
    }
    let row = |hour: usize| {
        let values = ascending(full.iter().skip(hour).step_by(24).copied());
        let at = |share| quantile(&values, share);
        (format!("{hour:02}"), vec![at(0.0), at(0.25), at(0.5), at(0.75), at(1.0)])
    };
    (0..24).map(row).collect()
}

/// Five lines say what a box per hour would.
fn box_lines(
    figure: &mut Figure,
    title: &str,
    label: &str,
    boxes: Vec<(String, Vec<f64>)>,
    hours: &str,
) {
    let names = ["least", "P25", "P50", "P75", "most"];
    let shapes = [
        ChartShape::Dashed,
        ChartShape::Straight,
        ChartShape::Straight,
        ChartShape::Straight,
        ChartShape::Dashed,
    ];
    let lines = names.iter().zip(shapes).enumerate().map(|(at, (name, shape))| {
        let points = boxes.iter().enumerate().map(|(hour, (_, row))| (hour as f64, row[at]));
        ((*name).to_owned(), shape, points.collect())
    });
    let x = Axis::linear(hours, Format::Count).up_to(23.0);
    figure.lines(
        &format!("{title} by {hours}"),
        x,
        Axis::linear(label, Format::Count),
        lines.collect(),
    );
}

/// The hour is that of the start of an instance; where only tasks are listed, that of submission.
fn requested(input: &Input, figure: &mut Figure) {
    let listed = input.workers.iter().any(|worker| worker.start.is_finite());
    let mut rows: Vec<(f64, f64, u32)> = Vec::new();
    if listed {
        let workers = input.last_workers().filter(|worker| worker.start.is_finite());
        rows.extend(workers.map(|worker| (worker.start, 1.0, worker.task)));
    } else {
        let tasks = input.tasks.iter().enumerate().filter(|(_, task)| task.asked.is_finite());
        rows.extend(tasks.map(|(at, task)| (task.asked, f64::from(task.count), at as u32)));
        let note = "Instances are not listed: counted in the hour in which their task was asked.";
        figure.notes.push(note.to_owned());
    }
    let offset = offset(input);
    let spans = rows.iter().map(|row| (row.0, row.0 + 1.0));
    let Some(clock) = Clock::at(spans, 1, offset) else { return };
    let mut sums = vec![[0.0; 3]; clock.buckets];
    for (time, count, task) in rows {
        let task = &input.tasks[task as usize];
        let bucket = (((time - clock.start) / clock.width) as usize).min(clock.buckets - 1);
        let mem = if task.mem.is_nan() { 0.0 } else { f64::from(task.mem) };
        let asked = [task.cpu_or_zero() / 100.0, task.gpu_or_zero() / 100.0, mem];
        for (sum, asked) in sums[bucket].iter_mut().zip(asked) {
            *sum += asked * count * HOUR / clock.width;
        }
    }
    let names = [("vCPU", "cpu"), ("GPUs", "gpu"), ("memory GB", "mem")];
    for (kind, (name, key)) in names.into_iter().enumerate() {
        let values: Vec<f64> = sums.iter().map(|sum| sum[kind]).collect();
        let words = format!("{name} asked for within an hour, mean");
        figure.fact(&format!("{key}_per_hour"), &words, mean(&values), Format::Number);
        let points = clock.times().into_iter().zip(values.iter().copied()).collect();
        figure.lines(
            &format!("{name} asked for per hour"),
            Axis::linear("time since start", Format::Duration),
            Axis::linear(name, Format::Count),
            vec![(name.to_owned(), ChartShape::Straight, points)],
        );
        let boxes = hours_of_day(&values, &clock, offset);
        if !boxes.is_empty() {
            box_lines(figure, &format!("{name} asked for"), name, boxes, hours(input));
        }
    }
}
