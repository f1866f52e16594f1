//! `hostler slurm whatif`: when jobs of a real queue would start under which policy. Reads only.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::id::JobId;
use hostler_core::job::Job;
use hostler_core::placement::Lease;
use hostler_core::registry::Registry;
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};
use hostler_core::watch::Watch;
use hostler_live::driver::SlurmSettings;
use hostler_live::driver::slurm::caller::{Commands, counts_memory};
use hostler_live::driver::slurm::glance::{Glance, glance};
use hostler_live::driver::slurm::read::{SlurmJob, SlurmNode, Stands};
use hostler_live::job::{JobState, JobView};
use hostler_sim::physics::Physics;
use hostler_sim::run;
use hostler_sim::world::{Listed, Truth, World};
use serde_json::json;

use super::past::{self, Past};
use super::settings;
use crate::cli::SlurmWhatif;
use crate::say::{print, say};
use crate::settings::Chosen;

/// What jobs are taken to run that have no time limit.
const UNLIMITED: Span = Span::from_secs(24 * 3600);

/// Rows that are shown of a long queue.
const ROWS: usize = 50;

/// When jobs began, by number.
#[derive(Default)]
struct Starts(BTreeMap<JobId, Time>);

impl Watch for Starts {
    fn began(&mut self, at: Time, _: &ClusterState, job: &Job, _: &Lease) {
        self.0.entry(job.id).or_insert(at);
    }
}

/// Looks at the queue once and plays on from there.
pub async fn run(args: &SlurmWhatif, registry: &Registry) -> Result<()> {
    let plain = settings(args.settings.slurm.as_deref())?;
    let commands = Commands::new(&plain);
    let fault = |fault: String| anyhow!("{fault}");
    let config = commands.text(&["scontrol", "show", "config"]).await;
    let memory = config.as_deref().is_ok_and(counts_memory);
    let nodes = commands.nodes().await.map_err(|told| fault(told.words()))?;
    let jobs = commands.jobs().await.map_err(|told| fault(told.words()))?;
    let partition = match &args.partition {
        Some(name) => name.clone(),
        None => busiest_partition(&nodes, &jobs).context("`sinfo` lists no nodes")?,
    };
    let jobs = in_room(jobs, &partition);
    let past = match args.days {
        Some(days) => {
            let (policies, save) = (&args.policies[..], args.save.as_deref());
            let asked = past::Asked { days, partition: &partition, nodes: &nodes, policies, save };
            Some(past::look(&asked, &plain, memory, registry).await?)
        }
        None => None,
    };
    let settings = SlurmSettings {
        waiting_room: partition.clone(),
        partition: partition.clone(),
        comments: false,
        ..plain
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_secs(since.as_secs());
    let seen = glance(settings, memory, &nodes, &jobs, now)?;
    let left_out = LeftOut::of(&nodes, &partition);
    if seen.nodes == 0 {
        let why = left_out.words().map_or(String::new(), |words| format!(": {words}"));
        bail!(
            "no node of partition `{partition}` can be simulated{why}; name another: --partition"
        );
    }
    let mut starts = Vec::new();
    for text in &args.policies {
        let chosen = Chosen::parse(registry, text)?;
        starts.push((text.clone(), played_on(&seen, &chosen)?));
    }
    show(args, &partition, (&seen, &left_out), &starts, past.as_ref())
}

/// Nodes of a partition of which it cannot be told what they have.
struct LeftOut {
    count: usize,
    all: usize,
    /// What is wrong with the first.
    fault: String,
}

impl LeftOut {
    fn of(nodes: &[SlurmNode], partition: &str) -> LeftOut {
        let is_mine = |node: &&SlurmNode| node.partitions.iter().any(|name| name == partition);
        let mine: Vec<&SlurmNode> = nodes.iter().filter(is_mine).collect();
        let mut faults = mine.iter().filter_map(|node| node.gpus.as_ref().err());
        let fault = faults.next().cloned();
        let count = faults.count() + usize::from(fault.is_some());
        LeftOut { count, all: mine.len(), fault: fault.unwrap_or_default() }
    }

    fn words(&self) -> Option<String> {
        let LeftOut { count, all, fault } = self;
        (*count > 0).then(|| format!("{count} of {all} nodes are left out: {fault}"))
    }
}

/// The partition with the most jobs, and of those with as many the one with the most nodes.
fn busiest_partition(nodes: &[SlurmNode], jobs: &[SlurmJob]) -> Option<String> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for name in nodes.iter().flat_map(|node| &node.partitions) {
        counts.entry(name).or_default().1 += 1;
    }
    let live = jobs.iter().filter(|job| !matches!(job.stands, Stands::Over(_)));
    for name in live.flat_map(|job| job.partition.split(',')) {
        if let Some((jobs, _)) = counts.get_mut(name) {
            *jobs += 1;
        }
    }
    let busiest = counts.into_iter().max_by_key(|(_, counts)| *counts);
    busiest.map(|(name, _)| name.to_owned())
}

/// Jobs that may go to several partitions wait in this one, too.
fn in_room(mut jobs: Vec<SlurmJob>, partition: &str) -> Vec<SlurmJob> {
    for job in &mut jobs {
        if job.stands == Stands::Waits && job.partition.split(',').any(|name| name == partition) {
            partition.clone_into(&mut job.partition);
        }
    }
    jobs
}

