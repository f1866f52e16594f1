//! Options of Slurm's `sbatch` as flags of `hostler submit`.
//!
//! `docs/slurm.md` has the table; what is not in it is refused, since a job that silently runs
//! otherwise than its author meant is worse than one that does not run.

use anyhow::{Context, Result, anyhow, bail};

/// Flags that mean the same, and what does not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Words for `hostler submit`.
    pub words: Vec<String>,
    /// What was left out, one sentence each.
    pub notes: Vec<String>,
    /// Whether the end is waited for.
    pub wait: bool,
    /// A command line for a shell, instead of a script.
    pub wrap: Option<String>,
    /// Whether only the number of the job is printed.
    pub parsable: bool,
}

/// What is known so far. Some options only have a meaning together.
#[derive(Debug, Default)]
struct Asked {
    flags: Flags,
    nodes: Option<u32>,
    tasks: Option<u32>,
    tasks_per_node: Option<u32>,
    gpus: Option<Gpus>,
    model: Option<String>,
    cpus: Option<u32>,
    mem: Option<Mem>,
}

#[derive(Clone, Copy, Debug)]
enum Gpus {
    InAll(u32),
    PerNode(u32),
    PerTask(u32),
}

#[derive(Clone, Copy, Debug)]
enum Mem {
    OfNode(u32),
    EachCpu(u32),
    EachGpu(u32),
}

/// Short names and the long ones that they stand for.
const SHORT: &[(char, &str)] = &[
    ('A', "account"),
    ('a', "array"),
    ('C', "constraint"),
    ('c', "cpus-per-task"),
    ('D', "chdir"),
    ('d', "dependency"),
    ('e', "error"),
    ('G', "gpus"),
    ('H', "hold"),
    ('J', "job-name"),
    ('l', "label"),
    ('N', "nodes"),
    ('n', "ntasks"),
    ('o', "output"),
    ('p', "partition"),
    ('q', "qos"),
    ('Q', "quiet"),
    ('t', "time"),
    ('u', "unbuffered"),
    ('v', "verbose"),
    ('W', "wait"),
    ('w', "nodelist"),
    ('x', "exclude"),
];

/// Options without a value.
const BARE: &[&str] = &[
    "exact",
    "exclusive",
    "hold",
    "label",
    "no-requeue",
    "overlap",
    "parsable",
    "pty",
    "quiet",
    "requeue",
    "unbuffered",
    "verbose",
    "wait",
];

/// The flags for lines of options, each with its number.
pub fn flags_of(lines: &[(usize, Vec<String>)]) -> Result<Flags> {
    let mut asked = Asked::default();
    for (number, words) in lines {
        let place = || format!("line {number}");
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, value) = option(word, &mut words).with_context(place)?;
            asked.take(&name, &value).with_context(place)?;
        }
    }
    asked.finish()
}

/// Options at the beginning of a command line, and what comes behind them.
pub fn split_options(words: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let mut rest = words.iter();
    let mut options = Vec::new();
    while let Some(word) = rest.as_slice().first().filter(|word| word.starts_with('-')) {
        rest.next();
        if word == "--" {
            break;
        }
        let (name, value) = option(word, &mut rest)?;
        let bare = BARE.contains(&name.as_str()) && value.is_empty();
        options.push(if bare { format!("--{name}") } else { format!("--{name}={value}") });
    }
    Ok((options, rest.as_slice().to_vec()))
}

/// The long name of an option and its value, which may be the next word.
fn option<'a>(word: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<(String, String)> {
    let (name, value) = if let Some(long) = word.strip_prefix("--") {
        match long.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (long.to_owned(), None),
        }
    } else {
        let letter = word.strip_prefix('-').and_then(|short| short.chars().next());
        let known = SHORT.iter().find(|(short, _)| Some(*short) == letter);
        let (_, name) = known.ok_or_else(|| anyhow!("`{word}` is no option that is understood"))?;
        let value = word.chars().skip(2).collect::<String>();
        let value = value.strip_prefix('=').unwrap_or(&value).to_owned();
        ((*name).to_owned(), (!value.is_empty()).then_some(value))
    };
    if BARE.contains(&name.as_str()) {
        return Ok((name, value.unwrap_or_default()));
    }
    let value = value.or_else(|| rest.next().cloned());
    let value = value.ok_or_else(|| anyhow!("`--{name}` needs a value"))?;
    Ok((name, value))
}

