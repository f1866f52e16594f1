//! The command line of the live scheduler: the daemon, and everything that talks to it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hostler_live::agent::gpus::FakeGpus;
use hostler_live::selection::Selection;

use super::images::ImageOptions;
use super::interactive::{Attach, Exec, Forward, Run};
use super::notices::NoticeOptions;
use super::reservation::ReservationArgs;
use super::slurm::{EngineKind, SlurmArgs};
use super::store::{Backup, Restore, StoreArgs};
use super::submit::Submit;
use super::usage::UsageArgs;
use super::user::{Standing, UserArgs};
use super::values;

/// The longest time that agents are waited for, in seconds: a year.
const SECS_MAX: u64 = 366 * 24 * 3600;

#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    Serve(Serve),
    Login(Login),
    Submit(Submit),
    Run(Run),
    Attach(Attach),
    Exec(Exec),
    Forward(Forward),
    Queue(Queue),
    Show(Show),
    Explain(Explain),
    Logs(Logs),
    Cancel(Cancel),
    Hold(Hold),
    Release(Release),
    Top(Top),
    Nodes(Nodes),
    Drain(Drain),
    Undrain(Undrain),
    Reservation(ReservationArgs),
    History(History),
    Usage(UsageArgs),
    Log(LogArgs),
    Policy(PolicyArgs),
    Tenant(TenantArgs),
    Token(TokenArgs),
    User(UserArgs),
    Store(StoreArgs),
    Slurm(SlurmArgs),
    Backup(Backup),
    Restore(Restore),
    Doctor(Doctor),
}

/// Run the scheduler: keeps the queue, decides, tells agents.
///
/// Everything is kept in the data folder, or in PostgreSQL; the daemon may be killed at any time
/// and goes on where it was. The first start keeps an admin token in the file `admin-token` there
/// and prints the `hostler login` line for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler serve --with-agent
  hostler serve --listen 0.0.0.0:7717 --cert server.pem --key server.key
  hostler serve --engine slurm --slurm slurm.toml
  hostler serve --store postgres://hostler@db/hostler --log-format json")]
