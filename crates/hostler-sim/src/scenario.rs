//! Scenarios: what a trace does not tell. Speeds, costs of saving, failures, wrong estimates.
//!
//! ```toml
//! throughputs = "speeds.csv" # steps per second by workload and GPU model
//!
//! [checkpoint]             # for every job
//! save_secs = 30
//! load_secs = 60
//! every_secs = 600         # saves by itself after so much work, which takes save_secs each time
//!
//! [suspend]                # jobs leave their GPUs for the memory of their nodes, and come back
//! fixed_secs = 0.2         # these are what it takes when the table is empty
//! out_secs_per_gib = 0.6
//! back_secs_per_gib = 0.22
//!
//! [physics]
//! start_delay_secs = 5
//!
//! [[profile]]              # jobs whose tasks.csv says model = "resnet50"; "*" is all others
//! model = "resnet50"
//! gpus = { V100 = 1.0, T4 = 0.4 }
//! cluster = 0.85           # slower over several racks; also `rack`, `node`
//! shared = 0.8             # slower beside another job on the same GPU
//!
//! [profiles]               # what policies know of speeds
//! source = "table"         # the truth; or "observed": nothing, until jobs have run
//! pairs = "measured"       # pairs of the table; or "estimated": the others, too
//! hidden = 0.5             # part of the pairs in the table that is kept from policies
//! seed = 1
//!
//! [sharing]                # several jobs on one GPU, where the trace tells their real use
//! capacity = 0.95
//! interference = 0.12
//! spill = 0.5
//!
//! [[fault]]
//! kind = "node-down"       # also "start-fails" and "report"
//! node = "v100-0001"
//! at_secs = 3600
//! for_secs = 7200
//!
//! [[window]]               # nodes that are kept for people who work on them
//! nodes = ["v100-0001"]
//! from_secs = 86400
//! for_secs = 7200
//! evicts = true            # stops who is still there; otherwise they end by themselves
//!
//! [failures]               # by chance, on every node
//! mtbf_hours = 1000
//! repair_hours = 4
//! seed = 1
//!
//! [estimates]              # what policies are told of run times, spoilt on purpose
//! scale = 1.0              # factor on every estimate
//! noise = 0.5              # deviation of the logarithm of a factor that differs by job
//! shuffle = 0.1            # chance that a job gets the estimate of an earlier one
//! seed = 1
//! ```

mod beliefs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hostler_core::id::{Features, JobId, ModelId, NodeId, ProfileKey};
use hostler_core::job::Checkpoint;
use hostler_core::limits::{START_TIMEOUT, WINDOWS_MAX};
use hostler_core::profile::{Profile, Reach};
use hostler_core::suspend::SuspendCost;
use hostler_core::units::{Rate, Span, Time};
use hostler_core::window::Window;
use hostler_predict::Distortion;
use serde::Deserialize;

use beliefs::Beliefs;
pub use beliefs::PairSource;

use crate::lower::Workload;
use crate::physics::SharingLaw;
use crate::trace::random::Random;
use crate::world::{InjectedFault, Report, ReportFault};

/// Failures by chance that one scenario may bring.
const FAILURES_MAX: usize = 1_000_000;

const TOO_MANY_FAILURES: &str =
    "this brings more than 1000000 failures over the trace; give a longer time";

/// What a trace does not tell.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    throughputs: Option<PathBuf>,
    checkpoint: CheckpointCost,
    suspend: Option<Suspension>,
    physics: Delays,
    profile: Vec<Speed>,
    profiles: Beliefs,
    fault: Vec<Wrong>,
    window: Vec<Upkeep>,
    failures: Option<Failures>,
    estimates: Spoilt,
    sharing: Shared,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Suspension {
    fixed_secs: Option<f64>,
    out_secs_per_gib: Option<f64>,
    back_secs_per_gib: Option<f64>,
}

