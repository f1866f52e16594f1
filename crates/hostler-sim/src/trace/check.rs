//! Rules between the values of a trace that was read: `trace check`.
//!
//! What a single field may hold is settled by the readers; what is found here names the same
//! places. Errors are things a simulation cannot give a meaning to, warnings are suspicious.

use std::collections::HashSet;
use std::fmt;

use super::error::write_place;
use super::fit::Fit;
use super::machines::check_machines;
use super::priority;
use super::table::{JobRow, NodeRow, TaskRow, Trace};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Suspicious, but there is a meaning.
    Warning,
    /// No meaning can be given.
    Error,
}

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// `nodes.csv`
    Nodes,
    /// `jobs.csv`
    Jobs,
    /// `tasks.csv`
    Tasks,
    /// `instances.csv`
    Instances,
    /// `meta.toml`
    Meta,
}

impl Table {
    /// File name without packing.
    pub fn file(self) -> &'static str {
        match self {
            Table::Nodes => "nodes.csv",
            Table::Jobs => "jobs.csv",
            Table::Tasks => "tasks.csv",
            Table::Instances => "instances.csv",
            Table::Meta => "meta.toml",
        }
    }
}

macro_rules! rules {
    ($($name:ident $severity:ident $words:literal,)*) => {
        /// What a finding is about; the words are the documentation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $words] $name,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$name,)*];

            /// What is wrong, in words.
            pub fn words(self) -> &'static str {
                match self { $(Rule::$name => $words,)* }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(Rule::$name => Severity::$severity,)* }
            }
        }
    };
}

rules! {
    DuplicateJob Error "job_id is there twice",
    JobWithoutTasks Error "job has no tasks",
    TaskWithoutJob Error "task of a job that is not in jobs.csv",
    CountBelowOne Error "count is below 1",
    GpuMilli Error "above 1000 only whole multiples of 1000",
    ZeroDemand Error "task asks zero of every resource",
    MinAboveCount Error "min_count is above count",
    MaxBelowCount Error "max_count is below count",
    StartBeforeSubmit Error "start is before submission",
    EndBeforeStart Error "end is before start",
    NodeOverlap Error "intervals of a node overlap",
    NodeInterval Error "node goes down before it comes up",
    NodeDiffers Error "rows of one node differ; they are intervals in the life of one machine",
    GpuMemory Error "GPUs of one model have one memory size; name the models apart",
    Islands Error "islands are at most as many as GPUs and divide their number",
    InstanceWithoutJob Error "instance of a job that is not in jobs.csv",
    FitsNoNode Warning "task fits no node",
    FitNotChecked Warning "too many different nodes and tasks: fits not checked from here on",
    ModelAbsent Warning "no node has this GPU model",
    NoDuration Warning "neither duration_ms nor work is known",
    DeadlineBeforeSubmit Warning "deadline is before submission",
    UnknownPriority Warning "unknown priority class counts as 0; use an integer or a known name",
    InstanceNode Warning "node is not in nodes.csv",
    RowCount Warning "number of rows differs from meta.toml; is a file cut off?",
}

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// In which table.
    pub table: Table,
    /// Row in the table in memory.
    pub row: u32,
    /// Line in the source file; 0 = not read from a file.
    pub line: u32,
    /// Column that holds the value.
    pub column: &'static str,
    /// The value.
    pub value: String,
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.table.file(), u64::from(self.line), self.column)?;
        write!(f, "{}: `{}`", self.rule.words(), self.value)
    }
}

/// Every broken rule, in the order nodes, jobs, tasks, instances.
pub fn check(trace: &Trace) -> Vec<Finding> {
    let mut findings = Vec::new();
    each_finding(trace, &mut |finding| findings.push(finding));
    findings
}

/// Like [`check`], handing findings over one by one: a bad trace may have millions.
pub fn each_finding(trace: &Trace, tell: &mut dyn FnMut(Finding)) {
    check_meta(trace, tell);
    check_nodes(trace, tell);
    check_jobs(trace, tell);
    check_tasks(trace, tell);
    check_instances(trace, tell);
}

