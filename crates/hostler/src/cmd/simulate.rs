//! `hostler simulate`.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use hostler_core::job::Job;
use hostler_core::metrics::{Metrics, Summary};
use hostler_core::reason::Reason;
use hostler_core::record::Record;
use hostler_core::registry::Registry;
use hostler_core::state::ClusterState;
use hostler_sim::jobs::{self, JobLine, JobTable};
use hostler_sim::lower::Workload;
use hostler_sim::run::Log;
use serde::Serialize;

use super::interval;
use super::rejected::{self, Rejected};
use crate::cli::Simulate;
use crate::progress::{Bars, Counter};
use crate::say::say;
use crate::settings::Chosen;
use crate::{columns, input, memory};

/// Jobs that are named when a run cannot go on.
const STRANDED_SHOWN: usize = 5;

/// A run in numbers, as `--json` prints it.
#[derive(Serialize)]
pub struct RunJson {
    /// Name of the policy.
    pub policy: String,
    /// Its settings in short.
    pub settings: String,
    /// All measures.
    #[serde(flatten)]
    pub summary: Summary,
    /// Facts taken in.
    pub events: u64,
    /// Solutions of an optimiser, if the policy has one.
    #[serde(skip_serializing_if = "is_zero")]
    pub solves: u64,
    /// Those of them that were not optimal.
    #[serde(skip_serializing_if = "is_zero")]
    pub fallbacks: u64,
    /// Seconds that the simulation took.
    pub wall_s: f64,
    /// Most memory that the process held, over all runs so far.
    pub peak_rss_mib: Option<f64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Simulates one policy.
pub fn run(args: &Simulate, registry: &Registry) -> Result<()> {
    let chosen = Chosen::new(registry, &args.policy, args.set.iter().map(String::as_str))?;
    input::check_estimates([&chosen], &args.input)?;
    let loaded = input::load(&args.input)?;
    if args.best_interval {
        return interval::run(args, &chosen, loaded);
    }
    let sink = args.log.as_deref().map(|path| LogFile::create(path, args.force)).transpose()?;
    let log = sink.as_ref().map(|sink| sink.log(&chosen));
    let bar = Bars::new(0).jobs(&chosen.def.kind, loaded.workload.job_count() as u64);
    // What cannot be written is told before anything is simulated.
    let table = args.jobs.as_deref().map(|path| create(path, args.force)).transpose()?;
    let counted = (JobTable::new(table.is_some()), Counter::new(bar.clone()));
    let watch = ((Metrics::default(), Rejected::default()), counted);
    let started = Instant::now();
    let finished = super::simulated(&chosen, &loaded.workload, watch, log)?;
    let wall_s = started.elapsed().as_secs_f64();
    bar.finish_and_clear();
    if let Some(sink) = sink {
        sink.finish()?;
    }
    warnings(&finished.state, &chosen).iter().for_each(say);
    let (solves, fallbacks) = finished.state.solves();
    let ((metrics, rejected), (lines, _)) = finished.watch;
    if let (Some(file), Some(path)) = (table, args.jobs.as_deref()) {
        let lines = lines.finish(&finished.state);
        let written = write_table(path, file, &lines, &loaded.workload);
        written.with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let mut summary = metrics.summary(&finished.state);
    summary.contention = finished.contention;
    let result = RunJson {
        policy: chosen.def.kind.to_string(),
        settings: chosen.short(),
        summary,
        events: finished.events,
        solves,
        fallbacks,
        wall_s,
        peak_rss_mib: memory::peak_rss_mib(),
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
    } else {
        writeln!(out, "{}: {}", result.policy, loaded.words)?;
        writeln!(out, "{}", columns::list(&result, &rejected.lines()))?;
    }
    rejected::refuse_most([(&*result.policy, rejected::counts(&result.summary))])
}

/// Writes the table of jobs in the format that the name of the file says: Parquet, else CSV.
fn write_table(path: &Path, mut file: File, lines: &[JobLine], workload: &Workload) -> Result<()> {
    let parquet = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"));
    match parquet {
        true => jobs::write_parquet(lines, workload, &mut BufWriter::new(file))?,
        false => jobs::write_csv(lines, workload, &mut file)?,
    }
    Ok(())
}

/// What a user should know before he believes the numbers.
pub fn warnings(state: &ClusterState, chosen: &Chosen) -> Vec<String> {
    [stranded(state, chosen), fallbacks(state, chosen)].into_iter().flatten().collect()
}

/// A warning that an optimiser was not always heard.
fn fallbacks(state: &ClusterState, chosen: &Chosen) -> Option<String> {
    let (solves, fallbacks) = state.solves();
    let name = format!("{} {}", chosen.def.kind, chosen.short());
    fallback_warning(name.trim_end(), solves, fallbacks)
}

/// The same, by name and numbers.
pub fn fallback_warning(name: &str, solves: u64, fallbacks: u64) -> Option<String> {
    (fallbacks > 0).then(|| {
        format!(
            "warning: {name}: {fallbacks} of {solves} solutions are not what the policy asks for: \
             it cannot take these jobs, deadlines cannot all be met, or the solver gave up"
        )
    })
}

/// A warning that names jobs that can never run any more, with the reason they have.
fn stranded(state: &ClusterState, chosen: &Chosen) -> Option<String> {
    let left = match state.job_count() {
        0 => return None,
        1 => "1 job was left".to_owned(),
        left => format!("{left} jobs were left"),
    };
    let name = format!("{} {}", chosen.def.kind, chosen.short());
    let mut words =
        format!("warning: {}: {left} when nothing could happen any more:", name.trim_end());
    for job in state.jobs().take(STRANDED_SHOWN) {
        words += &format!("\n  job `{}`: {}", job.spec.name, reason(state, job));
    }
    Some(words)
}

/// Why a job does not run; another job that stands in its way is called by its name.
fn reason(state: &ClusterState, job: &Job) -> String {
    let words = job.reason.to_string();
    let (Reason::Behind { head: id } | Reason::WouldDelay { reserved: id }) = job.reason else {
        return words;
    };
    match state.job(id) {
        Some(other) => {
            words.replace(&format!("job {}", id.0), &format!("job `{}`", other.spec.name))
        }
        None => words,
    }
}

/// Opens a file that is not there yet, or any with `force`. What is no plain file (a pipe, a
/// terminal) has nothing to lose.
pub(super) fn create(path: &Path, force: bool) -> Result<File> {
    let name = path.display();
    let special = path.metadata().is_ok_and(|metadata| !metadata.is_file());
    let file = match force || special {
        true => File::create(path),
        false => File::create_new(path),
    };
    file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("`{name}` is there already; give `--force` to write over it")
        }
        _ => anyhow!(error).context(format!("cannot write `{name}`")),
    })
}