pub struct Serve {
    /// Folder for the store, the certificate and the jobs of an agent in this process.
    #[arg(long, value_name = "DIR", default_value = "hostler-data")]
    pub data: PathBuf,
    /// What runs the jobs: agents of Hostler, or a cluster manager that is there already.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineKind::Agents)]
    pub engine: EngineKind,
    /// How Slurm is driven (TOML; `docs/slurm.md` has the keys), with `--engine slurm`.
    #[arg(long, value_name = "FILE")]
    pub slurm: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717")]
    pub listen: SocketAddr,
    /// Socket for users of this machine, who need no token there: `hostler user add` says what they
    /// may do. The file `hostler.sock` in the data folder when left out; `none` for no socket.
    #[arg(long, value_name = "PATH|none")]
    pub socket: Option<PathBuf>,
    /// Tenant of users of this machine of whom `hostler user add` said nothing; made if it is not
    /// there. They are refused when left out.
    #[arg(long, value_name = "TENANT", value_parser = values::name)]
    pub local_tenant: Option<String>,
    /// Keep everything in a PostgreSQL database instead of the data folder.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Begin anew where the store of the data folder lost its data: what is left of it is moved
    /// aside. Does nothing to a store that is sound.
    #[arg(long)]
    pub new_store: bool,
    /// Seconds between two snapshots of the store in the data folder, one of which is also taken
    /// at a stop; 0 for none.
    #[arg(long, value_name = "SECS", default_value_t = 3600)]
    pub snapshot_secs: u64,
    /// Policy of a new store, with settings or as a file (TOML); later ones come by
    /// `hostler policy set`.
    #[arg(long, value_name = "KIND[:KEY=VALUE..]|FILE")]
    pub policy: Option<String>,
    /// Policy that takes over from one that breaks a rule of the cluster; that of a new store when
    /// left out.
    #[arg(long, value_name = "KIND[:KEY=VALUE..]|FILE")]
    pub fallback: Option<String>,
    /// Work that a job without `--checkpoints` may lose in all by being stopped in favour of
    /// others; each of its stays is then at least twice as long as all that it lost before. Such
    /// jobs are never stopped for others when left out.
    #[arg(long, value_name = "TIME", value_parser = values::seconds)]
    pub lost_work_max: Option<u64>,
    /// Recorded trace whose jobs predictors learn from, besides those that finish here: for
    /// policies with `estimate=median`, `cart` or `blend`. May be given several times, oldest
    /// first.
    #[arg(long, value_name = "FOLDER")]
    pub history: Vec<PathBuf>,
    /// Model of `hostler predict train`, for policies with `estimate=trained`.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Certificate chain (PEM); one is made and kept when left out.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Speak HTTP without TLS; on loopback only.
    #[arg(long, conflicts_with = "cert")]
    pub plain: bool,
    /// Run an agent in this process, too.
    #[arg(long)]
    pub with_agent: bool,
    /// Take jobs of all tenants although they can read the daemon's secrets.
    ///
    /// The jobs of an agent in the daemon's process run under the daemon's account, unless that is
    /// root. Without this only those of the tenant `default` are taken then.
    #[arg(long, requires = "with_agent")]
    pub trust_tenants: bool,
    /// GPUs that the agent pretends to have.
    #[arg(long, value_name = "NxMODEL", requires = "with_agent")]
    pub fake_gpus: Option<FakeGpus>,
    /// Where other nodes reach this one, for gangs; found out by default.
    #[arg(long, value_name = "ADDRESS", requires = "with_agent")]
    pub address: Option<String>,
    /// Folder for checkpoints that all nodes share; one of this node by default.
    #[arg(long, value_name = "DIR", requires = "with_agent")]
    pub checkpoints: Option<PathBuf>,
    #[command(flatten)]
    pub users: JobUserOptions,
    #[command(flatten)]
    pub images: ImageOptions,
    /// Requests a second that each token may make.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: u32,
    /// Seconds without an answered beat after which an agent ends its jobs.
    #[arg(long, value_name = "SECS", default_value_t = 900)]
    #[arg(value_parser = clap::value_parser!(u64).range(5..=SECS_MAX))]
    pub fence_secs: u64,
    /// Seconds without a beat after which a node is given up; a minute more than the fence by
    /// default.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(..=SECS_MAX))]
    pub dead_secs: Option<u64>,
    #[command(flatten)]
    pub notices: NoticeOptions,
    #[command(flatten)]
    pub log: LogOptions,
}

/// Who jobs run as.
#[derive(Debug, Default, Args)]
pub struct JobUserOptions {
    /// User that all jobs run as, or UID:GID; `nobody` when the agent is root. `person` for the
    /// Unix user of whoever submitted the job, with that user's groups, home, shell and limits.
    #[arg(long, value_name = "USER|person")]
    pub job_user: Option<String>,
    /// With `--job-user person`, the lowest number that a user may have; 1000 when left out, which
    /// keeps out the system's users. Jobs never run as root.
    #[arg(long, value_name = "UID", requires = "job_user")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub uid_min: Option<u32>,
    /// Users for jobs, one for each tenant, as in `60000-60999`.
    #[arg(long, value_name = "FIRST-LAST", value_parser = users, conflicts_with = "job_user")]
    pub job_users: Option<(u32, u32)>,
}

/// How much is told while running.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// How log lines look.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Least important lines that are shown.
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Keep the address and token of a daemon for the other commands.
///
/// They go to `hostler/credentials.toml` in the configuration folder, which only its owner reads.
/// HOSTLER_SERVER, HOSTLER_TOKEN and HOSTLER_FINGERPRINT come before what is kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler login https://127.0.0.1:7717 --fingerprint sha256:.. < hostler-data/admin-token
  hostler login https://gpu.example:7717 --fingerprint sha256:..")]
