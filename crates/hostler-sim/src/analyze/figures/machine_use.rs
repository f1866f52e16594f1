//! What machines did: use of GPUs and CPUs by the hour, and where CPU time goes.

use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::{Input, Metric};
use crate::analyze::need::Need;
use crate::analyze::stats::{Clock, Spread, ascending, mean, quantile};
use crate::report::chart::{Axis, ChartShape};
use crate::report::data::Format;

/// The figure `machine-use`.
pub const MACHINE_USE: Def = Def {
    key: "machine-use",
    title: "Use of machines",
    meaning: "Machines whose GPUs idle while their CPUs are busy are starved by preprocessing, \
              not by a lack of jobs.",
    published: "",
    needs: &[Need::Metrics, Need::Machines],
    compute: machine_use,
};

/// The figure `iowait`.
pub const CPU_TIME: Def = Def {
    key: "iowait",
    title: "CPU time of machines",
    meaning: "Waiting for devices points at slow storage; kernel time at network and copying.",
    published: "",
    needs: &[Need::Metrics],
    compute: cpu_time,
};

fn machine_use(input: &Input, figure: &mut Figure) {
    let times = input.metrics.iter().map(|metric| (metric.start, metric.end));
    let Some(clock) = Clock::over(times, input.machines.len()) else { return };
    let rows = input.machines.len();
    for (name, value) in KINDS {
        let (mut sums, mut weights) = (Spread::new(clock, rows), Spread::new(clock, rows));
        for metric in &input.metrics {
            let percent = f64::from(value(metric));
            if percent.is_finite() {
                let row = metric.machine as usize;
                sums.add(row, metric.start, metric.end, percent / 100.0);
                weights.add(row, metric.start, metric.end, 1.0);
            }
        }
        by_size(input, figure, name, &clock, &sums.means(), &weights.means());
    }
}

/// A resource and its use in per cent.
type Kind = (&'static str, fn(&Metric) -> f32);
const KINDS: [Kind; 2] = [("GPU", |metric| metric.gpu), ("CPU", |metric| metric.cpu)];

/// Mean and P90 across machines, for machines with many and with few GPUs.
fn by_size(
    input: &Input,
    figure: &mut Figure,
    name: &str,
    clock: &Clock,
    sums: &[f64],
    weights: &[f64],
) {
    let mut lines = Vec::new();
    for gpus in [8.0, 2.0] {
        let members: Vec<usize> = (0..input.machines.len())
            .filter(|row| input.machines[*row].known && input.machines[*row].gpu == gpus)
            .collect();
        if members.is_empty() {
            continue;
        }
        let (mut means, mut highs) = (Vec::new(), Vec::new());
        for (bucket, time) in clock.times().into_iter().enumerate() {
            let cells = members.iter().map(|row| row * clock.buckets + bucket);
            let used = cells.map(|cell| sums[cell] / weights[cell]);
            let used = ascending(used);
            if !used.is_empty() {
                means.push((time, mean(&used)));
                highs.push((time, quantile(&used, 0.9)));
            }
        }
        let overall = mean(&means.iter().map(|point| point.1).collect::<Vec<f64>>());
        let key = format!("{}_{gpus}", name.to_lowercase());
        let words = format!("{name} use of machines with {gpus} GPUs, mean");
        figure.fact(&key, &words, overall, Format::Percent);
        let text = format!("Machines with {gpus} GPUs use {} of their {name}s.", percent(overall));
        let of_members =
            |metric: &&Metric| members.binary_search(&(metric.machine as usize)).is_ok();
        let cases = input.metrics.iter().filter(of_members).count();
        figure.finding(0.3 * (1.0 - overall), overall, cases, &text);
        lines.push((format!("{gpus} GPUs, mean"), ChartShape::Straight, means));
        lines.push((format!("{gpus} GPUs, P90"), ChartShape::Dashed, highs));
    }
    let x = Axis::linear("time since start", Format::Duration);
    let y = Axis::linear(&format!("{name} use"), Format::Percent);
    figure.lines(&format!("{name} use of machines"), x, y, lines);
}

fn cpu_time(input: &Input, figure: &mut Figure) {
    let values = |value: fn(&Metric) -> f32| {
        ascending(input.metrics.iter().map(|metric| f64::from(value(metric)) / 100.0))
    };
    let kinds = [
        ("iowait", values(|metric| metric.iowait)),
        ("usr", values(|metric| metric.usr)),
        ("kernel", values(|metric| metric.kernel)),
    ];
    for (name, values) in &kinds {
        let words = format!("{name}, P90 over instances");
        figure.fact(&format!("{name}_p90"), &words, quantile(values, 0.9), Format::Percent);
    }
    let curves = kinds.into_iter().map(|(name, values)| curve(name, values)).collect();
    let axis = Axis::linear("share of CPU time of the machine", Format::Percent);
    figure.cdf("CPU time of machines while instances ran", axis, "instances", curves);
}