/// A log on its way to a file. The first failure is kept and told at the end.
struct LogFile {
    state: Arc<Mutex<LogState>>,
    name: String,
}

struct LogState {
    out: BufWriter<File>,
    failed: Option<std::io::Error>,
}

impl LogFile {
    fn create(path: &Path, force: bool) -> Result<LogFile> {
        let state = LogState { out: BufWriter::new(create(path, force)?), failed: None };
        Ok(LogFile { state: Arc::new(Mutex::new(state)), name: path.display().to_string() })
    }

    fn log(&self, chosen: &Chosen) -> Log {
        let state = Arc::clone(&self.state);
        let recorder = move |record: &Record| {
            let mut state = state.lock().expect("the writer does not panic");
            let LogState { out, failed } = &mut *state;
            if failed.is_none() {
                let written = serde_json::to_writer(&mut *out, record).map_err(Into::into);
                *failed = written.and_then(|()| out.write_all(b"\n")).err();
            }
        };
        Log { recorder: Box::new(recorder), policy: chosen.toml() }
    }

    fn finish(self) -> Result<()> {
        let mut state = self.state.lock().expect("the writer does not panic");
        let result = match state.failed.take() {
            Some(error) => Err(error),
            None => state.out.flush(),
        };
        result.with_context(|| format!("cannot write `{}`", self.name))
    }
}
