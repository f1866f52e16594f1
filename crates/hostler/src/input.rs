//! Reading what is simulated: trace, cluster and scenario, or the embedded example.

use std::path::Path;

use anyhow::{Context, Result, bail};
use hostler_core::policy::PolicyError;
use hostler_core::predict::EstimateSource;
use hostler_predict::ModelFile;
use hostler_sim::history;
use hostler_sim::lower::Workload;
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::{self, Cluster, ReadOptions, Severity, Trace};

use crate::cli::Input;
use crate::say::say;
use crate::settings::Chosen;
use crate::{example, progress};

/// Faults of a trace that are shown before the rest is only counted.
const FAULTS_SHOWN: usize = 20;

/// What is simulated, and its size in words.
pub struct Loaded {
    /// The workload.
    pub workload: Workload,
    /// `4,000 jobs, 190 machines, 674 GPUs, load 1.10`.
    pub words: String,
}

/// Reads the input.
pub fn load(input: &Input) -> Result<Loaded> {
    let trace = match &input.trace {
        Some(folder) => read_trace(folder)?,
        None => example::trace()?,
    };
    let cluster = match (&input.cluster, &input.trace) {
        (Some(path), _) => trace::read_cluster(path)?,
        (None, None) => example::cluster(),
        (None, Some(folder)) => own_cluster(&trace, folder)?,
    };
    let words = words(&trace, &cluster);
    let mut workload = Workload::new(trace, &cluster)?;
    warn_of_gangs(workload.jobs_without_gang());
    if let Some(path) = &input.scenario {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let scenario = Scenario::parse(&text).with_context(|| format!("`{}`", path.display()))?;
        scenario.apply(&mut workload).with_context(|| format!("`{}`", path.display()))?;
    }
    if let Some(path) = &input.estimates {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let model = ModelFile::parse(&text).with_context(|| format!("`{}`", path.display()))?;
        workload.estimates.trained = Some(model.bind(&history::names(&workload)));
    }
    Ok(Loaded { workload, words })
}

/// A trace may ask for less than a simulation does.
fn warn_of_gangs(jobs: usize) {
    let (say_so, them) = if jobs == 1 { ("job says", "its") } else { ("jobs say", "their") };
    if jobs > 0 {
        say(format_args!(
            "warning: {jobs} {say_so} `gang` = 0; {them} tasks start together all the same"
        ));
    }
}

/// Refuses policies that go by a trained model when there is none, and tells when one is given for
/// nothing.
pub fn check_estimates<'a>(
    chosen: impl IntoIterator<Item = &'a Chosen>,
    input: &Input,
) -> Result<()> {
    let mut asked =
        chosen.into_iter().filter(|chosen| chosen.build().estimates() == EstimateSource::Trained);
    match (asked.next(), &input.estimates) {
        (Some(chosen), None) => {
            let kind = chosen.def.kind.to_owned();
            let fault = "`estimate` is \"trained\" and there is no model; give `--estimates FILE`";
            Err(PolicyError::Settings { kind, fault: fault.to_owned() }.into())
        }
        (None, Some(path)) => {
            let path = path.display();
            say(format_args!(
                "warning: no policy goes by `{path}`; `estimate=trained` makes one do so"
            ));
            Ok(())
        }
        (Some(_), Some(_)) | (None, None) => Ok(()),
    }
}

/// Reads and checks a folder of native tables.
pub fn read_trace(folder: &Path) -> Result<Trace> {
    let bar = progress::bytes("reading");
    let mut advance = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let options = ReadOptions { skip_instances: true, progress: Some(&mut advance) };
    let trace = trace::read(folder, options)?;
    bar.finish_and_clear();
    let findings = trace::check(&trace);
    let errors: Vec<_> =
        findings.iter().filter(|finding| finding.severity() == Severity::Error).collect();
    if !errors.is_empty() {
        for finding in errors.iter().take(FAULTS_SHOWN) {
            say(finding);
        }
        let count = errors.len();
        bail!("{count} faults in `{}`; `hostler trace check` lists them all", folder.display());
    }
    Ok(trace)
}

fn own_cluster(trace: &Trace, folder: &Path) -> Result<Cluster> {
    if trace.nodes.is_empty() {
        bail!("no nodes.csv in `{}`; name the machines with `--cluster FILE`", folder.display());
    }
    Ok(trace.cluster(&folder.display().to_string()))
}

fn words(trace: &Trace, cluster: &Cluster) -> String {
    let capacity = cluster.capacity();
    let load = trace::load(trace, &cluster.nodes).max();
    let count = |number: u64| hostler_sim::report::format::grouped(number as f64, 0);
    format!(
        "{} jobs, {} machines, {} GPUs, load {load:.2}",
        count(trace.jobs.len() as u64),
        count(capacity.nodes),
        count(capacity.gpus),
    )
}
