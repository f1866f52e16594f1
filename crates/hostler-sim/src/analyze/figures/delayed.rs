//! Whether instances that take longer than their like ran on busier machines.

use std::collections::BTreeMap;

use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, median, quantile};
use crate::report::chart::Axis;
use crate::report::data::Format;
use crate::trace::TextId;

/// The figure `delayed`.
pub const DELAYED: Def = Def {
    key: "delayed",
    title: "Delayed instances",
    meaning: "Where delayed instances sit on machines with busier CPUs, crowding of CPUs is what \
              slows training, and spreading helps more than faster GPUs.",
    published: "Half of the delayed instances ran on machines with CPU use above 24 %.",
    needs: &[Need::Groups, Need::Instances, Need::Metrics],
    compute,
};

/// Fewer like instances have no usual run time.
const LIKE_MIN: usize = 3;

fn compute(input: &Input, figure: &mut Figure) {
    let mut groups: BTreeMap<TextId, Vec<f64>> = BTreeMap::new();
    let workers = || input.last_workers().filter(|worker| worker.run().is_finite());
    for worker in workers() {
        groups.entry(input.task_of(worker).group).or_default().push(worker.run());
    }
    let usual: BTreeMap<TextId, f64> = groups
        .into_iter()
        .filter(|(_, runs)| runs.len() >= LIKE_MIN)
        .map(|(group, runs)| (group, median(&ascending(runs))))
        .collect();
    let mut rows = Vec::new();
    for worker in workers() {
        let Some(usual) = usual.get(&input.task_of(worker).group) else { continue };
        let Some(metric) = input.metric_of(worker) else { continue };
        rows.push((worker.run() / usual, f64::from(metric.cpu), f64::from(metric.gpu)));
    }
    let limit = quantile(&ascending(rows.iter().map(|row| row.0)), 0.9);
    let of = |late: bool, value: fn(&(f64, f64, f64)) -> f64| {
        let kept = rows.iter().filter(|row| (row.0 > limit) == late);
        ascending(kept.map(|row| value(row) / 100.0))
    };
    let (cpu, other_cpu) = (of(true, |row| row.1), of(false, |row| row.1));
    let half = median(&cpu);
    figure.fact(
        "slowdown_p90",
        "slowdown above which an instance is delayed",
        limit,
        Format::Number,
    );
    figure.fact("delayed", "delayed instances", cpu.len() as f64, Format::Count);
    figure.fact("cpu_half", "CPU use above which half of the delayed lie", half, Format::Percent);
    let others = median(&other_cpu);
    figure.fact("cpu_half_others", "the same of the others", others, Format::Percent);
    let text = format!(
        "Half of the delayed instances ran on machines with CPU use above {}, of the others \
         above {}.",
        percent(half),
        percent(others)
    );
    figure.finding(0.4, half + others, cpu.len(), &text);
    for (name, late, rest) in
        [("CPU", cpu, other_cpu), ("GPU", of(true, |row| row.2), of(false, |row| row.2))]
    {
        let axis = Axis::linear(&format!("{name} use of the machine"), Format::Percent);
        let curves = vec![curve("delayed", late), curve("others", rest)];
        figure.cdf(&format!("{name} use of machines under instances"), axis, "instances", curves);
    }
}
