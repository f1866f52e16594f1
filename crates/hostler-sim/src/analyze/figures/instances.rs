//! Counts of what was recorded: instances by status and machine type, jobs by status.

use std::collections::{BTreeMap, BTreeSet};

use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::{Input, NONE};
use crate::analyze::need::Need;
use crate::report::data::Format;
use crate::report::format;
use crate::trace::Status;

/// The figure `instances`.
pub const INSTANCES: Def = Def {
    key: "instances",
    title: "Recorded instances",
    meaning: "Shows where instances ran and how much of the record can be used for times.",
    published: "7.5 million instances on more than 1,800 machines.",
    needs: &[Need::Instances],
    compute: instances,
};

/// The figure `status`.
pub const STATUS: Def = Def {
    key: "status",
    title: "How work ends",
    meaning: "Work that fails has still held GPUs: the share that does not complete is what \
              checking jobs before they start could save.",
    published: "",
    needs: &[Need::Sizes],
    compute: status,
};

fn status_name(status: Status) -> String {
    match status {
        Status::Unknown => "not said".to_owned(),
        status => status.name().to_owned(),
    }
}

fn instances(input: &Input, figure: &mut Figure) {
    let machines: BTreeSet<u32> = input.workers.iter().map(|worker| worker.machine).collect();
    let machines = machines.into_iter().filter(|machine| *machine != NONE).count();
    let timed = input.workers.iter().filter(|worker| worker.end >= worker.start).count();
    figure.fact("rows", "rows", input.workers.len() as f64, Format::Count);
    let distinct = input.last_workers().count();
    figure.fact("instances", "instances, each once", distinct as f64, Format::Count);
    figure.fact("jobs", "jobs", input.jobs as f64, Format::Count);
    figure.fact("machines", "machines in use", machines as f64, Format::Count);
    figure.fact("with_times", "rows with start and end", timed as f64, Format::Count);
    let mut types: BTreeMap<String, f64> = BTreeMap::new();
    let mut statuses: BTreeMap<String, f64> = BTreeMap::new();
    for worker in &input.workers {
        *statuses.entry(status_name(worker.status)).or_default() += 1.0;
        let Some(machine) = input.machine_of(worker) else { continue };
        *types.entry(input.str(machine.gpu_type).to_owned()).or_default() += 1.0;
    }
    counted(figure, "Instances by status", "status", statuses);
    if !types.is_empty() {
        counted(figure, "Instances by GPU type of the machine", "type", types);
    }
}

/// Bars and facts of counts, most first.
fn counted(figure: &mut Figure, title: &str, key: &str, counts: BTreeMap<String, f64>) {
    let mut counts: Vec<(String, f64)> = counts.into_iter().collect();
    counts.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (name, count) in &counts {
        figure.fact(&format!("{key}_{name}"), &format!("{key} {name}"), *count, Format::Count);
    }
    figure.bars(title, "rows", Format::Count, &counts);
}

fn status(input: &Input, figure: &mut Figure) {
    let mut statuses: BTreeMap<String, f64> = BTreeMap::new();
    let (mut over, mut completed) = (0.0, 0.0);
    for task in &input.tasks {
        *statuses.entry(status_name(task.status)).or_default() += 1.0;
        let open = matches!(task.status, Status::Unknown | Status::Running | Status::Waiting);
        over += f64::from(u8::from(!open));
        completed += f64::from(u8::from(task.status == Status::Completed));
    }
    let share = 1.0 - completed / over;
    figure.fact("tasks", "tasks", input.tasks.len() as f64, Format::Count);
    figure.fact("jobs", "jobs", input.jobs as f64, Format::Count);
    figure.fact("not_completed", "ended tasks that did not complete", share, Format::Percent);
    let open = input.tasks.len() as f64 - over;
    figure.fact("open", "tasks that still ran or waited, or do not say", open, Format::Count);
    let mut text = format!("{} of the tasks that ended did not complete", percent(share));
    if open > 0.0 {
        let open = format::grouped(open, 0);
        text += &format!("; {open} more had not ended when the record did, or do not say");
    }
    // What ended early is not what is usual where most had not ended.
    let weight = over / input.tasks.len() as f64;
    figure.finding(0.7 * share * weight, share, over as usize, &text);
    counted(figure, "Tasks by status", "status", statuses);
}
