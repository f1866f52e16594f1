//! The past of a partition under other policies: what Slurm's accounts list, simulated.
//!
//! Jobs count from when Slurm would have let them start: what came before (dependencies, holds,
//! `--begin`) no scheduler could have changed. Jobs whose run time is not known are left out, and
//! counted.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use hostler_core::metrics::{Metrics, Summary, percentile};
use hostler_core::predict::EstimateSource;
use hostler_core::registry::Registry;
use hostler_live::driver::SlurmSettings;
use hostler_live::driver::slurm::caller::Commands;
use hostler_live::driver::slurm::read::SlurmNode;
use hostler_sim::lower::Workload;
use hostler_sim::report::data::Format;
use hostler_sim::report::format;
use hostler_sim::trace::convert::import;
use hostler_sim::trace::import::importer;
use hostler_sim::trace::{
    Cluster, Compression, ConvertOptions, JobRow, NodeRow, OptU32, Status, TaskRow, Trace, write,
};
use serde::Serialize;

use crate::cmd::simulated;
use crate::settings::Chosen;

/// Seconds that Slurm may take to list the past.
const ACCOUNTS_SECS: u64 = 600;

/// What is asked of the accounts, besides numbers, states and times of submission.
const FIELDS: &str = "NNodes,Start,End,ElapsedRaw,TimelimitRaw,JobName,\
                      User,Account,Partition,QOS,ReqTRES,AllocTRES,NodeList,Constraints,WorkDir";

/// Between fields: names of jobs may hold a bar.
const SEPARATOR: &str = "\u{1f}";

/// What is asked about the past.
pub struct Asked<'a> {
    /// How many days of it.
    pub days: u32,
    pub partition: &'a str,
    pub nodes: &'a [SlurmNode],
    pub policies: &'a [String],
    /// Where the trace is kept.
    pub save: Option<&'a Path>,
}

/// The past as it was and as it would have been.
#[derive(Serialize)]
pub struct Past {
    days: u32,
    jobs: usize,
    gpus: u64,
    /// Jobs that are left out, by reason.
    left_out: BTreeMap<String, u64>,
    /// The first is what was.
    runs: Vec<Run>,
}

/// What became of the jobs.
#[derive(Serialize)]
struct Run {
    policy: String,
    mean_wait_secs: f64,
    p50_wait_secs: f64,
    p90_wait_secs: f64,
    mean_completion_secs: f64,
    /// GPU time over that of the cluster, from the first job to the end of the last.
    gpu_utilisation: f64,
    finished: u64,
}

/// Asks the accounts and plays the jobs again, under each of the policies.
pub async fn look(
    asked: &Asked<'_>,
    settings: &SlurmSettings,
    counts_memory: bool,
    registry: &Registry,
) -> Result<Past> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let dump = folder.path().join("sacct.txt");
    std::fs::write(&dump, accounts(asked, settings).await?)
        .with_context(|| format!("cannot write `{}`", dump.display()))?;
    let options = ConvertOptions { runnable: true, ..ConvertOptions::default() };
    let read = import(importer(Some("sacct"), &dump)?, &dump, &options, &mut |_, _| {});
    let (mut trace, mut report) = read.context("`sacct`")?;
    let never = without_those_that_never_ran(&mut trace);
    if never > 0 {
        report.dropped.insert("cancelled before it began".to_owned(), never);
    }
    if trace.jobs.is_empty() {
        bail!("the accounts have no job of partition `{}` that ran in this time", asked.partition);
    }
    let cluster = machines(&mut trace, asked.nodes, asked.partition, counts_memory)?;
    if let Some(folder) = asked.save {
        write(&trace, folder, Compression::default())?;
    }
    let gpus = cluster.capacity().gpus;
    let mut runs = vec![as_it_was(&trace, gpus)];
    let (jobs, mut left_out) = (trace.jobs.len(), report.dropped);
    // Rows that go with their jobs are no jobs.
    left_out.retain(|why, _| why != "task of a dropped job");
    let workload = Workload::new(trace, &cluster)?;
    for text in asked.policies {
        let chosen = by_time_limits(Chosen::parse(registry, text)?);
        let finished = simulated(&chosen, &workload, Metrics::default(), None)?;
        runs.push(Run::of(text.clone(), &finished.watch.summary(&finished.state)));
    }
    Ok(Past { days: asked.days, jobs, gpus, left_out, runs })
}

