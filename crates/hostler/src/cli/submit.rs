//! The command line of `hostler submit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hostler_live::need::Need;

use super::array::Array;
use super::values;
use crate::submission::Export;

/// Submit a job.
///
/// The command is run without a shell. A script, which begins with `#!`, travels with the job:
/// nodes need not see its folder. Lines `#HOSTLER --gpus 2` in it say what the command line does
/// not, and the usual `#SBATCH` lines are understood. Flags come before what a file says.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  hostler submit --gpus 1 -- python train.py
  hostler submit --tasks 4 --gpus 8 --gpu-model H200 --max-time 12h -- python -m train
  hostler submit --gpus 0.5 --share willing --array 20 -- ./sweep.sh
  hostler submit --gpus 2 train.sh 0.01
  hostler submit job.yaml --priority 5 --wait
  hostler submit --gpus 2 --max-time 12h --print -- python train.py > job.toml
  hostler submit --array 1-100%8 -- ./one.sh
  hostler submit --after 17 --after over:18 -- ./evaluate.sh
  hostler submit --gpus 1 --image torch.sif --mount /data:ro -- python train.py")]
pub struct Submit {
    /// Script, or job file (YAML or JSON, or TOML by its ending).
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Arguments of a script; those that begin with `-` stand after `--`.
    #[arg(value_name = "ARGUMENT")]
    pub args: Vec<String>,
    /// For people.
    #[arg(long, value_parser = values::name)]
    pub name: Option<String>,
    /// GPUs of each task: a fraction below 1, or whole ones.
    #[arg(long, value_name = "N", value_parser = values::gpus, allow_negative_numbers = true)]
    pub gpus: Option<f64>,
    /// GPU memory of each task in MiB, or as in 16G; for fractions.
    #[arg(long, value_name = "MIB", value_parser = values::mebibytes)]
    #[arg(allow_negative_numbers = true)]
    pub gpu_mem: Option<u32>,
    /// GPU model that will do; may be given several times, best first.
    #[arg(long, value_name = "MODEL")]
    pub gpu_model: Vec<String>,
    /// CPU cores of each task; 1 when left out, 0 for no limit where there is a GPU.
    #[arg(long, value_name = "N", value_parser = values::cpus, allow_negative_numbers = true)]
    pub cpus: Option<f64>,
    /// Memory of each task in MiB, or as in 16G.
    #[arg(long, value_name = "MIB", value_parser = values::mebibytes)]
    #[arg(allow_negative_numbers = true)]
    pub mem: Option<u32>,
    /// Tasks that start together.
    #[arg(long, value_name = "N", value_parser = values::tasks, allow_negative_numbers = true)]
    pub tasks: Option<u32>,
    /// All tasks on one node.
    #[arg(long)]
    pub one_node: bool,
    /// One task on each of so many nodes.
    #[arg(long, value_name = "N", value_parser = values::tasks, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["tasks", "one_node"])]
    pub nodes: Option<u32>,
    /// Larger is more important.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// Time from now by which it should be done.
    #[arg(long, value_name = "TIME", value_parser = values::seconds)]
    pub deadline: Option<u64>,
    /// Time after which it is ended.
    #[arg(long, value_name = "TIME", value_parser = values::seconds)]
    pub max_time: Option<u64>,
    /// Time that it is expected to run.
    #[arg(long, value_name = "TIME", value_parser = values::seconds)]
    pub estimate: Option<u64>,
    /// Time between the signal to stop and the end by force.
    #[arg(long, value_name = "TIME", value_parser = values::grace)]
    pub grace: Option<u64>,
    /// Whether it shares GPUs.
    #[arg(long, value_enum, value_name = "HOW")]
    pub share: Option<Share>,
    /// It can be stopped and started again from HOSTLER_CHECKPOINT_DIR. A job that cannot is never
    /// stopped in favour of others, unless `hostler serve --lost-work-max` allows for its loss; it
    /// may be suspended on nodes that do so.
    #[arg(long)]
    pub checkpoints: bool,
    /// Never suspend it. Nodes with GPU driver 570 or newer can let a job with whole GPUs wait in
    /// main memory, without its help, and go on later where it was.
    #[arg(long)]
    pub no_suspend: bool,
    /// Jobs that do the same thing again: what one of them shows of its speed is believed of all.
    #[arg(long, value_parser = values::name)]
    pub group: Option<String>,
    /// The reservation that it runs in, while that lasts; `hostler reservation list` names them.
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub reservation: Option<String>,
    /// Jobs that must finish well before; behind `over:` those that must end anyhow, behind
    /// `failed:` those that must end badly, behind `started:` those that must begin. The number of
    /// an array means all of it. May be given several times.
    #[arg(long, value_name = "[KIND:]JOB")]
    pub after: Vec<Need>,
    /// Number of copies, told apart by HOSTLER_ARRAY_INDEX from 0 on; or its first and last value,
    /// with a step if need be. Behind `%` how many run at once at most.
    #[arg(long, value_name = "N|FIRST-LAST[:STEP][%MOST]", allow_hyphen_values = true)]
    pub array: Option<Array>,
    /// Variables of yours that go along: names, with a value or without, ALL or NONE. When left out
    /// PATH, the language and those of Python environments do with jobs that run as you, and none
    /// with others.
    #[arg(long, value_name = "NAME,..|ALL|NONE")]
    pub export: Option<Export>,
    /// A variable of its environment; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::variable)]
    pub env: Vec<(String, String)>,
    /// Folder to run in. When left out it is the current one for jobs that run as you, which is
    /// so where you have a Unix user and nodes take jobs of people, and else one of the job's own;
    /// `private` asks for that.
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// Image of a container to run it in: a name of a registry (`docker://NAME`), a SIF or squashfs
    /// file, an archive (behind `oci-archive:` or `docker-archive:`) or a folder that nodes have.
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// What is seen inside of the container besides the job's own folders; may be given several
    /// times.
    #[arg(long, value_name = "FROM[:TO[:ro]]")]
    pub mount: Vec<String>,
    /// Steps that it will do in all, when it reports progress.
    #[arg(long, value_name = "N", value_parser = values::steps, allow_negative_numbers = true)]
    pub steps: Option<u64>,
    /// How much of its model its largest tensor is, from 0 to 1, if known: the more, the more it
    /// loses on several nodes. For the placement rule `by-skew`.
    #[arg(long, value_name = "PART", value_parser = values::part, allow_negative_numbers = true)]
    pub skew: Option<f64>,
    /// Tell webhooks of the operator and `--mail-to` when it runs, is over, or failed; several with
    /// commas.
    #[arg(long, value_enum, value_name = "EVENT", value_delimiter = ',')]
    pub notify: Vec<Notify>,
    /// Address that is told by mail, where the operator has mail sent; of its end when `--notify`
    /// says nothing else.
    #[arg(long, value_name = "ADDRESS", value_parser = values::address)]
    pub mail_to: Option<String>,
    /// Tenant that pays; for admins.
    #[arg(long)]
    pub tenant: Option<String>,
    /// The same key gives the same jobs, however often it is sent.
    #[arg(long, value_name = "TEXT")]
    pub key: Option<String>,
    /// Wait for the end. The exit code is that of the job, and 1 where one does not finish well
    /// without a code; of an array that of the first job that did not.
    #[arg(long)]
    pub wait: bool,
    /// Print the whole job as a file (TOML) instead of submitting it.
    #[arg(long)]
    pub print: bool,
    /// Print the JSON Schema of job files, for editors.
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Program and arguments; more arguments of a script.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Of what to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Notify {
    /// It runs for the first time
    Start,
    /// It is over, well or badly
    End,
    /// It failed, ran out of time, or can never run
    Fail,
    /// All of these
    All,
    /// Nothing, whatever a file says
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Share {
    /// Its GPUs are its own
    Never,
    /// It may be packed with others
    Willing,
}
