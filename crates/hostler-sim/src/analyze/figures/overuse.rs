//! Tasks and instances that use more than they asked for.

use super::requests::{asked_by, sums, use_of};
use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::{Input, Machine};
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, share};
use crate::report::chart::Axis;
use crate::report::data::Format;

/// The figure `overuse`.
pub const OVERUSE: Def = Def {
    key: "overuse",
    title: "Use above request",
    meaning: "Whoever uses more than asked takes it from neighbours; without limits these are the \
              first suspects when others slow down.",
    published: "CPU 19 %, GPU 3 % of instances; 15.51 % and 1.97 % of tasks.",
    needs: &[Need::Tasks, Need::Instances, Need::Usage, Need::Placement],
    compute,
};

const KINDS: [&str; 3] = ["cpu", "gpu", "mem"];

/// Capacities in the units of requests.
fn capacity(machine: &Machine) -> [f64; 3] {
    [machine.cpu * 100.0, machine.gpu * 100.0, machine.mem]
}

fn compute(input: &Input, figure: &mut Figure) {
    let sums = sums(input);
    let mut capacities = vec![[0.0; 3]; input.tasks.len()];
    let mut instances: [Vec<f64>; 3] = Default::default();
    for worker in input.last_workers() {
        let Some(machine) = input.machine_of(worker) else { continue };
        let rows = input.usage_of(worker);
        if rows.is_empty() {
            continue;
        }
        let (asked, used) = (asked_by(input.task_of(worker)), use_of(rows));
        let capacity = capacity(machine);
        for kind in 0..3 {
            capacities[worker.task as usize][kind] += capacity[kind];
            instances[kind].push((used[kind] - asked[kind]) / capacity[kind]);
        }
    }
    let mut curves = Vec::new();
    for (kind, name) in KINDS.into_iter().enumerate() {
        let tasks = sums.iter().zip(&capacities).filter(|(sum, _)| sum.seen);
        let tasks =
            ascending(tasks.map(|(sum, cap)| (sum.used[kind] - sum.asked[kind]) / cap[kind]));
        let instances = ascending(std::mem::take(&mut instances[kind]));
        let above = |values: &[f64]| share(values, |value| value > 0.0);
        let (of_tasks, of_instances) = (above(&tasks), above(&instances));
        let words = format!("tasks that use more {name} than asked");
        figure.fact(&format!("{name}_tasks"), &words, of_tasks, Format::Percent);
        let words = format!("instances that use more {name} than asked");
        figure.fact(&format!("{name}_instances"), &words, of_instances, Format::Percent);
        let text = format!("{} of instances use more {name} than asked.", percent(of_instances));
        figure.finding(0.6 * of_instances, of_instances, instances.len(), &text);
        curves.push(curve(name, tasks));
    }
    let mut axis = Axis::linear("(use - request) / capacity of the machine", Format::Percent);
    axis.min = None;
    figure.cdf("Use above request, per task", axis, "tasks", curves);
}