impl Asked {
    fn take(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "job-name" => self.flag("--name", value),
            "time" => self.flag("--max-time", &format!("{}s", time(value)?)),
            "nodes" => self.nodes = Some(number(name, value.split('-').next().unwrap_or(value))?),
            "ntasks" => self.tasks = Some(number(name, value)?),
            "ntasks-per-node" => self.tasks_per_node = Some(number(name, value)?),
            "cpus-per-task" => self.cpus = Some(number(name, value)?),
            "gpus" => self.gpus = Some(Gpus::InAll(self.gpu_count(name, value)?)),
            "gpus-per-node" => self.gpus = Some(Gpus::PerNode(self.gpu_count(name, value)?)),
            "gpus-per-task" => self.gpus = Some(Gpus::PerTask(self.gpu_count(name, value)?)),
            "gres" => match value.strip_prefix("gpu") {
                Some("") => self.gpus = Some(Gpus::PerNode(1)),
                Some(rest) if rest.starts_with(':') => {
                    self.gpus = Some(Gpus::PerNode(self.gpu_count(name, &rest[1..])?));
                }
                _ => bail!("`--gres={value}`: only GPUs are known, as in gpu:2 or gpu:a100:2"),
            },
            "mem" => self.mem = Some(Mem::OfNode(mebibytes(name, value)?)),
            "mem-per-cpu" => self.mem = Some(Mem::EachCpu(mebibytes(name, value)?)),
            "mem-per-gpu" => self.mem = Some(Mem::EachGpu(mebibytes(name, value)?)),
            "array" => {
                if value.contains(',') {
                    bail!("`--array={value}`: write one range, as in 0-9, 1-9:2 or 0-9%4");
                }
                // One index is that one, and not so many.
                let (range, limit) = value.split_once('%').unwrap_or((value, ""));
                let range = match range.parse::<u32>() {
                    Ok(index) => format!("{index}-{index}"),
                    Err(_) => range.to_owned(),
                };
                let limit = if limit.is_empty() { String::new() } else { format!("%{limit}") };
                self.flag("--array", &format!("{range}{limit}"));
            }
            "dependency" => self.dependencies(value)?,
            // There it is a folder like any other.
            "chdir" if value == "private" => self.flag("--workdir", "./private"),
            "chdir" => self.flag("--workdir", value),
            "export" => self.flag("--export", value),
            "reservation" => self.flag("--reservation", value),
            "container-image" => self.flag("--image", &pyxis_image(value)?),
            "container-mounts" => {
                value.split(',').for_each(|mount| self.flag("--mount", mount));
            }
            "wait" => self.flags.wait = true,
            "mail-user" => self.flag("--mail-to", value),
            "mail-type" => self.mail(value)?,
            "wrap" => self.flags.wrap = Some(value.to_owned()),
            _ => return self.left_out(name, value),
        }
        Ok(())
    }

    /// What has no meaning here: told, or refused where the job would run otherwise than meant.
    fn left_out(&mut self, name: &str, value: &str) -> Result<()> {
        let why = match name {
            "parsable" => {
                self.flags.parsable = true;
                return Ok(());
            }
            "quiet" | "verbose" | "comment" | "label" | "unbuffered" | "exact" | "overlap" => {
                return Ok(());
            }
            "pty" => bail!("`--pty`: `srun` and `hostler run` have a terminal, scripts have none"),
            "output" | "error" => "output is kept by the daemon; see `hostler logs`",
            "partition" | "qos" => "there are no partitions; all nodes take all jobs",
            "account" => "the tenant of the token pays",
            "requeue" => "a job whose node fails is always started again",
            "no-requeue" => "a job whose node fails is started again all the same",
            "signal" => "SIGTERM comes first; `#HOSTLER --grace 2m` says how long before the end",
            "nice" => "`#HOSTLER --priority N` says what is more important",
            "open-mode" => "output of every start is kept by itself",
            "get-user-env" | "propagate" => "the environment is a clean one",
            "constraint" => {
                bail!("`--constraint={value}`: `#HOSTLER --gpu-model MODEL` names GPUs")
            }
            "exclusive" => bail!("`--exclusive`: say how many GPUs and cores it needs instead"),
            "nodelist" | "exclude" => bail!("`--{name}={value}`: nodes cannot be chosen by name"),
            "hold" => bail!("`--hold`: submit it and use `hostler hold`"),
            "begin" => bail!("`--begin={value}`: jobs begin as soon as they can"),
            _ => bail!("`--{name}` is no option that is understood; see docs/slurm.md"),
        };
        let value = if value.is_empty() { String::new() } else { format!("={value}") };
        self.flags.notes.push(format!("`--{name}{value}` is left out: {why}"));
        Ok(())
    }

    /// Adds a flag; one that can be given once is the last one that is.
    fn flag(&mut self, name: &str, value: &str) {
        if !["--after", "--env", "--mount"].contains(&name) {
            let before = format!("{name}=");
            self.flags.words.retain(|word| !word.starts_with(&before));
        }
        self.flags.words.push(format!("{name}={value}"));
    }

    /// A number of GPUs, with a model before it or not.
    fn gpu_count(&mut self, name: &str, value: &str) -> Result<u32> {
        let count = match value.rsplit_once(':') {
            Some((model, count)) => {
                self.model = Some(model.to_owned());
                count
            }
            None if value.chars().all(|char| char.is_ascii_digit()) => value,
            None => {
                self.model = Some(value.to_owned());
                "1"
            }
        };
        number(name, count)
    }

    fn dependencies(&mut self, value: &str) -> Result<()> {
        if value.contains('?') {
            bail!("`--dependency={value}`: jobs wait for all that they name; write commas");
        }
        for part in value.split(',') {
            let mut words = part.split(':');
            let kind = match words.next().unwrap_or_default() {
                "afterok" => "finished",
                "afterany" => "over",
                "afternotok" => "failed",
                "after" => "started",
                kind => bail!(
                    "`--dependency={kind}` is not known; use afterok, afterany, \
                               afternotok or after"
                ),
            };
            let before = self.flags.words.len();
            for job in words {
                if job.contains('+') {
                    bail!("`--dependency={part}`: minutes behind `+` are not known");
                }
                self.flag("--after", &format!("{kind}:{job}"));
            }
            if self.flags.words.len() == before {
                bail!("`--dependency={part}` names no job");
            }
        }
        Ok(())
    }

    /// Of what mail tells; events that are not known here are left out.
    fn mail(&mut self, value: &str) -> Result<()> {
        let mut events = Vec::new();
        for word in value.split(',') {
            match word.to_ascii_uppercase().as_str() {
                "NONE" => events.push("none"),
                "BEGIN" => events.push("start"),
                "END" => events.push("end"),
                "FAIL" | "TIME_LIMIT" | "INVALID_DEPEND" => events.push("fail"),
                "ALL" => events.push("all"),
                "REQUEUE" | "STAGE_OUT" | "TIME_LIMIT_90" | "TIME_LIMIT_80" | "TIME_LIMIT_50"
                | "ARRAY_TASKS" => self.flags.notes.push(format!(
                    "`--mail-type={word}` is left out: BEGIN, END and FAIL are told, of each job \
                     of an array"
                )),
                _ => bail!("`--mail-type={word}` is not known; use NONE, BEGIN, END, FAIL or ALL"),
            }
        }
        if !events.is_empty() {
            self.flag("--notify", &events.join(","));
        }
        Ok(())
    }

    /// Slurm sends mail only to whom and of what is said.
    fn check_mail(&mut self) {
        let has = |flag: &str| self.flags.words.iter().any(|word| word.starts_with(flag));
        let note = match (has("--notify="), has("--mail-to=")) {
            (true, false) if has("--notify=none") => return,
            (true, false) => {
                "`--mail-type` without `--mail-user`: only the operator's webhooks hear"
            }
            (false, true) => "`--mail-user` is left out: no `--mail-type` says of what to tell",
            _ => return,
        };
        self.flags.notes.push(note.to_owned());
        self.flags.words.retain(|word| !word.starts_with("--mail-to="));
    }

    /// What only has a meaning together: nodes, tasks, GPUs and memory.
    fn finish(mut self) -> Result<Flags> {
        let per_node = self.tasks_per_node.or_else(|| {
            let (tasks, nodes) = (self.tasks?, self.nodes?);
            tasks.is_multiple_of(nodes).then(|| tasks / nodes)
        });
        let nodes = self.nodes.unwrap_or(1);
        let tasks = self.tasks.unwrap_or_else(|| nodes.saturating_mul(per_node.unwrap_or(1)));
        let on_node = per_node.unwrap_or(if self.nodes.is_some() { 1 } else { tasks }).max(1);
        match (self.nodes, per_node) {
            (Some(nodes), None | Some(1)) if nodes > 1 => self.flag("--nodes", &nodes.to_string()),
            (Some(1), _) if tasks > 1 => {
                self.flag("--tasks", &tasks.to_string());
                self.flags.words.push("--one-node".to_owned());
            }
            (nodes, _) => {
                if nodes.is_some_and(|nodes| nodes > 1) {
                    self.flags.notes.push(format!(
                        "{tasks} tasks go where there is room, not {on_node} to each node"
                    ));
                }
                self.flag("--tasks", &tasks.to_string());
            }
        }
        let mut gpus_each = 0;
        if let Some(gpus) = self.gpus {
            let (all, among) = match gpus {
                Gpus::InAll(all) => (all, tasks),
                Gpus::PerNode(all) => (all, on_node),
                Gpus::PerTask(each) => (each, 1),
            };
            if !all.is_multiple_of(among.max(1)) {
                bail!("{all} GPUs cannot be given to {among} tasks evenly; use `#HOSTLER --gpus`");
            }
            gpus_each = all / among.max(1);
            self.flag("--gpus", &gpus_each.to_string());
        }
        if let Some(model) = self.model.clone() {
            self.flag("--gpu-model", &model);
        }
        if let Some(cpus) = self.cpus {
            self.flag("--cpus", &cpus.to_string());
        }
        self.check_mail();
        if let Some(mem) = self.mem {
            let each = match mem {
                Mem::OfNode(all) => all.div_ceil(on_node),
                Mem::EachCpu(each) => each.saturating_mul(self.cpus.unwrap_or(1)),
                Mem::EachGpu(each) => each.saturating_mul(gpus_each),
            };
            self.flag("--mem", &each.to_string());
        }
        Ok(self.flags)
    }
}