/// What the accounts list of the partition, under the header that the importer knows.
async fn accounts(asked: &Asked<'_>, settings: &SlurmSettings) -> Result<String> {
    let commands = Commands::new(&SlurmSettings { call_secs: ACCOUNTS_SECS, ..settings.clone() });
    let (since, separator) =
        (format!("now-{}days", asked.days), format!("--delimiter={SEPARATOR}"));
    // Where Hostler decides already, a start sets anew since when the job may.
    let room = &settings.waiting_room;
    let decides = asked.nodes.iter().any(|node| node.partitions.contains(room));
    let since_when = if decides { "Submit" } else { "Eligible" };
    let fields = format!("JobIDRaw,State,{since_when},{FIELDS}");
    let words = ["sacct", "-a", "-X", "-P", "-S", &since, "-E", "now", "-r", asked.partition];
    let words = [&words[..], &[&separator, "-o", &fields]].concat();
    let listed = commands.text_dated(&words).await;
    let listed = listed.map_err(|fault| anyhow!("{fault}")).context(
        "`sacct`: the past is known by Slurm's accounts alone; without `--days` they are not asked",
    )?;
    Ok(listed.replacen("Eligible", "Submit", 1))
}

/// What was cancelled while it waited has a start and an end in the accounts, and no nodes.
fn without_those_that_never_ran(trace: &mut Trace) -> u64 {
    let ran = |task: &TaskRow| task.duration_ms.get() != Some(0) || !task.placement.is_empty();
    let never = |job: &&JobRow| {
        job.status_in_trace == Status::Cancelled && !trace.tasks_of(job).iter().any(ran)
    };
    let gone: HashSet<_> = trace.jobs.iter().filter(never).map(|job| job.job_id).collect();
    trace.jobs.retain(|job| !gone.contains(&job.job_id));
    trace.tasks.retain(|task| !gone.contains(&task.job_id));
    trace.arrange();
    gone.len() as u64
}

/// Puts the machines of the partition into the trace, as they are today.
fn machines(
    trace: &mut Trace,
    nodes: &[SlurmNode],
    partition: &str,
    counts_memory: bool,
) -> Result<Cluster> {
    let mine = nodes.iter().filter(|node| node.partitions.iter().any(|name| name == partition));
    for node in mine.filter(|node| node.gpus.is_ok()) {
        let gpus = node.gpus.as_ref().map_or(0, |gpus| gpus.count);
        let mem = u32::try_from(node.mem).ok().filter(|_| counts_memory);
        trace.nodes.push(NodeRow {
            node_id: trace.text.intern(&node.name)?,
            gpu_model: trace.text.intern(node.gpu_model().unwrap_or_default())?,
            gpu_count: gpus,
            cpu_milli: OptU32::from(node.cpus.checked_mul(1000)),
            mem_mib: OptU32::from(mem),
            ..NodeRow::default()
        });
    }
    if trace.nodes.is_empty() {
        bail!("no node of partition `{partition}` can be simulated; name another: --partition");
    }
    Ok(trace.cluster(partition))
}

/// Policies go by the limits that users gave, as they would on this cluster from its first day.
fn by_time_limits(chosen: Chosen) -> Chosen {
    match chosen.build().estimates() {
        EstimateSource::Oracle => chosen.estimating("user"),
        _ => chosen,
    }
}