pub struct Login {
    /// The daemon.
    pub server: String,
    /// The token; read from standard input when left out.
    #[arg(long)]
    pub token: Option<String>,
    /// SHA-256 of the daemon's certificate, as `hostler serve` prints it.
    #[arg(long, value_name = "sha256:HEX")]
    pub fingerprint: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum State {
    Held,
    Queued,
    Starting,
    Running,
    Stopping,
    Finished,
    Failed,
    Cancelled,
    TimedOut,
    Rejected,
}

/// List jobs that are not over.
///
/// Jobs of an array that stand at the same place share a line. A terminal gets colours, unless
/// NO_COLOR is set, and notes that fit its width.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler queue
  hostler queue --state running -u me
  hostler queue --watch
  hostler queue --json --limit 10")]
pub struct Queue {
    /// Only these: jobs or arrays (17), ranges (12-40), or parts of an array (12_3, 12_3-7).
    #[arg(value_name = "JOB")]
    pub jobs: Vec<Selection>,
    #[command(flatten)]
    pub filter: Filter,
    /// Show it again every so many seconds, 2 when left out, until it is interrupted.
    #[arg(long, value_name = "SECS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "2", conflicts_with = "json")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub watch: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which jobs.
#[derive(Debug, Args)]
pub struct Filter {
    /// Only in this state.
    #[arg(long, value_enum)]
    pub state: Option<State>,
    /// Only of this tenant.
    #[arg(long)]
    pub tenant: Option<String>,
    /// Only of this user; `me` for your own.
    #[arg(short, long)]
    pub user: Option<String>,
    /// Each job of an array on a line of its own.
    #[arg(long)]
    pub each: bool,
    /// At most this many lines.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,
}

/// Show all that is known about jobs.
///
/// The number of an array, which is that of its first job, means all of it; `12_0` is that first
/// job alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler show 17
  hostler show 12_3
  hostler show 17 --json")]
pub struct Show {
    /// Jobs or arrays (17), ranges (12-40), or parts of an array by index (12_3, 12_3-7).
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<Selection>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Say why jobs wait, since when, and when they may start.
///
/// Jobs of an array for which the same holds are told together.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler explain 17
  hostler explain 12_3")]
pub struct Explain {
    /// Jobs or arrays (17), ranges (12-40), or parts of an array by index (12_3, 12_3-7).
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<Selection>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Print the output of a job.
///
/// Standard output of the job goes to standard output as it is; lines of its standard error go to
/// standard error, each behind `err| `. Where one stream is chosen it goes to standard output.
/// Of several jobs, such as an array, one comes after the other, under a line with its number. Of a
/// job with several tasks that is over, the one that failed comes first. Nodes keep the newest
/// part of each stream, of their newest thousand starts.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  hostler logs 17
  hostler logs 12_3
  hostler logs 17 -f
  hostler logs 17 --stderr --rank 3 --tail 20
  hostler logs 17 --start 1")]
pub struct Logs {
    /// A job or array (17), a range (12-40), or a part of an array by index (12_3, 12_3-7).
    #[arg(value_name = "JOB")]
    pub jobs: Selection,
    /// Go on until the job ends.
    #[arg(short, long)]
    pub follow: bool,
    /// Only standard output.
    #[arg(long)]
    pub stdout: bool,
    /// Only standard error.
    #[arg(long)]
    pub stderr: bool,
    /// Only this task; all when left out, each line behind the number of its task.
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// The output of this start, the first is 1; the last one when left out.
    #[arg(long, value_name = "N", conflicts_with_all = ["all_starts", "follow"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub start: Option<u32>,
    /// The output of all starts, one after the other, as far as nodes have kept it.
    #[arg(long)]
    pub all_starts: bool,
    /// Only the last lines of each stream.
    #[arg(long, value_name = "LINES")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub tail: Option<u32>,
    /// Print pieces as JSON, one in a line.
    #[arg(long)]
    pub json: bool,
}

/// End jobs, running or not.
///
/// The number of an array, which is that of its first job, means all of it; `12_0` is that first
/// job alone. Jobs of ranges and arrays that are over are passed over. Where a job cannot be
/// changed the others are, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler cancel 17
  hostler cancel 17 18 20-30
  hostler cancel 12_3-7")]
pub struct Cancel {
    #[command(flatten)]
    pub jobs: Jobs,
}

/// Keep waiting jobs from starting.
///
/// The number of an array means all of it, as with `hostler cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler hold 17
  hostler hold 12_3-7 40-45")]
pub struct Hold {
    #[command(flatten)]
    pub jobs: Jobs,
}

/// Let held jobs go.
///
/// The number of an array means all of it, as with `hostler cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler release 17")]
pub struct Release {
    #[command(flatten)]
    pub jobs: Jobs,
}

/// Which jobs, by number.
#[derive(Debug, Args)]
pub struct Jobs {
    /// Jobs or arrays (17), ranges (12-40), or parts of an array by index (12_3, 12_3-7).
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<Selection>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Watch queue, nodes and GPUs.
///
/// Keys: q ends, arrows move. Where standard output is no terminal, one picture is printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler top
  hostler top --json")]
pub struct Top {
    /// Seconds between pictures.
    #[arg(long, value_name = "SECS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
    /// Print one picture as JSON.
    #[arg(long)]
    pub json: bool,
}

/// List nodes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler nodes
  hostler nodes --json")]
pub struct Nodes {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Look for what is wrong: the daemon, the clock, disks, GPUs, and what jobs need here.
///
/// Changes nothing. Ends with 1 when something is broken; warnings alone end with 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler doctor
  hostler doctor --data /var/lib/hostler --json")]
pub struct Doctor {
    /// Data folder of a daemon or an agent to look at.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address that a daemon is to listen on here.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Let a node take nothing new.
///
/// Jobs that run there go on to their end, or to the deadline: then they are stopped, saved if
/// they can be, and wait again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler drain gpu-07
  hostler drain gpu-07 --reason disk --deadline 4h")]
pub struct Drain {
    #[command(flatten)]
    pub node: Node,
    /// Why, for those who look at nodes.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Time after which jobs that still run there are stopped.
    #[arg(long, value_name = "TIME", value_parser = values::seconds)]
    pub deadline: Option<u64>,
}

/// Let a drained node take jobs again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler undrain gpu-07")]
pub struct Undrain {
    #[command(flatten)]
    pub node: Node,
}

/// Which node.
#[derive(Debug, Args)]
pub struct Node {
    /// Its name.
    pub node: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// List jobs that are over, those that ended last first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler history
  hostler history --since 2d --state failed -u me
  hostler history --since 2026-11-01 --until 2026-12-01 --limit 1000
  hostler history --since 30d --limit 100000 --csv > jobs.csv")]
pub struct History {
    /// Only these: jobs or arrays (17), ranges (12-40), or parts of an array (12_3, 12_3-7).
    #[arg(value_name = "JOB")]
    pub jobs: Vec<Selection>,
    #[command(flatten)]
    pub filter: Filter,
    /// Only those that ended since then: 12h or 2d ago, or a date or time (UTC) as in 2026-11-16 or
    /// 2026-11-16T09:30.
    #[arg(long, value_name = "WHEN", value_parser = values::moment)]
    pub since: Option<f64>,
    /// Only those that ended before then.
    #[arg(long, value_name = "WHEN", value_parser = values::moment)]
    pub until: Option<f64>,
    /// Print CSV: a line for each job, times in seconds since the epoch.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Take the daemon's log of facts and decisions elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler log export --out daemon.jsonl && hostler replay daemon.jsonl --check")]
pub struct LogArgs {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Write the whole log as JSON lines, which `hostler replay` reads; for admins.
    #[command(after_help = "\
Examples:
  hostler log export > daemon.jsonl
  hostler log export --out daemon.jsonl && hostler replay daemon.jsonl --check")]
    Export {
        /// File to write; standard output when left out.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Write over a file that is there.
        #[arg(long, requires = "out")]
        force: bool,
    },
}

/// Show or change the policy that decides.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler policy show
  hostler policy set sjf:estimate=median")]
pub struct PolicyArgs {
    #[command(subcommand)]
    pub command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show the policy that decides.
    #[command(after_help = "Examples:\n  hostler policy show")]
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let another policy decide from now on.
    #[command(after_help = "\
Examples:
  hostler policy set sjf:estimate=median
  hostler policy set fifo-backfill:estimate=user:depth=50
  hostler policy set sjf.toml")]
    Set {
        /// A policy with settings, or a file (TOML: `kind = ".."` and settings), which comes first;
        /// `-` for standard input.
        #[arg(value_name = "KIND[:KEY=VALUE..]|FILE")]
        policy: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// List tenants, or set what one may use.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler tenant list
  hostler tenant set vision --gpus 16 --queued 500
  hostler tenant set vision --budget 2000 --budget-days 30")]
pub struct TenantArgs {
    #[command(subcommand)]
    pub command: TenantCommand,
}

#[derive(Debug, Subcommand)]
pub enum TenantCommand {
    /// List tenants, the GPUs that their jobs run on, and those that others wait for.
    #[command(after_help = "Examples:\n  hostler tenant list")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add a tenant, or set what it may use; what is left out stays as it is.
    Set(TenantSet),
}

/// What a tenant may use.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler tenant set vision --gpus 16 --queued 500")]
pub struct TenantSet {
    /// Its name.
    pub name: String,
    /// Share of the cluster that is due to it, relative to the others; stays as it is when left
    /// out, and is 1 for a new tenant.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub weight: Option<u32>,
    /// Jobs that are not over; `none` lifts a limit, here and below.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub jobs: Option<Most>,
    /// Jobs that wait.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub queued: Option<Most>,
    /// GPUs at a time.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub gpus: Option<Most>,
    /// GPU hours in each period; jobs that run when they are used up go on, others wait.
    #[arg(long, value_name = "HOURS", allow_negative_numbers = true)]
    pub budget: Option<Most>,
    /// Length of a period of the budget, from when it is given; 30 days when left out.
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3660))]
    pub budget_days: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A limit, or none.
#[derive(Clone, Copy, Debug)]
pub struct Most(pub Option<u32>);

impl std::str::FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Most, String> {
        match text {
            "none" => Ok(Most(None)),
            number => match number.parse() {
                Ok(number) => Ok(Most(Some(number))),
                Err(_) => Err("give a whole number, or `none`".to_owned()),
            },
        }
    }
}

/// Make, list and revoke tokens.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler token create --role user --tenant vision ada
  hostler token create --role agent gpu-07
  hostler token revoke 3")]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    Create(TokenCreate),
    /// List tokens, without their secrets.
    #[command(after_help = "Examples:\n  hostler token list")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let nobody in with a token any more.
    #[command(after_help = "Examples:\n  hostler token revoke 3")]
    Revoke {
        /// Its number.
        token: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make another admin token while the daemon does not run, when all are lost.
    #[command(after_help = "Examples:\n  hostler token reset --data /var/lib/hostler")]
    Reset {
        /// Data folder of the daemon; the token goes to the file `admin-token` in it.
        #[arg(long, value_name = "DIR", default_value = "hostler-data")]
        data: PathBuf,
        /// Where the daemon keeps everything, if not in the data folder.
        #[arg(long, value_name = "URL")]
        store: Option<String>,
    },
}

/// Make a token and print it, once, with the command that whoever gets it types next.
///
/// A token for an agent enrols one node and is then spent.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler token create --role user --tenant vision --new-tenant ada
  hostler token create --role agent gpu-07")]
pub struct TokenCreate {
    /// Who will use it.
    pub name: String,
    #[command(flatten)]
    pub standing: Standing,
    /// Unix user that nodes with `--job-user person` run its jobs as.
    #[arg(long, value_name = "USER")]
    pub unix_user: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RoleName {
    Admin,
    User,
    Viewer,
    Agent,
}

/// Reads `60000-60999`; root is in no such range.
fn users(text: &str) -> Result<(u32, u32), String> {
    let ends = text.split_once('-').and_then(|(first, last)| {
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (0 < first && first <= last && last < u32::MAX).then_some((first, last))
    });
    ends.ok_or_else(|| format!("`{text}` is no range of users; write FIRST-LAST, from 1 on"))
}
