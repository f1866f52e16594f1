//! What Slurm's commands print, read with tolerance: unknown fields are left out, any field may be
//! missing, and any number may be wrapped as later versions do.

use serde_json::Value;

use super::words::{self, Gpus};

/// A job as Slurm tells of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlurmJob {
    /// What commands call it: `12`, or `12_3` for a task of an array.
    pub name_there: String,
    /// The array that it is of, and how many of that may run at once.
    pub array: Option<(u32, Option<u32>)>,
    /// What commands call it together with the others of its array that Slurm keeps as one.
    pub together: Option<String>,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// Whom it is charged to.
    pub account: String,
    /// Where it waits or runs.
    pub partition: String,
    /// Where it stands.
    pub stands: Stands,
    /// Why it waits, in a word of Slurm's.
    pub reason: String,
    /// Zero while it is held.
    pub priority: u64,
    /// GPUs, or why they cannot be told.
    pub gpus: Asked,
    /// The least number of nodes.
    pub nodes: u32,
    /// The most nodes, where a number was asked for.
    pub nodes_max: Option<u32>,
    /// Cores, over all nodes.
    pub cpus: u32,
    /// Cores for each GPU, where so asked.
    pub cpus_per_gpu: u32,
    /// Memory in MiB.
    pub mem: Memory,
    /// Seconds that it may run.
    pub limit_secs: Option<u64>,
    /// When it was submitted, in seconds since the epoch.
    pub submitted: u64,
    /// When it may begin at the earliest.
    pub eligible: u64,
    /// When it began.
    pub started: Option<u64>,
    /// When it ended.
    pub ended: Option<u64>,
    /// Where it runs or ran.
    pub on: Vec<String>,
    /// GPUs that it has on each of these, where Slurm tells.
    pub gpus_on: Vec<u32>,
    /// Where it is to run.
    pub required: Vec<String>,
    /// What was given to it.
    pub given: String,
    /// What it comes after.
    pub after: String,
    /// Exit code, 128 + signal when killed by one.
    pub exit_code: Option<i32>,
    /// Whether Slurm may start it again.
    pub requeues: bool,
    /// How often it was.
    pub restarts: u32,
    /// What Hostler does not place, in words; empty otherwise.
    pub beyond: String,
    /// What was last told about it by an operator or a scheduler.
    pub comment: String,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stands {
    /// It waits.
    #[default]
    Waits,
    /// Its nodes are being made ready.
    Begins,
    /// It runs, or is stopped in memory.
    Runs,
    /// It ends.
    Ends,
    /// It is over.
    Over(End),
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Well.
    Finished,
    /// By itself, not well.
    Failed,
    /// A person ended it.
    Cancelled,
    /// It ran into its time limit.
    TimedOut,
    /// Its nodes failed, or Slurm ended it in favour of others.
    Lost,
}

/// What a job asks for of GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Asked {
    /// None.
    #[default]
    None,
    /// So many on each node.
    OnEachNode(Gpus),
    /// So many in all.
    InAll(Gpus),
    /// So many for each of its tasks, of which there are so many.
    ForEachTask(Gpus, u32),
    /// What cannot be told.
    Unclear(String),
}

/// What a job asks for of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// So much on each node.
    OnEachNode(u64),
    /// So much for each core.
    ForEachCore(u64),
    /// So much for each GPU.
    ForEachGpu(u64),
}

/// What changes about a job from one look to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlurmBrief {
    /// What commands call it.
    pub name_there: String,
    /// Where it stands.
    pub stands: Stands,
    /// Where it waits or runs.
    pub partition: String,
    /// Where it runs.
    pub on: Vec<String>,
    /// Zero while it is held.
    pub priority: u64,
    /// Why it waits.
    pub reason: String,
    /// When it began.
    pub started: Option<u64>,
    /// When it ended.
    pub ended: Option<u64>,
}

