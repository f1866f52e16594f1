//! What instances ask for, and what tasks use of it.

use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::{Input, Task, Usage};
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, ascending_weighted, share, weighted_quantile};
use crate::report::chart::Axis;
use crate::report::data::Format;

/// The figure `requests`.
pub const ASKED: Def = Def {
    key: "requests",
    title: "Requests",
    meaning: "What a typical instance asks for decides which machines fit: a request shape that \
              no machine has strands the rest of it.",
    published: "P95: 12 vCPU, 1 GPU, 59 GiB.",
    needs: &[Need::Tasks],
    compute: asked,
};

/// The figure `request-use`.
pub const USE: Def = Def {
    key: "request-use",
    title: "Requests against use",
    meaning: "GPU hours that are asked for but not used are capacity already paid for: sharing \
              GPUs or smaller requests bring it back.",
    published: "Plan above use: CPU 84.46 %, GPU 98.02 %, memory 95.88 % of tasks.",
    needs: &[Need::Tasks, Need::Instances, Need::Usage],
    compute: used,
};

/// A resource: key, name, and what an instance of a task asks of it.
type Kind = (&'static str, &'static str, fn(&Task) -> f64);
const KINDS: [Kind; 3] = [
    ("cpu", "vCPU", |task| f64::from(task.cpu) / 100.0),
    ("gpu", "GPUs", |task| f64::from(task.gpu) / 100.0),
    ("mem", "memory GB", |task| f64::from(task.mem)),
];

/// Each instance counts; a task without listed instances counts as many times as it has.
fn asked(input: &Input, figure: &mut Figure) {
    let listed = !input.workers.is_empty();
    for (key, name, value) in KINDS {
        let values = match listed {
            true => ascending_weighted(
                input.last_workers().map(|worker| (value(input.task_of(worker)), 1)),
            ),
            false => ascending_weighted(
                input.tasks.iter().map(|task| (value(task), u64::from(task.count))),
            ),
        };
        for (quantile, at) in [("p50", 0.5), ("p95", 0.95)] {
            let words = format!("{name} asked per instance, {}", quantile.to_uppercase());
            let value = weighted_quantile(&values, at);
            figure.fact(&format!("{key}_{quantile}"), &words, value, Format::Number);
        }
    }
    let at = |key: &str| figure.value(key).unwrap_or(f64::NAN);
    let text =
        format!("The median instance asks for {} vCPU and {} GPU.", at("cpu_p50"), at("gpu_p50"));
    let instances = match listed {
        true => input.last_workers().count(),
        false => input.tasks.iter().map(|task| task.count as usize).sum(),
    };
    figure.finding(0.15, at("cpu_p50") + at("gpu_p50"), instances, &text);
    for (_, name, value) in KINDS {
        let values = ascending(input.tasks.iter().map(value));
        let axis = Axis::log(name, Format::Number, 0.01);
        figure.cdf(
            &format!("Asked per instance: {name}"),
            axis,
            "tasks",
            vec![curve(name, values)],
        );
    }
}

/// What a task asks for and uses, summed over the instances whose use is known.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) asked: [f64; 3],
    pub(super) used: [f64; 3],
    pub(super) seen: bool,
}

/// CPU in per cent, GPU in per cent, memory in GB of one instance.
pub(super) fn use_of(rows: &[Usage]) -> [f64; 3] {
    let sum = rows.iter().map(|usage| f64::from(usage.gpu)).filter(|gpu| gpu.is_finite()).sum();
    // Rows of one instance differ only in their GPU: CPU and memory are told again in each.
    let most = |value: fn(&Usage) -> f32| rows.iter().map(value).fold(f32::NAN, f32::max).into();
    [most(|usage| usage.cpu), sum, most(|usage| usage.mem)]
}

/// What an instance of a task asks for, in the order of [`use_of`].
pub(super) fn asked_by(task: &Task) -> [f64; 3] {
    [f64::from(task.cpu), f64::from(task.gpu), f64::from(task.mem)]
}

pub(super) fn sums(input: &Input) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); input.tasks.len()];
    for worker in input.last_workers() {
        let rows = input.usage_of(worker);
        if rows.is_empty() {
            continue;
        }
        let (asked, used) = (asked_by(input.task_of(worker)), use_of(rows));
        let of_task = &mut sums[worker.task as usize];
        of_task.seen = true;
        for kind in 0..3 {
            of_task.asked[kind] += asked[kind];
            of_task.used[kind] += used[kind];
        }
    }
    sums
}

/// GPU seconds asked for, and those of them that were used.
fn gpu_time(input: &Input) -> (f64, f64) {
    let (mut asked, mut used) = (0.0, 0.0);
    for worker in input.last_workers() {
        let (run, plan) = (worker.run(), input.task_of(worker).gpu_or_zero());
        let rows = input.usage_of(worker);
        if run.is_finite() && plan > 0.0 && !rows.is_empty() {
            asked += run * plan / 100.0;
            used += run * use_of(rows)[1].min(plan) / 100.0;
        }
    }
    (asked, used)
}

fn used(input: &Input, figure: &mut Figure) {
    let sums = sums(input);
    let seen: Vec<&Sums> = sums.iter().filter(|sum| sum.seen).collect();
    let (asked, used) = gpu_time(input);
    let unused = 1.0 - used / asked;
    figure.fact("gpu_hours_asked", "GPU hours asked for", asked / 3600.0, Format::Count);
    figure.fact("gpu_hours_unused", "GPU hours asked for but not used", unused, Format::Percent);
    figure.finding(
        unused,
        unused,
        seen.len(),
        &format!("{} of GPU hours are asked for but not used.", percent(unused)),
    );
    for (kind, (key, name, _)) in KINDS.into_iter().enumerate() {
        let scale = if kind == 2 { 1.0 } else { 100.0 };
        let pairs = seen.iter().map(|sum| (sum.asked[kind] / scale, sum.used[kind] / scale));
        let pairs: Vec<(f64, f64)> =
            pairs.filter(|(asked, used)| asked.is_finite() && used.is_finite()).collect();
        let above: Vec<f64> = pairs.iter().map(|(asked, used)| asked - used).collect();
        let share = share(&above, |above| above > 0.0);
        let words = format!("tasks that ask for more {name} than they use");
        figure.fact(&format!("{key}_above"), &words, share, Format::Percent);
        let axis = Axis::log(name, Format::Number, 0.01);
        let curves = vec![
            curve("asked", ascending(pairs.iter().map(|pair| pair.0))),
            curve("used", ascending(pairs.iter().map(|pair| pair.1))),
        ];
        figure.cdf(&format!("Asked and used per task: {name}"), axis, "tasks", curves);
    }
}
