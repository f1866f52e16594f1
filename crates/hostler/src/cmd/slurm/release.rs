//! `hostler slurm release`: the way out.

use anyhow::{Context, Result, anyhow};
use hostler_live::driver::slurm::caller::Commands;
use hostler_live::driver::slurm::calls::is_moved;
use hostler_live::driver::slurm::read::Stands;

use super::settings;
use crate::cli::SlurmRelease;
use crate::say::{print, say};

/// Puts the waiting room up, or down again.
pub async fn run(args: &SlurmRelease) -> Result<()> {
    let settings = settings(args.settings.slurm.as_deref())?;
    let commands = Commands::new(&settings);
    let room = settings.waiting_room.as_str();
    let state = if args.undo { "State=DOWN" } else { "State=UP" };
    let partition = format!("PartitionName={room}");
    let update = ["scontrol", "update", &partition, state];
    commands
        .text(&update)
        .await
        .map_err(|fault| anyhow!("{fault}"))
        .with_context(|| format!("`{}`", update.join(" ")))?;
    if args.undo {
        print(format_args!("partition `{room}` is down: its jobs wait for Hostler"))?;
        return Ok(());
    }
    let freed = let_go(&commands).await?;
    print(format_args!("partition `{room}` is up: Slurm starts its jobs by itself"))?;
    say(
        "a daemon that still runs goes on deciding: stop it; and for more than an hour without it \
         set `SchedulerType=sched/backfill` again",
    );
    if freed > 0 {
        print(format_args!(
            "{freed} jobs that had not begun may start in Slurm's own order again"
        ))?;
    }
    Ok(())
}

/// Takes the nodes and the places in the order back that were given to jobs which have not begun.
async fn let_go(commands: &Commands) -> Result<usize> {
    let jobs = commands.jobs().await.map_err(|fault| anyhow!(fault.words()))?;
    let mut freed = 0;
    for job in jobs.iter().filter(|job| job.stands == Stands::Waits && is_moved(job)) {
        let name = format!("jobid={}", job.name_there);
        // It may have begun in this very moment.
        let nodes = commands.text(&["scontrol", "update", &name, "ReqNodeList="]).await;
        let order = commands.text(&["scontrol", "release", &job.name_there]).await;
        freed += usize::from(nodes.is_ok() && order.is_ok());
    }
    Ok(freed)
}