/// A node as Slurm tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SlurmNode {
    /// Its name.
    pub name: String,
    /// Partitions that it is in.
    pub partitions: Vec<String>,
    /// Its state, as in `idle` or `drained*`.
    pub state: String,
    /// Cores, as Slurm counts them.
    pub cpus: u32,
    /// Memory in MiB.
    pub mem: u64,
    /// Threads of each core.
    pub threads: u32,
    /// GPUs, or why they cannot be told.
    pub gpus: Result<Gpus, String>,
    /// Why it takes no jobs, in the words of its operator.
    pub reason: String,
    /// Whether it is kept for somebody at this time.
    pub reserved: bool,
}

impl SlurmNode {
    /// The model of its GPUs; those without a name go by what they are.
    pub fn gpu_model(&self) -> Option<&str> {
        let gpus = self.gpus.as_ref().ok().filter(|gpus| gpus.count > 0)?;
        Some(gpus.model.as_deref().unwrap_or("gpu"))
    }

    /// Whether it takes jobs.
    pub fn takes_jobs(&self) -> bool {
        let base = self.state.trim_end_matches(|letter: char| !letter.is_ascii_alphabetic());
        let well = ["idle", "mixed", "mix", "allocated", "alloc", "completing", "comp", "planned"];
        // Slurm wakes a node that sleeps (`~`, `#`) when a job is started there.
        let answers = !self.state.contains(['*', '!', '%', '@', '^', '$']);
        !self.reserved && answers && base.split('+').all(|word| well.contains(&word))
    }

    /// Whether nothing runs there any more, as far as Slurm knows.
    pub fn is_down(&self) -> bool {
        ["down", "powered_down", "powering_down", "future", "unknown", "unk", "error"]
            .iter()
            .any(|word| self.state.starts_with(word))
    }
}

/// Jobs of `squeue --json`. Elements of arrays that wait together are told apart.
pub fn jobs(printed: &str) -> Result<Vec<SlurmJob>, String> {
    let listing: Value = serde_json::from_str(printed).map_err(|fault| fault.to_string())?;
    // Without its controller, `squeue` ends well and lists no jobs, beside an error.
    let errors = listing.get("errors").and_then(Value::as_array);
    if let Some(error) = errors.and_then(|errors| errors.first()) {
        let said = [text(error, "description"), text(error, "error")].join(": ");
        return Err(words::sentence(&said));
    }
    let jobs = listing.get("jobs").and_then(Value::as_array);
    let jobs = jobs.ok_or("`squeue --json` printed no list of jobs")?;
    Ok(jobs.iter().flat_map(job).collect())
}

/// One job, or all those that one entry stands for.
fn job(entry: &Value) -> Vec<SlurmJob> {
    let Some(id) = number(entry, "job_id") else { return Vec::new() };
    let plain = details(entry);
    let array = number(entry, "array_job_id").filter(|array| *array > 0);
    let Some(array) = array else {
        return vec![SlurmJob { name_there: id.to_string(), ..plain }];
    };
    let most = number(entry, "array_max_tasks").filter(|most| *most > 0);
    let of = Some((array as u32, most.map(|most| most as u32)));
    if let Some(task) = number(entry, "array_task_id") {
        return vec![SlurmJob { name_there: format!("{array}_{task}"), array: of, ..plain }];
    }
    let listed = text(entry, "array_task_string");
    match words::tasks(&listed) {
        Some((tasks, _)) => {
            let list = listed.split('%').next().unwrap_or_default();
            let together = Some(format!("{array}_[{list}]"));
            let one = |task: u32| SlurmJob {
                name_there: format!("{array}_{task}"),
                array: of,
                together: together.clone(),
                ..plain.clone()
            };
            tasks.into_iter().map(one).collect()
        }
        None => {
            let beyond = "which tasks its array has cannot be told".to_owned();
            vec![SlurmJob { name_there: id.to_string(), array: of, beyond, ..plain }]
        }
    }
}