type Tell<'a> = &'a mut dyn FnMut(Finding);

fn check_meta(trace: &Trace, tell: Tell<'_>) {
    let counts = trace.row_counts();
    for (name, expected) in &trace.meta.rows {
        let found = counts.get(name).copied().unwrap_or(0);
        // Instances may have been left out on purpose.
        if found != *expected && !(name == "instances" && found == 0) {
            let value = format!("{name}: {found} rows, meta.toml says {expected}");
            let (table, row, line, column) = (Table::Meta, 0, 0, "rows");
            tell(Finding { rule: Rule::RowCount, table, row, line, column, value });
        }
    }
}

fn check_nodes(trace: &Trace, tell: Tell<'_>) {
    let mut order: Vec<u32> = (0..trace.nodes.len() as u32).collect();
    let node = |row: u32| &trace.nodes[row as usize];
    order.sort_by_key(|row| (node(*row).node_id, node(*row).up_from_s.or(0), *row));
    let mut report = |rule, row: u32, column, value| {
        let line = node(row).line;
        tell(Finding { rule, table: Table::Nodes, row, line, column, value });
    };
    let end = |node: &NodeRow| node.up_to_s.or(u64::MAX);
    for row in &order {
        let node = node(*row);
        if node.up_from_s.or(0) >= end(node) {
            report(Rule::NodeInterval, *row, "up_to_s", end(node).to_string());
        }
    }
    check_machines(trace, &mut report);
    let mut last: Option<&NodeRow> = None;
    for row in order {
        let node = node(row);
        let before = last.filter(|last| last.node_id == node.node_id);
        if before.is_some_and(|before| node.up_from_s.or(0) < end(before)) {
            report(Rule::NodeOverlap, row, "node_id", trace.str(node.node_id).to_owned());
        }
        // Of two overlapping intervals the one that ends later decides about the next.
        if before.is_none_or(|before| end(node) >= end(before)) {
            last = Some(node);
        }
    }
}

fn check_jobs(trace: &Trace, tell: Tell<'_>) {
    let mut seen = vec![false; trace.text.len()];
    for (row, job) in trace.jobs.iter().enumerate() {
        let mut report = |rule, column, value: String| {
            let (table, row, line) = (Table::Jobs, row as u32, job.line);
            tell(Finding { rule, table, row, line, column, value });
        };
        let duplicate = std::mem::replace(&mut seen[job.job_id.index()], true);
        if duplicate {
            report(Rule::DuplicateJob, "job_id", trace.str(job.job_id).to_owned());
        } else if job.tasks_count == 0 {
            report(Rule::JobWithoutTasks, "job_id", trace.str(job.job_id).to_owned());
        }
        if job.deadline_ms.get().is_some_and(|deadline| deadline < job.submit_ms) {
            report(Rule::DeadlineBeforeSubmit, "deadline_ms", job.deadline_ms.or(0).to_string());
        }
        let class = trace.str(job.priority_class);
        if priority::resolve(class).is_none() {
            report(Rule::UnknownPriority, "priority_class", class.to_owned());
        }
    }
}

fn check_tasks(trace: &Trace, tell: Tell<'_>) {
    let mut fit = Fit::new(trace);
    for job in &trace.jobs {
        for row in job.tasks() {
            let task = &trace.tasks[row];
            let mut report = |rule, column, value: String| {
                tell(task_finding(rule, row, task, column, value));
            };
            check_shape(task, &mut report);
            check_times(job, task, &mut report);
            for model in trace.list(task.gpu_models, '|') {
                if fit.lacks_model(model) {
                    report(Rule::ModelAbsent, "gpu_models", model.to_owned());
                }
            }
            match fit.fits(task) {
                None => report(Rule::FitNotChecked, "", trace.str(task.job_id).to_owned()),
                Some(false) => report(Rule::FitsNoNode, "", demand_words(trace, task)),
                Some(true) => {}
            }
        }
    }
    for (row, task) in trace.tasks.iter().enumerate().skip(trace.orphans_start()) {
        let value = trace.str(task.job_id).to_owned();
        tell(task_finding(Rule::TaskWithoutJob, row, task, "job_id", value));
    }
}

