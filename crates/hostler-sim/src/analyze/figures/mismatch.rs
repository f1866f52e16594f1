//! Machines by class, and what is asked of them against what they have.

use std::collections::BTreeMap;

use super::Def;
use crate::analyze::figure::Figure;
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::report::data::Format;

/// The figure `machines`.
pub const MACHINES: Def = Def {
    key: "machines",
    title: "Machines",
    meaning: "The classes of machines, and the vCPUs that come with each GPU.",
    published: "6,742 GPUs on more than 1,800 machines; 23.22 vCPU per GPU.",
    needs: &[Need::Machines],
    compute: machines,
};

/// The figure `mismatch`.
pub const MISMATCH: Def = Def {
    key: "mismatch",
    title: "Requests against machines",
    meaning: "Where jobs ask for more vCPU per GPU than a machine has, its CPUs run out first and \
              GPUs stay empty; such jobs belong on machines with more CPUs.",
    published: "Requests ask 22.8 vCPU per GPU, machines with 8 GPUs offer 12.",
    needs: &[Need::Tasks, Need::Placement],
    compute: mismatch,
};

#[derive(Clone, Default)]
struct Class {
    machines: f64,
    gpus: f64,
    cpus: f64,
    mem: f64,
    asked_cpu: f64,
    asked_gpu: f64,
    instances: f64,
}

fn classes(input: &Input) -> BTreeMap<String, Class> {
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    for machine in input.machines.iter().filter(|machine| machine.known) {
        let class = classes.entry(input.class_of(machine)).or_default();
        class.machines += 1.0;
        class.gpus += machine.gpu;
        class.cpus += machine.cpu;
        class.mem += machine.mem;
    }
    classes
}

fn machines(input: &Input, figure: &mut Figure) {
    let classes = classes(input);
    let sum = |value: fn(&Class) -> f64| classes.values().map(value).sum::<f64>();
    figure.fact("machines", "machines", sum(|class| class.machines), Format::Count);
    figure.fact("gpus", "GPUs", sum(|class| class.gpus), Format::Count);
    figure.fact("vcpus", "vCPUs", sum(|class| class.cpus), Format::Count);
    let ratio = sum(|class| class.cpus) / sum(|class| class.gpus);
    figure.fact("vcpu_per_gpu", "vCPUs per GPU", ratio, Format::Number);
    let rows = classes.iter().map(|(name, class)| {
        let per_gpu = if class.gpus > 0.0 { class.cpus / class.gpus } else { f64::NAN };
        (name.clone(), vec![class.machines, class.gpus, class.cpus, class.mem, per_gpu])
    });
    figure.table(
        "Classes of machines",
        &["class", "machines", "GPUs", "vCPUs", "memory GB", "vCPU per GPU"],
        &[Format::Count, Format::Count, Format::Count, Format::Count, Format::Number],
        rows.collect(),
    );
}

fn mismatch(input: &Input, figure: &mut Figure) {
    let mut classes = classes(input);
    let (mut all_cpu, mut all_gpu) = (0.0, 0.0);
    for worker in input.last_workers() {
        let task = input.task_of(worker);
        let Some(machine) = input.machine_of(worker) else { continue };
        if task.gpu_or_zero() <= 0.0 {
            continue;
        }
        let class = classes.entry(input.class_of(machine)).or_default();
        class.asked_cpu += task.cpu_or_zero();
        class.asked_gpu += task.gpu_or_zero();
        class.instances += 1.0;
        all_cpu += task.cpu_or_zero();
        all_gpu += task.gpu_or_zero();
    }
    let asked = all_cpu / all_gpu;
    figure.fact("asked_per_gpu", "vCPU asked per GPU", asked, Format::Number);
    let mut rows = Vec::new();
    let mut worst: Option<(f64, usize, String)> = None;
    for (name, class) in classes.iter().filter(|(_, class)| class.gpus > 0.0) {
        let (has, asks) = (class.cpus / class.gpus, class.asked_cpu / class.asked_gpu);
        rows.push((name.clone(), vec![has, asks, class.instances]));
        figure.fact(&format!("{name}_has"), &format!("{name}: vCPU per GPU"), has, Format::Number);
        let words = format!("{name}: vCPU asked per GPU");
        figure.fact(&format!("{name}_asked"), &words, asks, Format::Number);
        let factor = asks / has;
        if factor > worst.as_ref().map_or(1.0, |worst| worst.0) {
            let text = format!(
                "Instances on {name} machines ask for {asks:.1} vCPU per GPU, the machines have \
                 {has:.1}: CPUs run out first."
            );
            worst = Some((factor, class.instances as usize, text));
        }
    }
    if let Some((factor, instances, text)) = worst {
        figure.finding((0.3 * factor).min(0.8), factor, instances, &text);
    }
    figure.table(
        "vCPU per GPU by class of machine",
        &["class", "machine has", "instances ask", "instances"],
        &[Format::Number, Format::Number, Format::Count],
        rows,
    );
}