impl Suspension {
    /// Every machine with GPUs can, and policies know what it takes.
    fn apply(&self, workload: &mut Workload) -> Result<(), ScenarioError> {
        let or = |key, secs: Option<f64>, usual| secs.map_or(Ok(usual), |secs| span(key, secs));
        let usual = SuspendCost::default();
        let cost = SuspendCost {
            fixed: or("fixed_secs", self.fixed_secs, usual.fixed)?,
            out_per_gib: or("out_secs_per_gib", self.out_secs_per_gib, usual.out_per_gib)?,
            back_per_gib: or("back_secs_per_gib", self.back_secs_per_gib, usual.back_per_gib)?,
        };
        workload.site.physics.suspend = cost;
        workload.site.abilities.suspend = Some(cost);
        let site = &mut workload.site;
        let nodes = site.nodes.iter_mut().filter(|node| node.gpus > 0);
        let features = nodes.map(|node| &mut node.features);
        for features in features.chain(site.moves.iter_mut().map(|node| &mut node.features)) {
            *features = features.with(Features::SUSPENDS);
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CheckpointCost {
    save_secs: f64,
    load_secs: f64,
    every_secs: f64,
    never: bool,
    lost_max_secs: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Delays {
    start_delay_secs: f64,
    wake_delay_secs: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Speed {
    model: String,
    #[serde(default)]
    gpus: BTreeMap<String, f64>,
    node: Option<f64>,
    rack: Option<f64>,
    cluster: Option<f64>,
    shared: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
enum Wrong {
    NodeDown { node: String, at_secs: f64, for_secs: Option<f64> },
    StartFails { job: String, times: u32 },
    Report { job: String, of: ReportName, how: HowName, secs: Option<f64>, times: Option<u32> },
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Upkeep {
    nodes: Vec<String>,
    from_secs: f64,
    for_secs: f64,
    #[serde(default)]
    evicts: bool,
}

impl Upkeep {
    fn window(&self, workload: &Workload) -> Result<Window, ScenarioError> {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for name in &self.nodes {
            let known = workload.site.nodes.iter().position(|node| *node.name == **name);
            nodes.push(NodeId(known.ok_or_else(|| unknown("node", name))? as u32));
        }
        nodes.sort_unstable();
        nodes.dedup();
        let from = Time(span("from_secs", self.from_secs)?.0);
        let lasts = span("for_secs", self.for_secs)?.max(Span(1));
        Ok(Window { nodes: nodes.into(), from, until: from + lasts, evicts: self.evicts })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReportName {
    Start,
    Stop,
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum HowName {
    Late,
    Twice,
    Never,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failures {
    mtbf_hours: f64,
    repair_hours: f64,
    #[serde(default)]
    seed: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Spoilt {
    scale: f64,
    noise: f64,
    shuffle: f64,
    seed: u64,
}

impl Default for Spoilt {
    fn default() -> Spoilt {
        let Distortion { scale, noise, shuffle, seed } = Distortion::default();
        Spoilt { scale, noise, shuffle, seed }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Shared {
    capacity: f64,
    interference: f64,
    spill: f64,
}

impl Default for Shared {
    fn default() -> Shared {
        let SharingLaw { capacity, interference, spill } = SharingLaw::default();
        Shared { capacity, interference, spill }
    }
}

impl Shared {
    fn law(&self) -> Result<SharingLaw, ScenarioError> {
        let wanted = "a part from 0 to 1";
        let interference = between("interference", self.interference, 1.0, wanted)?;
        let spill = between("spill", self.spill, 1.0, wanted)?;
        let wanted = "a part above 0 and up to 1";
        let capacity = between("capacity", self.capacity, 1.0, wanted)?;
        if capacity == 0.0 {
            let value = capacity.to_string();
            return Err(ScenarioError::Number { key: "capacity", value, wanted });
        }
        Ok(SharingLaw { capacity, interference, spill })
    }
}

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The text is no scenario.
    #[error("{0}")]
    Syntax(String),
    /// A number makes no sense.
    #[error("`{key}`: {value}; {wanted}")]
    Number {
        /// Where.
        key: &'static str,
        /// The number.
        value: String,
        /// What would do.
        wanted: &'static str,
    },
    /// A table has too many pairs to estimate those that are missing.
    #[error("the throughput table has too many pairs to estimate: {entries}; at most {max}")]
    TooManyPairs {
        /// Pairs of its workloads on all GPU models, measured or not.
        entries: usize,
        /// The limit.
        max: usize,
    },
    /// A name that the cluster or the trace does not have.
    #[error("no {what} `{name}`")]
    Unknown {
        /// `node`, `job` or `GPU model`.
        what: &'static str,
        /// The name.
        name: String,
    },
}

impl Scenario {
    /// Reads a scenario; unknown keys are errors.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
            let message = error.message().replace('\n', " ");
            ScenarioError::Syntax(format!("line {line}: {message}"))
        })
    }

    /// The throughput table that it names, in its folder unless the path is absolute.
    pub fn throughputs(&self) -> Option<&Path> {
        self.throughputs.as_deref()
    }

    /// Mean time between failures of a machine, where they come by chance.
    pub fn time_between_failures(&self) -> Option<Span> {
        let failures = self.failures.as_ref()?;
        span("mtbf_hours", failures.mtbf_hours * 3600.0).ok()
    }

    /// The same with other pairs known than it says.
    pub fn with_pairs(mut self, pairs: PairSource) -> Scenario {
        self.profiles.pairs = pairs;
        self
    }

    /// Whether pairs that nobody measured are estimated.
    pub fn estimates_pairs(&self) -> bool {
        self.profiles.pairs == PairSource::Estimated
    }

    /// Makes the scenario part of a workload.
    pub fn apply(&self, workload: &mut Workload) -> Result<(), ScenarioError> {
        workload.checkpoint = Checkpoint {
            save: span("save_secs", self.checkpoint.save_secs)?,
            load: span("load_secs", self.checkpoint.load_secs)?,
            every: span("every_secs", self.checkpoint.every_secs)?,
            never: self.checkpoint.never,
            no_suspend: false,
        };
        if let Some(suspend) = &self.suspend {
            suspend.apply(workload)?;
        }
        let lost_max = self.checkpoint.lost_max_secs;
        workload.site.abilities.lost_work_max =
            lost_max.map(|secs| span("lost_max_secs", secs)).transpose()?;
        workload.site.physics.start_delay = start_delay(self.physics.start_delay_secs)?;
        workload.site.physics.wake_delay = span("wake_delay_secs", self.physics.wake_delay_secs)?;
        // Those of a throughput table come first.
        let first = workload.site.physics.profiles.keys().last().map_or(0, |key| key.0 + 1);
        for (at, speed) in self.profile.iter().enumerate() {
            let key = ProfileKey(first + at as u32);
            let profile = speed.profile(workload)?;
            workload.site.physics.profiles.insert(key, profile);
            workload.assign_profile(&speed.model, key);
        }
        for wrong in &self.fault {
            let fault = wrong.fault(workload)?;
            workload.site.faults.push(fault);
        }
        if self.window.len() > WINDOWS_MAX {
            let value = self.window.len().to_string();
            let wanted = "at most 256 windows";
            return Err(ScenarioError::Number { key: "window", value, wanted });
        }
        for upkeep in &self.window {
            let window = upkeep.window(workload)?;
            workload.site.windows.push(window);
        }
        self.profiles.apply(workload)?;
        workload.estimates.distortion = self.estimates.distortion()?;
        workload.site.physics.sharing = self.sharing.law()?;
        self.failures.as_ref().map_or(Ok(()), |failures| failures.apply(workload))
    }
}

impl Speed {
    fn profile(&self, workload: &Workload) -> Result<Profile, ScenarioError> {
        let mut profile = Profile::default();
        for (name, factor) in &self.gpus {
            let model = workload.site.models.iter().position(|model| *model.name == **name);
            let model = model.ok_or_else(|| unknown("GPU model", name))?;
            profile.models.push((ModelId(model as u32), rate("gpus", *factor)?));
        }
        let reaches = [
            (Reach::Node, "node", self.node),
            (Reach::Rack, "rack", self.rack),
            (Reach::Cluster, "cluster", self.cluster),
        ];
        for (reach, key, factor) in reaches {
            if let Some(factor) = factor {
                profile.reach.push((reach, rate(key, factor)?));
            }
        }
        profile.shared = self.shared.map(|factor| rate("shared", factor)).transpose()?;
        Ok(profile)
    }
}

impl Wrong {
    fn fault(&self, workload: &Workload) -> Result<InjectedFault, ScenarioError> {
        let job = |name: &str| {
            let trace = workload.trace();
            let named = |row: &crate::trace::JobRow| trace.text.get(row.job_id) == name;
            let at = trace.jobs.iter().position(named).ok_or_else(|| unknown("job", name))?;
            Ok::<JobId, ScenarioError>(JobId(at as u32))
        };
        Ok(match self {
            Wrong::NodeDown { node, at_secs, for_secs } => {
                let named = workload.site.nodes.iter().position(|known| *known.name == **node);
                let node = NodeId(named.ok_or_else(|| unknown("node", node))? as u32);
                let at = Time(span("at_secs", *at_secs)?.0);
                let lasts = for_secs.map(|secs| span("for_secs", secs)).transpose()?;
                InjectedFault::NodeDown { node, at, lasts }
            }
            Wrong::StartFails { job: name, times } => {
                InjectedFault::StartFails { job: job(name)?, times: *times }
            }
            Wrong::Report { job: name, of, how, secs, times } => {
                let of = match of {
                    ReportName::Start => Report::Start,
                    ReportName::Stop => Report::Stop,
                    ReportName::Finish => Report::Finish,
                };
                let by = span("secs", secs.unwrap_or(60.0))?;
                let astray = match how {
                    HowName::Late => ReportFault::Late(by),
                    HowName::Twice => ReportFault::Twice(by),
                    HowName::Never => ReportFault::Never,
                };
                InjectedFault::Report { job: job(name)?, of, astray, times: times.unwrap_or(1) }
            }
        })
    }
}

impl Spoilt {
    fn distortion(&self) -> Result<Distortion, ScenarioError> {
        let Spoilt { scale, noise, shuffle, seed } = *self;
        let scale = positive("scale", scale)?;
        let noise = between("noise", noise, NOISE_MAX, "a number from 0 to 10")?;
        let shuffle = between("shuffle", shuffle, 1.0, "a chance from 0 to 1")?;
        Ok(Distortion { scale, noise, shuffle, seed })
    }
}

impl Failures {
    /// Draws failures of every node until a while after the last submission.
    fn apply(&self, workload: &mut Workload) -> Result<(), ScenarioError> {
        let mtbf = positive("mtbf_hours", self.mtbf_hours)? * 3600.0;
        let repair = positive("repair_hours", self.repair_hours)? * 3600.0;
        let last = workload.trace().jobs.last().map_or(0, |job| job.submit_ms) as f64 / 1000.0;
        let horizon = (last * 2.0 + 86_400.0).min(SECS_MAX);
        let mut random = Random::new(self.seed);
        for node in 0..workload.site.nodes.len() as u32 {
            let mut at = 0.0;
            loop {
                at += random.exponential() * mtbf;
                if at > horizon {
                    break;
                }
                if workload.site.faults.len() >= FAILURES_MAX {
                    return Err(self.too_many());
                }
                let lasts = (random.exponential() * repair).min(SECS_MAX);
                workload.site.faults.push(InjectedFault::NodeDown {
                    node: NodeId(node),
                    at: Time(span("mtbf_hours", at)?.0),
                    lasts: Some(span("repair_hours", lasts)?),
                });
                at += lasts;
            }
        }
        Ok(())
    }

    fn too_many(&self) -> ScenarioError {
        let (key, value) = ("mtbf_hours", self.mtbf_hours.to_string());
        ScenarioError::Number { key, value, wanted: TOO_MANY_FAILURES }
    }
}

fn unknown(what: &'static str, name: &str) -> ScenarioError {
    ScenarioError::Unknown { what, name: name.to_owned() }
}

/// Ten years: longer than any trace.
const SECS_MAX: f64 = 3.2e8;

fn span(key: &'static str, secs: f64) -> Result<Span, ScenarioError> {
    let wanted = "a number of seconds from 0 to ten years";
    let sane = secs.is_finite() && (0.0..=SECS_MAX).contains(&secs);
    let error = ScenarioError::Number { key, value: secs.to_string(), wanted };
    if sane { Ok(Span((secs * 1e6).round() as u64)) } else { Err(error) }
}

/// A start that takes longer than the scheduler waits for it never succeeds.
fn start_delay(secs: f64) -> Result<Span, ScenarioError> {
    let key = "start_delay_secs";
    let delay = span(key, secs)?;
    let wanted = "at most 1800: a start without an answer for longer is given up";
    let error = ScenarioError::Number { key, value: secs.to_string(), wanted };
    if delay <= START_TIMEOUT { Ok(delay) } else { Err(error) }
}

/// Factors of a millionth and a million are then as usual as not.
const NOISE_MAX: f64 = 10.0;

fn between(
    key: &'static str,
    value: f64,
    most: f64,
    wanted: &'static str,
) -> Result<f64, ScenarioError> {
    let error = ScenarioError::Number { key, value: value.to_string(), wanted };
    if (0.0..=most).contains(&value) { Ok(value) } else { Err(error) }
}

fn positive(key: &'static str, value: f64) -> Result<f64, ScenarioError> {
    let wanted = "a number above 0 and up to a million";
    let sane = value.is_finite() && value > 0.0 && value <= 1e6;
    let error = ScenarioError::Number { key, value: value.to_string(), wanted };
    if sane { Ok(value) } else { Err(error) }
}

fn rate(key: &'static str, factor: f64) -> Result<Rate, ScenarioError> {
    let wanted = "a factor above 0 and up to 1000";
    let sane = factor.is_finite() && factor > 0.0 && factor <= 1000.0;
    let error = ScenarioError::Number { key, value: factor.to_string(), wanted };
    if sane { Ok(Rate(((factor * 1e6).round() as u32).max(1))) } else { Err(error) }
}
