//! How long tasks wait: by run time, by sharing, by GPU type.

use super::runtime::CURVES_MAX;
use super::{ANY, Def, by_name, percent};
use crate::analyze::figure::{CASES_MIN, Curve, Figure, curve};
use crate::analyze::input::{Input, Task};
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, median, quantile, share};
use crate::report::chart::Axis;
use crate::report::data::Format;
use crate::report::format;

/// The figure `wait-share`.
pub const SHARE: Def = Def {
    key: "wait-share",
    title: "Waiting against running",
    meaning: "A task that waits longer than it runs is one whose user notices the queue; short \
              tasks suffer first.",
    published: "9 % of short and 3 % of long instances wait more than half of their completion \
                time.",
    needs: &[Need::Sizes, Need::Starts, Need::Runs],
    compute: wait_share,
};

/// The figure `wait-sharing`.
pub const BY_SHARING: Def = Def {
    key: "wait-sharing",
    title: "Waiting by share of a GPU",
    meaning: "Where tasks that ask for a part of a GPU wait less, sharing pays for those who can \
              share, and whole GPUs are what is scarce.",
    published: "P90 of waiting 497 s with sharing and 1,150 s without.",
    needs: &[Need::Tasks, Need::Starts],
    compute: by_sharing,
};

/// The figure `wait-gpu`.
pub const BY_GPU: Def = Def {
    key: "wait-gpu",
    title: "Waiting by GPU type",
    meaning: "The type with the longest queue is the one to buy, to reserve, or to move jobs away \
              from.",
    published: "V100: P50 113 s, P90 13,709 s; low-end types: P50 11 s, P90 360 s.",
    needs: &[Need::Sizes, Need::Starts],
    compute: by_gpu,
};

fn waiting(task: &&Task) -> bool {
    task.wait() >= 0.0
}

fn axis() -> Axis {
    Axis::log("waiting time", Format::Duration, 1.0)
}

fn wait_share(input: &Input, figure: &mut Figure) {
    let runs = ascending(input.tasks.iter().map(|task| task.run));
    let middle = median(&runs);
    let shares = |keep: &dyn Fn(&Task) -> bool| {
        let kept = input.tasks.iter().filter(waiting).filter(|task| keep(task));
        ascending(kept.map(|task| task.wait() / (task.end - task.asked)))
    };
    let curves = [
        ("short", "run at most the median", shares(&|task| task.run <= middle)),
        ("long", "run longer than the median", shares(&|task| task.run > middle)),
        ("all", "all", shares(&|_| true)),
    ];
    for (key, name, values) in &curves {
        let above = share(values, |value| value > 0.5);
        let words = format!("{name}: waiting is more than half of completion");
        figure.fact(&format!("above_half_{key}"), &words, above, Format::Percent);
    }
    let cases = curves[0].2.len();
    let short = figure.value("above_half_short").unwrap_or(f64::NAN);
    figure.finding(
        0.6 * short,
        short,
        cases,
        &format!("{} of short tasks wait more than half of their completion time.", percent(short)),
    );
    let axis = Axis::linear("waiting as a share of completion time", Format::Percent).up_to(1.0);
    let curves = curves.into_iter().map(|(_, name, values)| curve(name, values)).collect();
    figure.cdf("Waiting as a share of completion time", axis, "tasks", curves);
    let left_out = input.tasks.iter().filter(|task| !waiting(task)).count();
    figure.notes.push(format!("{left_out} tasks without times are left out."));
}

fn by_sharing(input: &Input, figure: &mut Figure) {
    let waits = |keep: &dyn Fn(f64) -> bool| {
        let kept = input.tasks.iter().filter(waiting).filter(|task| keep(f64::from(task.gpu)));
        ascending(kept.map(Task::wait))
    };
    let shared = waits(&|gpu| gpu > 0.0 && gpu < 100.0);
    let whole = waits(&|gpu| gpu >= 100.0);
    for (key, name, values) in
        [("shared", "part of a GPU", &shared), ("whole", "whole GPUs", &whole)]
    {
        for (quantile_key, at) in [("p50", 0.5), ("p90", 0.9)] {
            let words = format!("{name}: {} of waiting", quantile_key.to_uppercase());
            let value = quantile(values, at);
            figure.fact(&format!("{key}_{quantile_key}"), &words, value, Format::Duration);
        }
    }
    let (one, other) = (quantile(&shared, 0.9), quantile(&whole, 0.9));
    let written = |value| format::value(value, Format::Duration);
    figure.finding(
        0.45,
        one + other,
        shared.len().min(whole.len()),
        &format!(
            "One in ten tasks waits longer than {} for part of a GPU and {} for whole ones.",
            written(one),
            written(other)
        ),
    );
    figure.cdf(
        "Waiting by sharing",
        axis(),
        "tasks",
        vec![curve("part of a GPU", shared), curve("whole GPUs", whole)],
    );
    let bands = vec![
        curve("below 25 %", waits(&|gpu| gpu > 0.0 && gpu < 25.0)),
        curve("25 to 50 %", waits(&|gpu| (25.0..50.0).contains(&gpu))),
        curve("50 to 100 %", waits(&|gpu| (50.0..100.0).contains(&gpu))),
        curve("one GPU", waits(&|gpu| gpu == 100.0)),
        curve("more", waits(&|gpu| gpu > 100.0)),
    ];
    figure.cdf("Waiting by band of the GPU request", axis(), "tasks", bands);
}

fn by_gpu(input: &Input, figure: &mut Figure) {
    let waits = input.tasks.iter().filter(waiting).map(|task| (task.gpu_type, task.wait()));
    let by_type = by_name(input, waits);
    for (name, values) in &by_type {
        for (key, at) in [("p50", 0.5), ("p90", 0.9)] {
            let words = format!("{name}: {} of waiting", key.to_uppercase());
            figure.fact(&format!("{name}_{key}"), &words, quantile(values, at), Format::Duration);
        }
    }
    let p90 = |values: &Vec<f64>| quantile(values, 0.9);
    // Who asks for no type waits for any, and a few say nothing about a queue.
    let queues = || by_type.iter().filter(|(name, of)| *name != ANY && of.len() >= CASES_MIN);
    let longest = queues().max_by(|one, other| p90(one.1).total_cmp(&p90(other.1)));
    if let Some((name, values)) = longest.filter(|_| queues().count() > 1) {
        let wait = format::value(p90(values), Format::Duration);
        let text = format!("The longest queue is that for `{name}`: one in ten waits over {wait}.");
        figure.finding(0.5, p90(values), values.len(), &text);
    }
    let curves = by_type.into_iter().map(|(name, values)| curve(name, values));
    let curves: Vec<Curve> = curves.take(CURVES_MAX).collect();
    figure.cdf("Waiting by GPU type", axis(), "tasks", curves);
}