fn details(entry: &Value) -> SlurmJob {
    let time = |key: &str| number(entry, key).filter(|secs| *secs > 0);
    let list = |key: &str| words::nodes(&text(entry, key)).unwrap_or_default();
    let stands = stands(&states(entry));
    let over = matches!(stands, Stands::Over(_) | Stands::Ends);
    let wanted = text(entry, "tres_req_str");
    let for_gpus = words::for_each_gpu(&text(entry, "memory_per_tres"));
    let mem = match (number(entry, "memory_per_node"), number(entry, "memory_per_cpu")) {
        // What is the default of a cluster is shown beside it.
        _ if for_gpus.is_some() => Memory::ForEachGpu(for_gpus.unwrap_or(0)),
        (Some(mem), _) if mem > 0 => Memory::OnEachNode(mem),
        (_, Some(mem)) if mem > 0 => Memory::ForEachCore(mem),
        (_, _) => Memory::Unsaid,
    };
    let cpus_per_gpu = words::for_each_gpu(&text(entry, "cpus_per_tres")).unwrap_or(0);
    SlurmJob {
        name: text(entry, "name"),
        user: text(entry, "user_name"),
        account: text(entry, "account"),
        partition: text(entry, "partition"),
        stands,
        reason: text(entry, "state_reason"),
        priority: number(entry, "priority").unwrap_or(1),
        gpus: asked(entry),
        // What a job with tasks but no number of nodes is shown with is a guess of Slurm's.
        nodes: words::of_tres(&wanted, "node").or(number(entry, "node_count")).unwrap_or(1) as u32,
        nodes_max: number(entry, "max_nodes").filter(|most| *most > 0).map(|most| most as u32),
        cpus: number(entry, "cpus").unwrap_or(1) as u32,
        cpus_per_gpu: u32::try_from(cpus_per_gpu).unwrap_or(u32::MAX),
        mem,
        limit_secs: number(entry, "time_limit").filter(|mins| *mins > 0).map(|mins| mins * 60),
        submitted: number(entry, "submit_time").unwrap_or(0),
        eligible: number(entry, "eligible_time").unwrap_or(0),
        started: time("start_time"),
        ended: time("end_time").filter(|_| over),
        on: list("nodes"),
        gpus_on: gpus_on(entry),
        required: list("required_nodes"),
        given: text(entry, "tres_alloc_str"),
        after: text(entry, "dependency"),
        exit_code: exit_code(entry),
        requeues: entry.get("requeue").and_then(Value::as_bool).unwrap_or(false),
        restarts: number(entry, "restart_cnt").unwrap_or(0) as u32,
        beyond: beyond(entry),
        comment: text(entry, "admin_comment"),
        ..SlurmJob::default()
    }
}

/// What a job asks for that is not placed here.
fn beyond(entry: &Value) -> String {
    if number(entry, "het_job_id").is_some_and(|id| id > 0) {
        return "it is a part of a heterogeneous job".to_owned();
    }
    // Later versions have a field of its own for it.
    let alone = [words_of(entry, "shared"), words_of(entry, "exclusive")].concat();
    let alone = |wanted: &[&str]| alone.iter().any(|word| wanted.contains(&word.as_str()));
    if alone(&["none", "true", "user", "mcs", "topo"]) {
        let option = if alone(&["user", "mcs"]) { "--exclusive=USER" } else { "--exclusive" };
        return format!("it asks for whole nodes (`{option}`)");
    }
    for (key, option) in [
        ("features", "--constraint"),
        ("prefer", "--prefer"),
        ("excluded_nodes", "--exclude"),
        ("resv_name", "--reservation"),
        ("burst_buffer", "--bb"),
    ] {
        let said = text(entry, key);
        if !said.is_empty() {
            return format!("it asks for `{option}={}`", words::sentence(&said));
        }
    }
    String::new()
}

/// GPUs of each node of a job, as in `gpu:v100:2(IDX:0-1)`.
fn gpus_on(entry: &Value) -> Vec<u32> {
    let nodes = entry.get("gres_detail").and_then(Value::as_array);
    let nodes = nodes.into_iter().flatten().filter_map(Value::as_str);
    nodes.map(|said| words::whole_gpus(said).map_or(0, |gpus| gpus.count)).collect()
}

