//! Figures and facts computed from a recorded workload.
//!
//! Reads native tables or the tables of the PAI trace into one [`Input`], computes every figure
//! that they allow, and lists what is missing for the others. Predicting, simulating and
//! changing anything is not done here; the two figures that simulate ask who was handed over.

mod against;
mod figure;
mod figures;
mod input;
mod minibatch;
mod native;
mod need;
mod page;
mod pai;
mod simulator;
mod stats;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

pub use figure::{Fact, Figure, FigureTable, Finding, TableRow};
pub use input::{Input, Source};
use serde::Serialize;
pub use simulator::{JobSimulator, JobWait, PER_MINUTE, Rank, Simulated, SimulatedCluster};

use crate::trace::ImportOptions;
use crate::trace::import::importer;
use crate::trace::source::{self, Progress};
use crate::trace::{Trace, TraceError};

/// What can go wrong before the first figure.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// The tables cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Nothing known is there.
    #[error(
        "no tables in `{0}`; expected jobs.csv and tasks.csv, tables of the PAI trace \
         (pai_task_table.csv, ..), or a CSV of the PAI job simulator"
    )]
    Nothing(String),
}

/// Everything that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    /// What was analysed, in words.
    pub subtitle: String,
    /// Sentences, the most important first.
    pub findings: Vec<Finding>,
    /// Figures in the order of the report.
    pub figures: Vec<Figure>,
    /// Figures that could not be computed, with what is missing.
    pub not_computed: Vec<NotComputed>,
    /// Rows read of each table.
    pub rows: BTreeMap<String, u64>,
    /// Rows left out, by reason.
    pub left_out: BTreeMap<String, u64>,
}

/// A figure that could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotComputed {
    /// Name of the figure.
    pub key: &'static str,
    /// Tables or columns that are missing.
    pub needs: Vec<&'static str>,
}

/// Reads a folder of native or PAI tables, or one CSV of the PAI job simulator.
pub fn read(path: &Path, progress: Progress<'_>) -> Result<Input, AnalyzeError> {
    let native = |path: &Path| source::find(path, "jobs.csv").is_ok_and(|file| file.is_some());
    let mut input = if !path.is_dir() {
        simulator_csv(path, progress)?
    } else if native(path) {
        native::from_folder(path, progress)?
    } else if pai::detect(path) {
        pai::read(path, progress)?
    } else {
        return Err(AnalyzeError::Nothing(path.display().to_string()));
    };
    input.name = source::file_name(path);
    Ok(input)
}

fn simulator_csv(path: &Path, progress: Progress<'_>) -> Result<Input, AnalyzeError> {
    let imported = (importer(None, path)?.import)(path, &ImportOptions::default(), progress)?;
    let mut input = native::from_trace(imported.trace);
    input.source = Source::PaiSimulator;
    input.left_out = imported.dropped;
    Ok(input)
}

/// The input of a trace in memory.
pub fn from_trace(trace: Trace) -> Input {
    native::from_trace(trace)
}

/// Tasks of the full PAI trace; fewer are a part of it, and published numbers do not apply.
const FULL_TASKS: usize = 1_200_000;

/// Less is no news: `0.0 % of instances ..`.
const IMPORTANCE_MIN: f64 = 0.005;

/// Computes every figure that the input allows. `step` is told how many of how many are done.
pub fn analyze(input: &Input, step: &mut dyn FnMut(usize, usize)) -> Analysis {
    let full = input.source == Source::Pai && input.tasks_listed && input.tasks.len() >= FULL_TASKS;
    let (mut figures, mut not_computed) = (Vec::new(), Vec::new());
    for (done, def) in figures::ALL.into_iter().enumerate() {
        step(done, figures::ALL.len());
        let unmet = def.needs.iter().filter(|need| !need.is_met(input));
        let mut needs: Vec<&str> = unmet.map(|need| need.words(input.source)).collect();
        needs.dedup();
        if !needs.is_empty() {
            not_computed.push(NotComputed { key: def.key, needs });
            continue;
        }
        let mut figure = Figure::new(def.key, def.title, def.meaning);
        if full {
            figure.published = def.published;
        }
        (def.compute)(input, &mut figure);
        figures.push(figure);
    }
    step(figures::ALL.len(), figures::ALL.len());
    let all = figures.iter().flat_map(|figure| figure.findings.iter());
    let mut findings: Vec<Finding> =
        all.filter(|finding| finding.importance >= IMPORTANCE_MIN).cloned().collect();
    findings.sort_by(|one, other| other.importance.total_cmp(&one.importance));
    Analysis {
        subtitle: subtitle(input),
        findings,
        figures,
        not_computed,
        rows: input.rows.clone(),
        left_out: input.left_out.clone(),
    }
}

fn subtitle(input: &Input) -> String {
    use crate::report::format::grouped;
    let count = |count: usize, what: &str| format!("{} {what}", grouped(count as f64, 0));
    let machines = input.machines.iter().filter(|machine| machine.known);
    let gpus: f64 = machines.clone().map(|machine| machine.gpu).sum();
    let mut parts = vec![count(input.jobs, "jobs"), count(input.tasks.len(), "tasks")];
    if !input.workers.is_empty() {
        parts.push(count(input.workers.len(), "instances"));
    }
    let machines = machines.count();
    if machines > 0 {
        parts.push(count(machines, "machines"));
        parts.push(format!("{} GPUs", grouped(gpus, 0)));
    }
    format!("{}: {}", input.name, parts.join(", "))
}

impl Analysis {
    /// A figure by its name.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }

    /// The summary for a terminal.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// This and an earlier workload side by side, for a terminal.
    pub fn text_against(&self, before: &Analysis) -> String {
        against::text(self, before)
    }

    /// The report as one self-contained page, with another workload beside it if there is one;
    /// `command` made it.
    pub fn html(&self, command: &str, before: Option<&Analysis>) -> String {
        page::page(self, command, before)
    }
}
