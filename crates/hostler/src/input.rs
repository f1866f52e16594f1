//! Reading what is simulated: trace, cluster and scenario, or the embedded example.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hostler_core::policy::PolicyError;
use hostler_core::predict::EstimateSource;
use hostler_core::units::Span;
use hostler_predict::{Lesson, ModelFile};
use hostler_sim::history;
use hostler_sim::lower::{Gaps, Workload};
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::{self, Cluster, ReadOptions, Severity, Throughputs, Trace};

use crate::cli::Input;
use crate::say::say;
use crate::settings::Chosen;
use crate::{example, progress};

/// Faults of a trace that are shown before the rest is only counted.
const FAULTS_SHOWN: usize = 20;
/// Workloads without speeds that are named.
const NAMES_SHOWN: usize = 3;

/// What is simulated, and its size in words.
pub struct Loaded {
    /// The workload.
    pub workload: Workload,
    /// `4,000 jobs, 190 machines, 674 GPUs, load 1.10`.
    pub words: String,
    site: Site,
}

/// Everything but the jobs.
struct Site {
    cluster: Cluster,
    /// In the order in which they apply.
    scenarios: Vec<(PathBuf, Scenario)>,
    table: Option<Throughputs>,
    model: Option<ModelFile>,
}

impl Site {
    fn workload(&self, trace: Trace) -> Result<Workload> {
        let mut workload = Workload::with_throughputs(trace, &self.cluster, self.table.as_ref())?;
        for (path, scenario) in &self.scenarios {
            scenario.apply(&mut workload).with_context(|| format!("`{}`", path.display()))?;
        }
        if let Some(model) = &self.model {
            workload.estimates.trained = Some(model.bind(&history::names(&workload)));
        }
        Ok(workload)
    }
}

impl Loaded {
    /// The load that the jobs offer as they are submitted.
    pub fn load(&self) -> f64 {
        self.load_of(&self.workload)
    }

    /// Mean time between failures of a machine, where they come by chance.
    pub fn time_between_failures(&self) -> Option<Span> {
        self.site.scenarios.last().and_then(|(_, last)| last.time_between_failures())
    }

    /// The jobs behind the first ones alone, as they were submitted or so that a load is offered.
    pub fn behind(&self, first: usize, load: Option<f64>) -> Result<Workload> {
        let mut trace = self.workload.trace().clone();
        // Rows of tasks that belong to nobody are passed over.
        trace.jobs.drain(..first);
        if let Some(load) = load {
            trace::rescale(&mut trace, &self.site.cluster, load)?;
        }
        self.site.workload(trace)
    }

    /// The load that jobs offer to this cluster.
    pub fn load_of(&self, workload: &Workload) -> f64 {
        trace::runnable_load(workload.trace(), &self.site.cluster).max()
    }

    /// The same jobs, submitted so that this load is offered.
    pub fn at_load(&self, load: f64) -> Result<Workload> {
        // Run times that follow from steps are in these tables already.
        let mut trace = self.workload.trace().clone();
        trace::rescale(&mut trace, &self.site.cluster, load)?;
        self.site.workload(trace)
    }
}

