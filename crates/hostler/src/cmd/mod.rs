//! One file per command.

mod agent;
mod analyze;
mod backup;
mod change;
mod compare;
mod completions;
mod doctor;
mod explain;
pub mod interact;
mod interval;
mod job_user;
mod loads;
mod log;
mod login;
pub mod logs;
mod nodes;
mod parity;
mod parity_blox;
mod parity_gavel;
mod parity_tiresias;
mod policies;
mod policy;
mod predict;
mod predict_order;
mod progress;
mod queue;
mod rehearse;
mod rejected;
mod replay;
mod reservation;
mod serve;
pub mod shim;
mod show;
mod simulate;
mod slurm;
mod store;
pub mod submit;
mod tenant;
mod token;
mod top;
mod trace;
mod usage;
mod user;

use anyhow::{Context, Result};
use hostler_core::registry::Registry;
use hostler_core::watch::Watch;
use hostler_live::job::JobAction;
use hostler_sim::lower::Workload;
use hostler_sim::run::{self, Finished, Log};
pub use simulate::RunJson;

use crate::cli::{Cli, Command, LiveCommand};
use crate::settings::Chosen;

/// Runs a workload under a policy. One that breaks a rule of the cluster ends the run.
fn simulated<Watcher: Watch>(
    chosen: &Chosen,
    workload: &Workload,
    watch: Watcher,
    log: Option<Log>,
) -> Result<Finished<Watcher>> {
    let finished = run::simulate(workload, chosen.build(), watch, log);
    finished.with_context(|| format!("policy `{}` breaks a rule of the cluster", chosen.def.kind))
}

/// Runs the command; policies are those of the registry.
pub fn execute(cli: Cli, registry: Registry) -> Result<()> {
    match cli.command {
        Command::Compare(args) => compare::run(&args, &registry),
        Command::Simulate(args) => simulate::run(&args, &registry),
        Command::Analyze(args) => analyze::run(&args),
        Command::Policies(args) => policies::run(&args, &registry),
        Command::Trace(args) => trace::run(&args.command),
        Command::Predict(args) => predict::run(&args.command, &registry),
        Command::Replay(args) => replay::run(&args, registry),
        Command::Rehearse(args) => rehearse::run(&args, registry),
        Command::Parity(args) => parity::run(&args.command),
        Command::Live(command) => live(&command, registry),
        Command::Agent(args) => agent::run(&args),
        Command::Progress(args) => progress::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}

fn live(command: &LiveCommand, registry: Registry) -> Result<()> {
    match command {
        LiveCommand::Serve(args) => serve::run(args, registry),
        LiveCommand::Login(args) => login::run(args),
        LiveCommand::Submit(args) => submit::run(args),
        LiveCommand::Run(args) => interact::run(args),
        LiveCommand::Attach(args) => interact::attach(args),
        LiveCommand::Exec(args) => interact::exec::run(args),
        LiveCommand::Forward(args) => interact::forward::run(args),
        LiveCommand::Queue(args) => queue::run(args),
        LiveCommand::Show(args) => show::run(args),
        LiveCommand::Explain(args) => explain::run(args),
        LiveCommand::Logs(args) => logs::run(args),
        LiveCommand::Cancel(args) => change::run(&args.jobs, JobAction::Cancel),
        LiveCommand::Hold(args) => change::run(&args.jobs, JobAction::Hold),
        LiveCommand::Release(args) => change::run(&args.jobs, JobAction::Release),
        LiveCommand::Top(args) => top::run(args),
        LiveCommand::Nodes(args) => nodes::run(args),
        LiveCommand::Drain(args) => nodes::drain(args),
        LiveCommand::Undrain(args) => nodes::set(&args.node, "undrain", &()),
        LiveCommand::Reservation(args) => reservation::run(&args.command),
        LiveCommand::History(args) => queue::history(args),
        LiveCommand::Usage(args) => usage::run(args),
        LiveCommand::Log(args) => log::run(&args.command),
        LiveCommand::Policy(args) => policy::run(&args.command, &registry),
        LiveCommand::Tenant(args) => tenant::run(&args.command),
        LiveCommand::Token(args) => token::run(&args.command),
        LiveCommand::User(args) => user::run(&args.command),
        LiveCommand::Store(args) => store::run(&args.command),
        LiveCommand::Slurm(args) => slurm::run(&args.command, &registry),
        LiveCommand::Backup(args) => backup::run(args),
        LiveCommand::Restore(args) => backup::restore(args),
        LiveCommand::Doctor(args) => doctor::run(args),
    }
}