/// An image as Pyxis has it: the registry stands before `#`.
fn pyxis_image(value: &str) -> Result<String> {
    let name = value.strip_prefix("docker://").unwrap_or(value);
    if name.contains('@') && !name.contains("@sha256:") {
        bail!("`--container-image={value}`: names of users are set up on the nodes");
    }
    match name.split_once('#') {
        Some((registry, image)) => Ok(format!("docker://{registry}/{image}")),
        None => Ok(value.to_owned()),
    }
}

fn number(name: &str, value: &str) -> Result<u32> {
    let number = value.parse().ok().filter(|number| *number >= 1);
    number.with_context(|| format!("`--{name}={value}`: use a whole number from 1 on"))
}

/// Memory in MiB: `4G`, or `4096` as it is.
fn mebibytes(name: &str, value: &str) -> Result<u32> {
    let digits = value.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let number: Option<u64> = digits.parse().ok();
    let mib = number.and_then(|number| match value[digits.len()..].to_ascii_uppercase().as_str() {
        "K" | "KB" => Some(number.div_ceil(1024)),
        "" | "M" | "MB" => Some(number),
        "G" | "GB" => number.checked_mul(1024),
        "T" | "TB" => number.checked_mul(1024 * 1024),
        _ => None,
    });
    let mib = mib.and_then(|mib| u32::try_from(mib).ok());
    mib.with_context(|| format!("`--{name}={value}` is no memory; write 4G or 4096M"))
}

