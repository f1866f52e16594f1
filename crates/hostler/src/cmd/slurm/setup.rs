//! `hostler slurm setup`: what is missing for Hostler to drive a cluster. Changes nothing.

use anyhow::{Result, anyhow};
use hostler_live::driver::SlurmSettings;
use hostler_live::driver::slurm::caller::Commands;

use super::settings;
use crate::ExitWith;
use crate::cli::SlurmSetup;
use crate::say::{print, say};

/// One thing that was looked at.
struct Finding {
    fine: bool,
    words: String,
}

/// Says what is missing, or prints the lines for it.
pub async fn run(args: &SlurmSetup) -> Result<()> {
    let settings = settings(args.settings.slurm.as_deref())?;
    let commands = Commands::new(&settings);
    let config = commands.text(&["scontrol", "show", "config"]).await;
    if args.print {
        let config = config.unwrap_or_else(|fault| {
            say(format_args!(
                "warning: Slurm does not answer, so these are for any cluster: {fault}"
            ));
            String::new()
        });
        let nodes = partition(&commands, &settings.partition).await.value("Nodes=");
        return Ok(print(format_args!("{}", lines(&settings, &Config(config), &nodes)))?);
    }
    let config = Config(config.map_err(|fault| anyhow!("`scontrol show config`: {fault}"))?);
    let mut findings = of_config(&config);
    findings.extend(of_partitions(&commands, &settings).await);
    let missing = findings.iter().filter(|finding| !finding.fine).count();
    for finding in &findings {
        print(format_args!(
            "{:<8} {}",
            if finding.fine { "ok" } else { "missing" },
            finding.words
        ))?;
    }
    if missing > 0 {
        let words = format!("missing: {missing}; `hostler slurm setup --print` has lines for it");
        return Err(ExitWith { code: 1, words }.into());
    }
    Ok(())
}

/// What `scontrol show config` prints.
struct Config(String);

impl Config {
    fn value(&self, key: &str) -> String {
        let mut lines = self.0.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(key));
        line.and_then(|line| line.split_once('=')).map_or("", |(_, value)| value.trim()).to_owned()
    }

    /// A list with what has to be in it.
    fn with(&self, key: &str, wanted: &[&str]) -> String {
        let value = self.value(key);
        let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        let others = value.split(',').filter(|word| !word.is_empty() && *word != "(null)");
        let others = others.filter(|word| wanted.iter().all(|one| name(one) != name(word)));
        others.chain(wanted.iter().copied()).collect::<Vec<_>>().join(",")
    }
}

/// A line of `scontrol -o show`.
struct Shown(String);

impl Shown {
    fn value(&self, key: &str) -> String {
        let mut words = self.0.split_whitespace();
        words.find_map(|word| word.strip_prefix(key)).unwrap_or_default().to_owned()
    }
}

async fn partition(commands: &Commands, name: &str) -> Shown {
    let shown = commands.text(&["scontrol", "-o", "show", "partition", name]).await;
    Shown(shown.unwrap_or_default())
}

/// What the configuration says.
fn of_config(config: &Config) -> Vec<Finding> {
    let (select, memory) =
        (config.value("SelectType"), config.value("SelectTypeParameters").to_uppercase());
    let default = ["DefMemPerCPU", "DefMemPerNode"]
        .iter()
        .any(|key| config.value(key).parse::<u64>().is_ok_and(|mem| mem > 0));
    let seconds = config
        .value("AuthInfo")
        .split("cred_expire=")
        .nth(1)
        .and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
    let scheduler = config.value("SchedulerType");
    let parameters = config.value("SchedulerParameters");
    vec![
        Finding { fine: true, words: format!("Slurm {} answers", config.value("SLURM_VERSION")) },
        Finding {
            fine: select.ends_with("cons_tres"),
            words: format!("`SelectType=select/cons_tres`, to give GPUs by type; it is `{select}`"),
        },
        Finding {
            fine: default || !memory.contains("MEMORY"),
            words: "`DefMemPerCPU`: without it a job that names no memory is given as much as the \
                    smallest node has"
                .to_owned(),
        },
        Finding {
            fine: scheduler.ends_with("builtin"),
            words: format!(
                "`SchedulerType=sched/builtin`: others look for gaps among jobs that were placed \
                 already; it is `{scheduler}`"
            ),
        },
        Finding {
            fine: parameters.contains("disable_job_shrink"),
            words:
                "`SchedulerParameters=disable_job_shrink`: without it a job that was started by \
                    hand in the moment of its start may lose nodes"
                    .to_owned(),
        },
        Finding {
            fine: parameters.contains("batch_sched_delay=0"),
            words: "`SchedulerParameters=batch_sched_delay=0`: without it starts take 3 s longer"
                .to_owned(),
        },
        Finding {
            fine: seconds.is_some_and(|seconds| seconds <= 30),
            words: "`AuthInfo=cred_expire=10`: without it Slurm may keep a job that gave way for \
                    two minutes"
                .to_owned(),
        },
        Finding {
            fine: config.value("JobSubmitPlugins").contains("lua"),
            words: "`JobSubmitPlugins=lua`: without it users have to name the waiting room"
                .to_owned(),
        },
        Finding {
            fine: config.value("AccountingStorageType").ends_with("slurmdbd"),
            words: "`AccountingStorageType=accounting_storage/slurmdbd`: without it nobody knows \
                    how jobs ended while the daemon was away for longer than `MinJobAge`"
                .to_owned(),
        },
        Finding {
            fine: config.value("AccountingStorageEnforce").contains("associations"),
            words: "`AccountingStorageEnforce=associations`: without it a user may name any \
                    account, and so be any tenant"
                .to_owned(),
        },
    ]
}