fn task_finding(
    rule: Rule,
    row: usize,
    task: &TaskRow,
    column: &'static str,
    value: String,
) -> Finding {
    Finding { rule, table: Table::Tasks, row: row as u32, line: task.line, column, value }
}

fn check_shape(task: &TaskRow, report: &mut dyn FnMut(Rule, &'static str, String)) {
    if task.count < 1 {
        report(Rule::CountBelowOne, "count", task.count.to_string());
    }
    let gpu = task.gpu_milli.or(0);
    if gpu > 1000 && !gpu.is_multiple_of(1000) {
        report(Rule::GpuMilli, "gpu_milli", gpu.to_string());
    }
    if gpu == 0 && task.cpu_milli.or(0) == 0 && task.mem_mib.or(0) == 0 {
        report(Rule::ZeroDemand, "gpu_milli", gpu.to_string());
    }
    if task.min_count.or(0) > task.count {
        report(Rule::MinAboveCount, "min_count", task.min_count.or(0).to_string());
    }
    if task.max_count.or(u32::MAX) < task.count {
        report(Rule::MaxBelowCount, "max_count", task.max_count.or(0).to_string());
    }
    if task.duration_ms.get().is_none() && task.work.get().is_none() {
        report(Rule::NoDuration, "duration_ms", String::new());
    }
}

fn check_times(job: &JobRow, task: &TaskRow, report: &mut dyn FnMut(Rule, &'static str, String)) {
    if task.start_ms.get().is_some_and(|start| start < job.submit_ms) {
        report(Rule::StartBeforeSubmit, "start_ms", task.start_ms.or(0).to_string());
    }
    let started = task.start_ms.or(job.submit_ms);
    if task.end_ms.get().is_some_and(|end| end < started) {
        report(Rule::EndBeforeStart, "end_ms", task.end_ms.or(0).to_string());
    }
}

fn demand_words(trace: &Trace, task: &TaskRow) -> String {
    let mut words = vec![
        format!("gpu_milli {}", task.gpu_milli.or(0)),
        format!("cpu_milli {}", task.cpu_milli.or(0)),
        format!("mem_mib {}", task.mem_mib.or(0)),
    ];
    if let Some(memory) = task.gpu_mem_mib.get() {
        words.push(format!("gpu_mem_mib {memory}"));
    }
    if !task.gpu_models.is_empty() {
        words.push(format!("gpu_models {}", trace.str(task.gpu_models)));
    }
    words.join(", ")
}

fn check_instances(trace: &Trace, tell: Tell<'_>) {
    let jobs: HashSet<_> = trace.jobs.iter().map(|job| job.job_id).collect();
    let nodes: HashSet<_> = trace.nodes.iter().map(|node| node.node_id).collect();
    for (row, instance) in trace.instances.iter().enumerate() {
        let mut report = |rule, column, value: String| {
            let (table, row, line) = (Table::Instances, row as u32, instance.line);
            tell(Finding { rule, table, row, line, column, value });
        };
        if !jobs.contains(&instance.job_id) {
            report(Rule::InstanceWithoutJob, "job_id", trace.str(instance.job_id).to_owned());
        }
        let node = instance.node_id;
        if !nodes.is_empty() && !node.is_empty() && !nodes.contains(&node) {
            report(Rule::InstanceNode, "node_id", trace.str(node).to_owned());
        }
        let start = instance.start_ms.or(0);
        if instance.end_ms.get().is_some_and(|end| end < start) {
            report(Rule::EndBeforeStart, "end_ms", instance.end_ms.or(0).to_string());
        }
    }
}