/// Seconds of Slurm's times: minutes, or `[days-]hours:minutes:seconds` with parts left out.
fn time(value: &str) -> Result<u64> {
    let fault = || anyhow!("`--time={value}` is no time; write 90, 1:30:00 or 2-12");
    let (days, rest) = match value.split_once('-') {
        Some((days, rest)) => (Some(days), rest),
        None => (None, value),
    };
    let parts: Result<Vec<u64>, _> = rest.split(':').map(str::parse).collect();
    let parts = parts.map_err(|_| fault())?;
    let seconds = match (days.is_some(), parts.as_slice()) {
        (false, [minutes]) => minutes.checked_mul(60),
        (false, [minutes, seconds]) => {
            minutes.checked_mul(60).and_then(|sum| sum.checked_add(*seconds))
        }
        (true, [hours]) => hours.checked_mul(3600),
        (true, [hours, minutes]) => {
            hours.checked_mul(60).and_then(|sum| (sum + minutes).checked_mul(60))
        }
        (_, [hours, minutes, seconds]) => hours
            .checked_mul(60)
            .and_then(|sum| sum.checked_add(*minutes)?.checked_mul(60))
            .and_then(|sum| sum.checked_add(*seconds)),
        _ => None,
    };
    let days: u64 = days.map_or(Ok(0), str::parse).map_err(|_| fault())?;
    let seconds = seconds.and_then(|seconds| days.checked_mul(86_400)?.checked_add(seconds));
    seconds.filter(|seconds| *seconds > 0).ok_or_else(fault)
}

#[cfg(test)]
mod tests;
