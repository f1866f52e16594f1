//! How much of each machine is promised to instances, by hour.

use std::collections::BTreeMap;

use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::{Input, Worker};
use crate::analyze::need::Need;
use crate::analyze::stats::{Clock, Spread, mean};
use crate::report::data::{Format, Heat};

/// The figure `alloc-heat`.
pub const ALLOC_HEAT: Def = Def {
    key: "alloc-heat",
    title: "Allocation of machines",
    meaning: "Rows that are dark for CPUs and light for GPUs are machines whose GPUs nobody can \
              take; light rows of expensive types are what packing could fill.",
    published: "8-GPU MISC machines: 77 % of CPUs and 74 % of GPUs allocated; V100 machines: 35 % \
                and 49 %.",
    needs: &[Need::Tasks, Need::Instances, Need::Placement],
    compute,
};

fn compute(input: &Input, figure: &mut Figure) {
    let times = input.last_workers().map(|worker| (worker.start, worker.end));
    let Some(clock) = Clock::over(times, input.machines.len()) else { return };
    let mut cpu = Spread::new(clock, input.machines.len());
    let mut gpu = Spread::new(clock, input.machines.len());
    for worker in input.last_workers() {
        let Some(machine) = input.machine_of(worker) else { continue };
        let (task, row) = (input.task_of(worker), worker.machine as usize);
        let (start, end) = (worker.start, worker.end);
        cpu.add(row, start, end, task.cpu_or_zero() / (100.0 * machine.cpu));
        gpu.add(row, start, end, task.gpu_or_zero() / (100.0 * machine.gpu));
    }
    let (cpu, gpu) = (cpu.means(), gpu.means());
    let mut classes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, machine) in input.machines.iter().enumerate() {
        if machine.known && machine.gpu >= 1.0 {
            classes.entry(input.class_of(machine)).or_default().push(at);
        }
    }
    let mut rows = Vec::new();
    for (name, members) in &classes {
        let cells = |values: &[f64]| {
            let of = members.iter().flat_map(|row| &values[row * clock.buckets..][..clock.buckets]);
            mean(&of.copied().collect::<Vec<f64>>())
        };
        let (of_cpu, of_gpu) = (cells(&cpu), cells(&gpu));
        figure.fact(&format!("{name}_cpu"), &format!("{name}: CPUs"), of_cpu, Format::Percent);
        figure.fact(&format!("{name}_gpu"), &format!("{name}: GPUs"), of_gpu, Format::Percent);
        rows.push((name.clone(), vec![members.len() as f64, of_cpu, of_gpu]));
    }
    let emptiest = rows.iter().min_by(|one, other| one.1[2].total_cmp(&other.1[2]));
    if let Some((name, row)) = emptiest.filter(|_| rows.len() > 1) {
        let text = format!("{name} machines have {} of their GPUs allocated.", percent(row[2]));
        let of_class =
            |worker: &&Worker| classes[name].binary_search(&(worker.machine as usize)).is_ok();
        let cases = input.last_workers().filter(of_class).count();
        figure.finding(0.4 * (1.0 - row[2]), row[2], cases, &text);
    }
    figure.table(
        "Mean allocation by class",
        &["class", "machines", "CPUs", "GPUs"],
        &[Format::Count, Format::Percent, Format::Percent],
        rows,
    );
    for (measure, values) in [("GPUs allocated", &gpu), ("CPUs allocated", &cpu)] {
        figure.heat(measure, measure, &map(input, &clock, &classes, values));
    }
}

/// Rows by class, then by name of the machine.
fn map(
    input: &Input,
    clock: &Clock,
    classes: &BTreeMap<String, Vec<usize>>,
    values: &[f64],
) -> Heat {
    let mut heat = Heat { times_s: clock.times(), ..Heat::default() };
    for (class, members) in classes {
        let mut members = members.clone();
        members.sort_by_key(|row| input.str(input.machines[*row].name));
        for row in members {
            heat.machines.push(input.str(input.machines[row].name).to_owned());
            heat.groups.push(class.clone());
            let cells = &values[row * clock.buckets..][..clock.buckets];
            heat.cells.extend(cells.iter().map(|cell| (cell * 100.0).clamp(0.0, 100.0) as u8));
        }
    }
    heat
}