fn asked(entry: &Value) -> Asked {
    let keys = ["tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"];
    let mut found = Asked::None;
    for key in keys {
        let said = text(entry, key);
        if said.is_empty() {
            continue;
        }
        let gpus = match words::gpus(&said) {
            Ok(gpus) if gpus.count == 0 => continue,
            Ok(gpus) => gpus,
            Err(fault) => return Asked::Unclear(fault),
        };
        // A second way to say the same says nothing new.
        if found != Asked::None {
            continue;
        }
        found = match key {
            "tres_per_node" => Asked::OnEachNode(gpus),
            "tres_per_job" => Asked::InAll(gpus),
            "tres_per_task" => {
                Asked::ForEachTask(gpus, number(entry, "tasks").unwrap_or(1).max(1) as u32)
            }
            _ => Asked::Unclear("GPUs for each socket are not placed by Hostler".to_owned()),
        };
    }
    found
}

/// Code of a process, whatever the version calls it.
fn exit_code(entry: &Value) -> Option<i32> {
    let status = entry.get("exit_code")?;
    if let Some(raw) = wrapped(status) {
        let (code, signal) = ((raw >> 8) & 0xff, raw & 0x7f);
        return Some(if signal > 0 { 128 + signal as i32 } else { code as i32 });
    }
    let signal = status.get("signal").and_then(|signal| {
        wrapped(signal.get("id")?).or_else(|| wrapped(signal.get("signal_id")?))
    });
    match signal.filter(|signal| *signal > 0) {
        Some(signal) => Some(128 + signal as i32),
        None => Some(wrapped(status.get("return_code")?)? as i32),
    }
}

/// Words for the state of a job: one in earlier versions, a list in later ones.
fn states(entry: &Value) -> Vec<String> {
    match entry.get("job_state") {
        Some(_) => words_of(entry, "job_state"),
        None => entry.get("state").map(|state| words_of(state, "current")).unwrap_or_default(),
    }
}