/// What the accounts say of the same jobs.
fn as_it_was(trace: &Trace, gpus: u64) -> Run {
    let mut jobs = Vec::new();
    let (mut work, mut last) = (0.0, 0);
    for job in &trace.jobs {
        let Some(TaskRow { start_ms, duration_ms, .. }) = trace.tasks_of(job).first() else {
            continue;
        };
        let Some((start, run)) = start_ms.get().zip(duration_ms.get()) else { continue };
        let gpu_milli = |task: &TaskRow| u64::from(task.gpu_milli.or(0)) * u64::from(task.count);
        let milli: u64 = trace.tasks_of(job).iter().map(gpu_milli).sum();
        work += milli as f64 / 1e3 * run as f64;
        last = last.max(start + run);
        jobs.push((start.saturating_sub(job.submit_ms), run));
    }
    jobs.sort_unstable();
    let waits: Vec<u64> = jobs.iter().map(|(wait, _)| *wait).collect();
    let mean = |of: fn(&(u64, u64)) -> u64| {
        jobs.iter().map(of).sum::<u64>() as f64 / 1e3 / jobs.len().max(1) as f64
    };
    let wait = |percent| percentile(&waits, percent).unwrap_or_default() as f64 / 1e3;
    let first = trace.jobs.iter().map(|job| job.submit_ms).min().unwrap_or_default();
    let all = gpus as f64 * last.saturating_sub(first) as f64;
    Run {
        policy: "as it was".to_owned(),
        mean_wait_secs: mean(|(wait, _)| *wait),
        p50_wait_secs: wait(50),
        p90_wait_secs: wait(90),
        mean_completion_secs: mean(|(wait, run)| wait + run),
        gpu_utilisation: if all > 0.0 { work / all } else { 0.0 },
        finished: jobs.len() as u64,
    }
}

impl Run {
    fn of(policy: String, summary: &Summary) -> Run {
        Run {
            policy,
            mean_wait_secs: summary.avg_wait_s,
            p50_wait_secs: summary.p50_wait_s,
            p90_wait_secs: summary.p90_wait_s,
            mean_completion_secs: summary.avg_jct_s,
            gpu_utilisation: summary.gpu_utilisation,
            finished: summary.jobs_done,
        }
    }
}

/// A column: its head, how wide it is, how its values are written, and which they are.
type Column = (&'static str, usize, Format, fn(&Run) -> f64);

const COLUMNS: [Column; 6] = [
    ("MEAN WAIT", 10, Format::Duration, |run| run.mean_wait_secs),
    ("HALF UNDER", 11, Format::Duration, |run| run.p50_wait_secs),
    ("9 IN 10 UNDER", 14, Format::Duration, |run| run.p90_wait_secs),
    ("COMPLETION", 11, Format::Duration, |run| run.mean_completion_secs),
    ("GPUS USED", 10, Format::Percent, |run| run.gpu_utilisation),
    ("FINISHED", 9, Format::Count, |run| run.finished as f64),
];

impl Past {
    /// As a table, a line each.
    pub fn lines(&self) -> Vec<String> {
        let time = if self.days == 1 { "day".to_owned() } else { format!("{} days", self.days) };
        let mut lines = vec![format!(
            "the last {time}: {} jobs that ran, on the {} GPUs of today; policies go by time limits",
            self.jobs, self.gpus
        )];
        let mut rows = vec![format!("{:<24}", "POLICY")];
        rows.extend(self.runs.iter().map(|run| format!("{:<24}", run.policy)));
        for (head, width, format, value) in COLUMNS {
            let values: Vec<Option<f64>> = self.runs.iter().map(|run| Some(value(run))).collect();
            let column = format::column(&values, format);
            let cells = std::iter::once(head.to_owned()).chain(column);
            rows.iter_mut().zip(cells).for_each(|(row, cell)| *row += &format!(" {cell:>width$}"));
        }
        lines.extend(rows);
        lines.extend(self.left_out.iter().map(|(why, count)| format!("left out: {count}: {why}")));
        lines
    }
}
