//! How long tasks and instances run.

use super::{Def, by_name};
use crate::analyze::figure::{Curve, Figure, curve};
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, quantile};
use crate::report::chart::Axis;
use crate::report::data::Format;
use crate::report::format;
use crate::trace::Status;

/// The figure `runtime`.
pub const RUNTIME: Def = Def {
    key: "runtime",
    title: "Run times",
    meaning: "A long tail of run times makes short jobs wait behind long ones; ordering by \
              expected run time then cuts waiting most.",
    published: "",
    needs: &[Need::Runs],
    compute,
};

/// Curves of one plot; more cannot be told apart.
pub(super) const CURVES_MAX: usize = 12;

fn compute(input: &Input, figure: &mut Figure) {
    let tasks = ascending(input.tasks.iter().map(|task| task.run));
    let workers = ascending(input.workers.iter().map(|worker| worker.end - worker.start));
    let (of, values) = if workers.is_empty() { ("tasks", &tasks) } else { ("instances", &workers) };
    let at = |share| quantile(values, share);
    figure.fact("with_times", &format!("{of} with a run time"), values.len() as f64, Format::Count);
    for (key, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let words = format!("run time of {of}, {}", key.to_uppercase());
        figure.fact(key, &words, at(share), Format::Duration);
    }
    let written = |share| format::value(at(share), Format::Duration);
    figure.finding(
        0.2,
        at(0.5),
        values.len(),
        &format!(
            "Half of the {of} run at most {}, one in ten longer than {}.",
            written(0.5),
            written(0.9)
        ),
    );
    let axis = || Axis::log("run time", Format::Duration, 1.0);
    let curves = vec![curve("tasks (mean of instances)", tasks), curve("instances", workers)];
    figure.cdf("Run times", axis(), "tasks or instances", curves);
    let ended = input.tasks.iter().filter(|task| task.status == Status::Completed);
    let by_type = by_name(input, ended.map(|task| (task.gpu_type, task.run)));
    if by_type.len() > 1 {
        let curves = by_type.into_iter().map(|(name, values)| curve(name, values));
        let curves: Vec<Curve> = curves.take(CURVES_MAX).collect();
        figure.cdf("Run times of completed tasks by GPU type", axis(), "tasks", curves);
    }
}
