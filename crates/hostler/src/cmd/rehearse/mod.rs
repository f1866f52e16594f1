//! `hostler rehearse`: the same jobs on a real daemon and in the simulator.
//!
//! `plan` makes the jobs, `real` runs them, `story` is what both runs are judged by: the same fold
//! over the same kind of log.

mod plan;
mod real;
mod story;

use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Result, bail};
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::executor;
use hostler_core::job::JobSpec;
use hostler_core::record::Record;
use hostler_core::registry::Registry;
use hostler_core::replay::{Replay, ReplayError};
use hostler_core::units::{Mib, Milli, Span, Time};
use hostler_sim::physics::SharingLaw;
use hostler_sim::run;
use hostler_sim::world::{Listed, Site, Truth, Use, World};
use serde::Serialize;

use crate::cli::Rehearse;
use crate::live::print_json;
use crate::settings::Chosen;
use plan::{Planned, RehearsalPlan};
use story::{Figures, Story};

/// Differences of the start order that are named.
const DIFFERENCES_SHOWN: usize = 5;

/// What came of it, as `--json` prints it.
#[derive(Serialize)]
struct RehearsalOutcome {
    policy: String,
    settings: String,
    jobs: usize,
    nodes: u32,
    gpus: u32,
    load: f64,
    speedup: f64,
    live: Figures,
    simulated: Figures,
    avg_jct_difference_percent: f64,
    same_start_order: bool,
    /// Places of the start order at which another job stands.
    order_differences: usize,
    first_differences: Vec<Difference>,
    /// Time that a stay took beyond the job's own run time.
    overhead_median_ms: f64,
    overhead_worst_ms: f64,
    /// `ok` when the policy, asked again at every step of the daemon's log, said the same.
    replay_check: String,
}

#[derive(Serialize)]
struct Difference {
    place: usize,
    live: u32,
    simulated: u32,
}

/// Runs the jobs both ways and prints what came of it.
pub fn run(args: &Rehearse, registry: Registry) -> Result<()> {
    let chosen = Chosen::new(&registry, &args.policy, args.set.iter().map(String::as_str))?;
    let plan = RehearsalPlan::new(args)?;
    let records = real::run(args, registry.clone(), &chosen, &plan)?;
    let live = folded(&chosen, &records);
    if live.ended.len() != plan.jobs.len() {
        bail!("{} of {} jobs ended well", live.ended.len(), plan.jobs.len());
    }
    let simulated = simulated(args, &chosen, &plan, &records)?;
    let mismatch = asked_again(registry, &chosen, &records).err();
    let mut outcome = judged(args, &chosen, &plan, &live, &simulated);
    outcome.replay_check = mismatch.as_ref().map_or("ok".to_owned(), ToString::to_string);
    if args.json { print_json(&outcome) } else { print(&outcome) }?;
    match mismatch {
        Some(mismatch) => bail!("the daemon's log cannot be replayed: {mismatch}"),
        None => Ok(()),
    }
}

/// Asks the policy again at every step of the daemon's log.
fn asked_again(registry: Registry, chosen: &Chosen, records: &[Record]) -> Result<(), ReplayError> {
    let build = move |settings: &str| {
        registry.from_toml(settings).expect("the daemon checked its policies")
    };
    let engine = Engine::new(chosen.build(), ()).with_builder(Box::new(build));
    let mut replay = Replay::new(engine, true);
    records.iter().try_for_each(|record| replay.feed(record))
}

/// What the log of the daemon tells.
fn folded(chosen: &Chosen, records: &[Record]) -> Story {
    let mut engine = Engine::new(chosen.build(), Story::default());
    records.iter().for_each(|record| engine.fold(record));
    engine.into_parts().1
}