/// Seconds from now to the starts of jobs, by number.
type StartsIn = BTreeMap<JobId, f64>;

/// Goes on from what was seen under a policy; when jobs begin that wait now.
fn played_on(seen: &Glance, chosen: &Chosen) -> Result<StartsIn> {
    let policy = chosen.build();
    let runs = seen.jobs.iter().map(|job| {
        let secs = job.request.estimate_secs.map(Span::from_secs);
        (JobId(job.id), secs.unwrap_or(UNLIMITED))
    });
    let truth = Truth::of(runs.collect::<Vec<_>>());
    let predict = run::predictor(policy.estimates(), &truth);
    let mut engine = Engine::new(policy, Starts::default()).with_predictor(predict);
    engine.restore(seen.state.clone());
    engine.ask_at_once();
    // A look takes some seconds of its own.
    let begin = engine.state().now();
    let first = engine.state().next_job();
    let later = Listed::new(Vec::new()).numbered_from(first);
    let mut world = World::from_state(engine.state(), Physics::default(), later, truth);
    let kind = &chosen.def.kind;
    executor::run(&mut world, &mut engine)
        .with_context(|| format!("policy `{kind}` breaks a rule of the cluster"))?;
    let starts = engine.into_parts().1.0;
    Ok(starts.into_iter().map(|(job, at)| (job, at.since(begin).secs_f64())).collect())
}

fn show(
    args: &SlurmWhatif,
    partition: &str,
    (seen, left_out): (&Glance, &LeftOut),
    starts: &[(String, StartsIn)],
    past: Option<&Past>,
) -> Result<()> {
    let waiting: Vec<&JobView> = seen
        .jobs
        .iter()
        .filter(|job| matches!(job.state, JobState::Queued | JobState::Held))
        .collect();
    let secs = |starts: &StartsIn, job: &JobView| starts.get(&JobId(job.id)).copied();
    if args.json {
        let rows: Vec<_> = waiting
            .iter()
            .map(|job| {
                let by: BTreeMap<&str, Option<f64>> = starts
                    .iter()
                    .map(|(name, starts)| (name.as_str(), secs(starts, job)))
                    .collect();
                json!({ "job": job.engine_id, "name": job.name, "starts_in_secs": by,
                        "reason": job.reason })
            })
            .collect();
        let mut page = json!({ "partition": partition, "jobs": rows,
                               "nodes_left_out": left_out.count });
        if let Some(past) = past {
            page["past"] = json!(past);
        }
        return Ok(print(format_args!("{page}"))?);
    }
    if let Some(words) = left_out.words() {
        say(words);
    }
    let running = seen.jobs.len() - waiting.len();
    print(format_args!(
        "partition `{partition}`: {running} jobs run, {} wait; each is taken to run as long as its \
         time limit says",
        waiting.len()
    ))?;
    let mut line = format!("{:<12} {:<16} {:<10} {:>5}", "JOB", "NAME", "USER", "GPUS");
    starts.iter().for_each(|(name, _)| line += &format!(" {name:>16}"));
    print(format_args!("{line}"))?;
    for job in waiting.iter().take(ROWS) {
        let name = job.engine_id.as_deref().unwrap_or_default();
        let short = |text: &str, most| text.chars().take(most).collect::<String>();
        let gpus = job.request.gpus * f64::from(job.request.tasks);
        let (of, user) = (short(&job.name, 16), short(&job.user, 10));
        let mut line = format!("{name:<12} {of:<16} {user:<10} {gpus:>5}");
        for (_, starts) in starts {
            let at = secs(starts, job).map_or_else(|| "held".to_owned(), in_words);
            line += &format!(" {at:>16}");
        }
        print(format_args!("{line}"))?;
    }
    let mut mean = format!("{:<12} {:<16} {:<10} {:>5}", "mean wait", "", "", "");
    for (_, starts) in starts {
        let begun: Vec<f64> = waiting.iter().filter_map(|job| secs(starts, job)).collect();
        let sum: f64 = begun.iter().sum();
        let words =
            if begun.is_empty() { "-".to_owned() } else { in_words(sum / begun.len() as f64) };
        mean += &format!(" {words:>16}");
    }
    print(format_args!("{mean}"))?;
    if waiting.len() > ROWS {
        say(format_args!("{} more wait; --json has all of them", waiting.len() - ROWS));
    }
    let Some(past) = past else { return Ok(()) };
    print(format_args!(""))?;
    for line in past.lines() {
        print(format_args!("{line}"))?;
    }
    if let Some(folder) = &args.save {
        say(format_args!("kept: hostler compare --trace {} goes on from there", folder.display()));
    }
    Ok(())
}

fn in_words(secs: f64) -> String {
    match secs {
        secs if secs < 1.0 => "now".to_owned(),
        secs if secs < 120.0 => format!("{secs:.0} s"),
        secs if secs < 7200.0 => format!("{:.0} min", secs / 60.0),
        secs if secs < 172_800.0 => format!("{:.1} h", secs / 3600.0),
        secs => format!("{:.1} d", secs / 86_400.0),
    }
}
