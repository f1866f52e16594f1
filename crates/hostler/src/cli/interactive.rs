//! The command line of what happens inside a job: run, attach, exec and forward.

use clap::Args;
use hostler_live::selection::Selection;

use super::submit::Submit;
use super::values;

/// Run a command as a job and be attached to it.
///
/// From a terminal the job gets one, too: keys go to the job, Ctrl-C among them, and Ctrl-] d
/// leaves it running. Otherwise its standard streams are joined to those of this command, as in
/// `echo hello | hostler run -- cat`. The exit code is that of the job. When this command is lost,
/// by a laptop that is closed for example, the job waits for `hostler attach` for ten minutes.
#[derive(Debug, Args)]
#[command(mut_args(|arg| {
    let of_submit = ["array", "wait", "print", "schema", "json"].contains(&arg.get_id().as_str());
    if of_submit { arg.hide(true) } else { arg }
}))]
#[command(after_help = "\
Examples:
  hostler run --gpus 1 -- bash
  hostler run --gpus 1 --max-time 4h --linger 2h -- bash
  hostler run --gpus 1 --port 8888 -- jupyter lab --no-browser --port 8888
  hostler run --gpus 1 -- python evaluate.py < questions.txt > answers.txt")]
pub struct Run {
    #[command(flatten)]
    pub submit: Submit,
    /// Time that the job goes on when this command is lost and nobody attaches; 10m when left out.
    #[arg(long, value_name = "TIME", value_parser = values::seconds, conflicts_with = "keep")]
    pub linger: Option<u64>,
    /// Let the job go on to its own end when this command is lost.
    #[arg(long)]
    pub keep: bool,
    /// Give the job pipes, although this is a terminal.
    #[arg(long)]
    pub no_terminal: bool,
    /// Port of this machine that leads to one of the job, as `hostler forward` does; may be given
    /// several times.
    #[arg(long, value_name = "[LOCAL:]PORT", value_parser = values::ports)]
    pub port: Vec<(u16, u16)>,
}

/// Come back to a job that was started by `hostler run`.
///
/// Shows its recent output and goes on as `hostler run` does. Several may be attached at a time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler attach 17")]
pub struct Attach {
    /// A job (17), or one of an array (12_3).
    #[arg(value_name = "JOB")]
    pub job: Selection,
}

/// Run a command inside a job that runs.
///
/// It has the user, the folder, the variables (CUDA_VISIBLE_DEVICES among them) and the limits of
/// the job, and ends with it at the latest. From a terminal it gets one, too. The exit code is that
/// of the command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler exec 17 -- nvidia-smi
  hostler exec 17 --rank 3 -- bash
  hostler exec 17 -- tar c . > folder.tar")]
pub struct Exec {
    /// A job (17), or one of an array (12_3).
    #[arg(value_name = "JOB")]
    pub job: Selection,
    /// Beside which task.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rank: u32,
    /// Give the command pipes, although this is a terminal.
    #[arg(long)]
    pub no_terminal: bool,
    /// Program and arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Lead ports of this machine to ports of a job, until Ctrl-C or the end of the job.
///
/// Only what processes of the job listen on is reached, on loopback of their node. Here, too, only
/// this machine can connect.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler forward 17 8888
  hostler forward 17 9000:8888 6006")]
pub struct Forward {
    /// A job (17), or one of an array (12_3).
    #[arg(value_name = "JOB")]
    pub job: Selection,
    /// Port of the job, behind that of this machine where they differ.
    #[arg(required = true, value_name = "[LOCAL:]PORT", value_parser = values::ports)]
    pub ports: Vec<(u16, u16)>,
    /// On whose node.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rank: u32,
}