/// The same jobs on the same nodes, as the daemon knew them, at the times of the plan.
fn simulated(
    args: &Rehearse,
    chosen: &Chosen,
    plan: &RehearsalPlan,
    records: &[Record],
) -> Result<Story> {
    let mut site = Site::default();
    // Those who sleep on one GPU do not slow each other down.
    site.physics.sharing = SharingLaw { capacity: 1.0, interference: 0.0, spill: 0.0 };
    let mut specs: Vec<Arc<JobSpec>> = Vec::new();
    let inputs = records.iter().filter_map(|record| match record {
        Record::Input { events, .. } => Some(events),
        Record::Output { .. } => None,
    });
    for event in inputs.flatten() {
        match event {
            Event::AbilitiesChanged { abilities } => site.abilities = *abilities,
            Event::ModelAdded { spec, .. } => site.models.push(spec.clone()),
            Event::TenantAdded { spec, .. } => site.tenants.push(spec.clone()),
            Event::NodeUp { node, spec } if node.index() == site.nodes.len() => {
                site.nodes.push(spec.clone());
            }
            Event::Submitted { spec, .. } => specs.push(Arc::clone(spec)),
            _ => {}
        }
    }
    let at = |millis: u64| Time::ZERO + Span::from_millis(millis);
    let jobs = plan.jobs.iter().zip(specs).map(|(job, spec)| (at(job.at_ms), spec)).collect();
    let used = |job: &Planned| Use {
        gpu: Milli(job.use_milli),
        mem: Mib(job.mem_mib(args.fake_gpus.mem_mib)),
    };
    let truth = Truth::new(plan.jobs.iter().map(|job| Span::from_millis(job.run_ms)));
    let truth = truth.with_uses(plan.jobs.iter().map(used));
    let policy = chosen.build();
    let predict = run::predictor(policy.estimates(), &truth);
    let mut engine = Engine::new(policy, Story::default()).with_predictor(predict);
    let mut world = World::new(site, Listed::new(jobs), truth);
    executor::run(&mut world, &mut engine)?;
    Ok(engine.into_parts().1)
}

fn judged(
    args: &Rehearse,
    chosen: &Chosen,
    plan: &RehearsalPlan,
    live: &Story,
    simulated: &Story,
) -> RehearsalOutcome {
    let pairs = live.order().zip(simulated.order()).enumerate();
    let mut differences: Vec<Difference> = pairs
        .filter(|(_, (live, simulated))| live != simulated)
        .map(|(place, (live, simulated))| Difference { place: place + 1, live, simulated })
        .collect();
    let missing = live.starts.len().abs_diff(simulated.starts.len());
    let order_differences = differences.len() + missing;
    differences.truncate(DIFFERENCES_SHOWN);
    let overheads = live.overheads(plan);
    let (live, simulated) = (live.figures(), simulated.figures());
    RehearsalOutcome {
        policy: chosen.def.kind.to_string(),
        settings: chosen.short(),
        jobs: plan.jobs.len(),
        nodes: args.nodes,
        gpus: args.nodes * args.fake_gpus.count,
        load: args.load,
        speedup: plan.speedup,
        avg_jct_difference_percent: (live.avg_jct_s / simulated.avg_jct_s - 1.0) * 100.0,
        live,
        simulated,
        same_start_order: order_differences == 0,
        order_differences,
        first_differences: differences,
        overhead_median_ms: overheads.get(overheads.len() / 2).copied().unwrap_or(0.0),
        overhead_worst_ms: overheads.last().copied().unwrap_or(0.0),
        replay_check: String::new(),
    }
}

fn print(outcome: &RehearsalOutcome) -> Result<()> {
    let RehearsalOutcome { live, simulated, .. } = outcome;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} {}: {} jobs of 1 to 20 s on {} nodes with {} GPUs, load {:.2}, run times divided by {:.0}",
        outcome.policy,
        outcome.settings,
        outcome.jobs,
        outcome.nodes,
        outcome.gpus,
        outcome.load,
        outcome.speedup,
    )?;
    let row = |name: &str, live: f64, simulated: f64| {
        let difference = (live / simulated.max(1e-3) - 1.0) * 100.0;
        format!("{name:10} {live:8.3} s {simulated:8.3} s {difference:+7.2} %")
    };
    writeln!(out, "{:10} {:>10} {:>10} {:>9}", "", "live", "simulated", "live")?;
    writeln!(out, "{}", row("avg jct", live.avg_jct_s, simulated.avg_jct_s))?;
    writeln!(out, "{}", row("avg wait", live.avg_wait_s, simulated.avg_wait_s))?;
    writeln!(out, "{}", row("makespan", live.makespan_s, simulated.makespan_s))?;
    writeln!(
        out,
        "a stay took {:.0} ms longer than its job runs (median; worst {:.0} ms)",
        outcome.overhead_median_ms, outcome.overhead_worst_ms,
    )?;
    writeln!(out, "the policy asked again with the daemon's log: {}", outcome.replay_check)?;
    if outcome.same_start_order {
        writeln!(out, "start order: the same, {} starts", live.starts)?;
        return Ok(());
    }
    writeln!(
        out,
        "start order: differs at {} of {} places",
        outcome.order_differences, live.starts
    )?;
    for Difference { place, live, simulated } in &outcome.first_differences {
        writeln!(out, "  start {place}: job {live} live, job {simulated} simulated")?;
    }
    Ok(())
}