/// The words of a field: one, or a list.
fn words_of(entry: &Value, key: &str) -> Vec<String> {
    match entry.get(key) {
        Some(Value::String(word)) => vec![word.clone()],
        Some(Value::Array(words)) => {
            words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// Where a job with these words stands.
pub fn stands(words: &[String]) -> Stands {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    // A job that ends is shown with the state that it goes to beside that.
    if has(&["COMPLETING", "STAGE_OUT"]) {
        return Stands::Ends;
    }
    if has(&["CONFIGURING"]) {
        return Stands::Begins;
    }
    if has(&["REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "PENDING"]) {
        return Stands::Waits;
    }
    if has(&["RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"]) {
        return Stands::Runs;
    }
    let end = words.iter().find_map(|word| match word.as_str() {
        "COMPLETED" => Some(End::Finished),
        "CANCELLED" | "REVOKED" => Some(End::Cancelled),
        "TIMEOUT" | "DEADLINE" => Some(End::TimedOut),
        "NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED" | "LAUNCH_FAILED" | "RECONFIG_FAIL" => {
            Some(End::Lost)
        }
        "FAILED" | "OUT_OF_MEMORY" => Some(End::Failed),
        _ => None,
    });
    // A word of a version to come: somebody is there as long as nobody says otherwise.
    end.map_or(Stands::Runs, Stands::Over)
}

fn text(entry: &Value, key: &str) -> String {
    entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(entry: &Value, key: &str) -> Option<u64> {
    wrapped(entry.get(key)?)
}

/// A number, bare or with what later versions say about it; none where it is not set or has no
/// bounds.
fn wrapped(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::Object(said) => {
            let is = |key: &str| said.get(key).and_then(Value::as_bool);
            let counts = is("set") != Some(false) && is("infinite") != Some(true);
            said.get("number").filter(|_| counts).and_then(Value::as_u64)
        }
        _ => None,
    }
}

/// What `squeue -o` is asked to print of each job at every look.
pub const BRIEF: &str = "%i|%T|%P|%N|%Q|%S|%e|%r";

/// Jobs as [`BRIEF`] prints them, one on a line.
pub fn briefs(text: &str) -> Vec<SlurmBrief> {
    text.lines().filter_map(brief).collect()
}

fn brief(line: &str) -> Option<SlurmBrief> {
    let fields: Vec<&str> = line.splitn(8, '|').collect();
    let [id, state, partition, on, priority, started, ended, reason] = fields[..] else {
        return None;
    };
    // Parts of heterogeneous jobs go by other names elsewhere, and nothing is done about them.
    if id.contains('+') {
        return None;
    }
    Some(SlurmBrief {
        name_there: id.to_owned(),
        stands: stands(&[state.to_owned()]),
        partition: partition.to_owned(),
        on: words::nodes(on).unwrap_or_default(),
        priority: priority.parse().unwrap_or(1),
        reason: reason.to_owned(),
        started: started.parse().ok(),
        ended: ended.parse().ok(),
    })
}

/// What `sinfo -N -o` is asked to print.
pub const NODES: &str = "%N|%P|%T|%c|%m|%Z|%G|%E";

/// Nodes as [`NODES`] prints them: a line for each partition of each.
pub fn nodes(text: &str) -> Vec<SlurmNode> {
    let mut nodes: Vec<SlurmNode> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(8, '|').collect();
        let [name, partition, state, cpus, mem, threads, gres, reason] = fields[..] else {
            continue;
        };
        let partition = partition.trim_end_matches('*').to_owned();
        if let Some(known) = nodes.iter_mut().rev().find(|known| known.name == name) {
            known.partitions.push(partition);
            continue;
        }
        let digits = |text: &str| text.trim_end_matches('+').parse::<u64>().unwrap_or(0);
        nodes.push(SlurmNode {
            name: name.to_owned(),
            partitions: vec![partition],
            state: state.to_ascii_lowercase(),
            cpus: digits(cpus) as u32,
            mem: digits(mem),
            threads: digits(threads).max(1) as u32,
            gpus: words::whole_gpus(gres),
            reason: if reason == "none" { String::new() } else { words::sentence(reason) },
            reserved: false,
        });
    }
    nodes
}

/// Nodes that are kept for somebody now, as `scontrol -o show reservation` prints reservations.
pub fn reserved(text: &str) -> Vec<String> {
    let active =
        text.lines().filter(|line| line.split_whitespace().any(|word| word == "State=ACTIVE"));
    let lists = active
        .filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix("Nodes=")));
    lists.filter_map(words::nodes).flatten().collect()
}

/// What `sacct` is asked to print of a job that the queue has forgotten.
pub const ENDED: &str = "JobID,State,ExitCode,Start,End,NodeList";

/// How jobs ended, as `sacct -X -P -n` prints them with [`ENDED`]: the last line of each counts.
pub fn ends(text: &str) -> Vec<SlurmJob> {
    let mut ends: Vec<SlurmJob> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [id, state, code, started, ended, on] = fields[..] else { continue };
        // It may say by whom: `CANCELLED by 1000`.
        let state = state.split(' ').next().unwrap_or_default().to_owned();
        let mut code = code.split(':').map(|part| part.parse::<i32>().unwrap_or(0));
        let (code, signal) = (code.next(), code.next().filter(|signal| *signal > 0));
        ends.retain(|known| known.name_there != id);
        ends.push(SlurmJob {
            name_there: id.to_owned(),
            stands: stands(&[state]),
            exit_code: signal.map(|signal| 128 + signal).or(code),
            started: started.parse().ok(),
            ended: ended.parse().ok(),
            // One that never ran has `None assigned`.
            on: words::nodes(on).filter(|_| on != "None assigned").unwrap_or_default(),
            ..SlurmJob::default()
        });
    }
    ends
}

#[cfg(test)]
mod tests;