async fn of_partitions(commands: &Commands, settings: &SlurmSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wanted = [(&settings.waiting_room, "DOWN"), (&settings.partition, "UP")];
    let mut nodes = Vec::new();
    for (name, state) in wanted {
        let shown = partition(commands, name).await;
        let found = shown.value("State=");
        let is =
            if found.is_empty() { "it is not there".to_owned() } else { format!("it is {found}") };
        nodes.push(shown.value("Nodes="));
        let words = format!("partition `{name}` with `State={state}`; {is}");
        findings.push(Finding { fine: found == state, words });
    }
    let words = "both partitions have the same nodes".to_owned();
    findings.push(Finding { fine: nodes[0] == nodes[1] && !nodes[0].is_empty(), words });
    findings
}

/// Lines for `slurm.conf` and `job_submit.lua`, with what is there already.
fn lines(settings: &SlurmSettings, config: &Config, nodes: &str) -> String {
    let (room, run) = (&settings.waiting_room, &settings.partition);
    let nodes = if nodes.is_empty() { "ALL" } else { nodes };
    let parameters = config.with("SchedulerParameters", &PARAMETERS);
    let auth = config.with("AuthInfo", &["cred_expire=10"]);
    let plugins = config.with("JobSubmitPlugins", &["lua"]);
    format!(
        "# slurm.conf: the waiting room of Hostler, with the nodes of partition `{run}`.\n\
         PartitionName={room} Nodes={nodes} State=DOWN MaxTime=INFINITE\n\
         # In the place of sched/backfill; read this first. It holds for ALL partitions of the\n\
         # cluster, not for `{run}` alone. In each of them Slurm then starts jobs in the order of\n\
         # their priorities, and nobody goes past the first that has no room: small jobs no longer\n\
         # fill the gaps before large ones, so others may wait longer. Heterogeneous jobs are\n\
         # refused everywhere. Where people count on other partitions, that has to be weighed\n\
         # first. Backfill beside Hostler was not tried.\n\
         SchedulerType=sched/builtin\n\
         SchedulerParameters={parameters}\n\
         AuthInfo={auth}\n\
         JobSubmitPlugins={plugins}\n\
         # where there is none: DefMemPerCPU= as suits the nodes, and, with accounts,\n\
         # AccountingStorageEnforce=associations. Then `scontrol reconfigure`; the plugin wants a\n\
         # restart of slurmctld.\n\
         \n{}",
        plugin(room, run, &movers(&config.value("SlurmUser")))
    )
}

/// What is set besides what a cluster has.
const PARAMETERS: [&str; 6] = [
    "batch_sched_delay=0",
    "sched_min_interval=20000",
    "sched_interval=5",
    "default_queue_depth=2000",
    "partition_job_depth=2000",
    "disable_job_shrink",
];

/// Who may move jobs: root, `SlurmUser` (as in `slurm(64030)`) and whoever asks, who is to run
/// Hostler.
fn movers(slurm_user: &str) -> String {
    let number = slurm_user.split(['(', ')']).nth(1).and_then(|uid| uid.parse::<u32>().ok());
    let mut all = vec![0, rustix::process::getuid().as_raw()];
    all.extend(number);
    all.sort_unstable();
    all.dedup();
    let all: Vec<String> = all.iter().map(|uid| format!("[{uid}] = true")).collect();
    all.join(", ")
}

/// The plugin that keeps jobs of users in the waiting room.
fn plugin(room: &str, run: &str, movers: &str) -> String {
    format!(
        "-- job_submit.lua, beside slurm.conf: jobs for partition {run} wait for Hostler, and only\n\
         -- these take them out. Add the user that Hostler runs as, by its number. Other partitions\n\
         -- are open as before.\n\
         local movers = {{ {movers} }}\n\
         local function names(list, wanted)\n\
         \x20  for name in string.gmatch(list or \"\", \"[^,]+\") do\n\
         \x20     if name == wanted then return true end\n\
         \x20  end\n\
         \x20  return false\n\
         end\n\
         function slurm_job_submit(job, partitions, uid)\n\
         \x20  if not movers[uid] and (job.partition == nil or names(job.partition, \"{run}\")) then\n\
         \x20     job.partition = \"{room}\"\n\
         \x20  end\n\
         \x20  return slurm.SUCCESS\n\
         end\n\
         function slurm_job_modify(job, record, partitions, uid)\n\
         \x20  local leaves = job.partition ~= nil and record.partition == \"{room}\" and\n\
         \x20                 job.partition ~= \"{room}\"\n\
         \x20  if not movers[uid] and (leaves or names(job.partition, \"{run}\")) then\n\
         \x20     slurm.log_user(\"Hostler moves jobs to partition {run}\")\n\
         \x20     return slurm.ERROR\n\
         \x20  end\n\
         \x20  return slurm.SUCCESS\n\
         end\n\
         return slurm.SUCCESS"
    )
}