/// Reads the input.
pub fn load(input: &Input) -> Result<Loaded> {
    let mut trace = match &input.trace {
        Some(folder) => read_trace(folder)?,
        None => example::trace()?,
    };
    if input.any_gpu {
        trace.drop_gpu_models();
    }
    let cluster = match (&input.cluster, &input.trace) {
        (Some(path), _) => trace::read_cluster(path)?,
        (None, None) => example::cluster(),
        (None, Some(folder)) => own_cluster(&trace, folder)?,
    };
    let scenario = input.scenario.as_deref().map(read_scenario).transpose()?;
    let table = throughputs(input, scenario.as_ref())?;
    let model = input.estimates.as_deref().map(read_model).transpose()?;
    let own = input.is_example().then(|| (PathBuf::from("example"), example::scenario()));
    // A scenario says all that a trace does not: nothing of the example's own is left then.
    let chosen = input.scenario.clone().zip(scenario).or(own);
    let mut scenarios: Vec<(PathBuf, Scenario)> = chosen.into_iter().collect();
    if let Some(pairs) = input.pairs {
        // The last one says what policies know.
        let (path, last) =
            scenarios.pop().unwrap_or_else(|| ("--pairs".into(), Scenario::default()));
        scenarios.push((path, last.with_pairs(pairs.into())));
    }
    let site = Site { cluster, scenarios, table, model };
    let workload = site.workload(trace)?;
    warn_of_gangs(workload.jobs_without_gang());
    if site.table.is_some() {
        warn_of_gaps(&workload.gaps);
    }
    if site.scenarios.last().is_some_and(|(_, last)| last.estimates_pairs()) {
        warn_of_lone_speeds(&workload);
    }
    let words = words(workload.trace(), &site.cluster);
    Ok(Loaded { workload, words, site })
}

/// The jobs of a trace as lessons for predictors, in order of their end.
pub fn lessons(folder: &Path) -> Result<Vec<Lesson>> {
    let trace = read_trace(folder)?;
    let cluster = own_cluster(&trace, folder)?;
    let site = Site { cluster, scenarios: Vec::new(), table: None, model: None };
    let workload = site.workload(trace)?;
    Ok(history::lessons(&workload))
}

/// Reads a trained model.
pub fn read_model(path: &Path) -> Result<ModelFile> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    ModelFile::parse(&text).with_context(|| format!("`{}`", path.display()))
}

fn read_scenario(path: &Path) -> Result<Scenario> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    Scenario::parse(&text).with_context(|| format!("`{}`", path.display()))
}

/// The throughput table of the command line, or else of the scenario.
fn throughputs(input: &Input, scenario: Option<&Scenario>) -> Result<Option<Throughputs>> {
    let named = scenario.and_then(Scenario::throughputs);
    let folder = input.scenario.as_deref().and_then(Path::parent);
    let beside = named.map(|path| folder.map_or(path.to_owned(), |folder| folder.join(path)));
    let path = input.throughputs.clone().or(beside);
    Ok(path.map(|path| trace::read_throughputs(&path)).transpose()?)
}

/// What the throughput table does not say is taken as neutral; that may surprise.
fn warn_of_gaps(gaps: &Gaps) {
    if gaps.unused {
        return say("warning: no job names a workload of the throughput table in `model`");
    }
    if gaps.jobs > 0 {
        let shown: Vec<String> =
            gaps.workloads.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
        let more = if gaps.workloads.len() > NAMES_SHOWN { ", .." } else { "" };
        say(format_args!(
            "warning: {} jobs name a workload that the throughput table lacks ({}{more}); they \
             run at one speed on every GPU",
            gaps.jobs,
            shown.join(", "),
        ));
    }
    for model in &gaps.gpu_models {
        say(format_args!(
            "warning: the throughput table lacks GPU model `{model}`; it counts as fast as the \
             fastest"
        ));
    }
}

/// Pairs are estimated from pairs.
fn warn_of_lone_speeds(workload: &Workload) {
    let mut profiles = workload.site.physics.profiles.values();
    if profiles.all(|profile| profile.measured.pairs().is_empty()) {
        say("warning: no pair of workloads was measured, so that none can be estimated");
    }
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
            let kind = chosen.def.kind.to_string();
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
    let load = trace::runnable_load(trace, cluster).max();
    let count = |number: u64| hostler_sim::report::format::grouped(number as f64, 0);
    // A little load is not none.
    let decimals = if load > 0.0 && load < 0.01 { 4 } else { 2 };
    format!(
        "{} jobs, {} machines, {} GPUs, load {load:.decimals$}",
        count(trace.jobs.len() as u64),
        count(capacity.nodes),
        count(capacity.gpus),
    )
}
