//! `hostler submit`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hostler_live::api::Accepted;
use hostler_live::client::{Ask, Client, Method, query};
use hostler_live::job::{HeldBy, Indices, JobRequest, JobState, JobView, Sharing};

use crate::cli::{Share, Submit};
use crate::live::{client, print_json, state_name};
use crate::say::{print, say};

/// Time between two looks at jobs that are waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Submits, and waits where that is asked for.
pub fn run(args: &Submit) -> Result<()> {
    let request = request(args)?;
    let mut client = client()?;
    let accepted = send(&mut client, args, &request)?;
    let Accepted { first, count } = accepted;
    match args.json {
        true => print_json(&accepted)?,
        // The number of an array means all of it, in every command.
        false => print(first)?,
    }
    if request.array > 0 && !args.json {
        let indices = Indices::of(&request);
        let last = indices.at(count.saturating_sub(1));
        say(format_args!("{count} jobs, {first}_{} to {first}_{last}", indices.first));
    }
    if args.wait { wait(&mut client, accepted) } else { Ok(()) }
}

fn send(client: &mut Client, args: &Submit, request: &JobRequest) -> Result<Accepted> {
    let path = query("/jobs", &[("tenant", args.tenant.clone())]);
    let key: Vec<(&str, &str)> =
        args.key.iter().map(|key| ("idempotency-key", key.as_str())).collect();
    let body = Some(serde_json::to_vec(request)?);
    Ok(client.call(&Ask { method: Method::POST, path: &path, headers: &key, body })?)
}

/// What the file says, and on top of it what the flags say.
fn request(args: &Submit) -> Result<JobRequest> {
    let mut request = match &args.file {
        Some(file) => read(file)?,
        None => JobRequest { tasks: 1, ..JobRequest::default() },
    };
    set(&mut request.name, &args.name);
    set(&mut request.gpus, &args.gpus);
    set(&mut request.gpu_mem_mib, &args.gpu_mem);
    set(&mut request.cpus, &args.cpus);
    set(&mut request.mem_mib, &args.mem);
    set(&mut request.tasks, &args.tasks);
    set(&mut request.priority, &args.priority);
    set(&mut request.group, &args.group);
    if let Some(array) = args.array {
        request.array = array.count;
        request.array_first = array.first;
        request.array_step = array.step;
        request.array_limit = array.limit.or(request.array_limit);
    }
    set(&mut request.workdir, &args.workdir);
    set(&mut request.sharing, &args.share.map(sharing));
    request.deadline_secs = args.deadline.or(request.deadline_secs);
    request.max_secs = args.max_time.or(request.max_secs);
    request.estimate_secs = args.estimate.or(request.estimate_secs);
    request.grace_secs = args.grace.or(request.grace_secs);
    request.steps = args.steps.or(request.steps);
    request.one_node |= args.one_node;
    set(&mut request.tasks, &args.nodes);
    request.apart |= args.nodes.is_some();
    request.checkpoints |= args.checkpoints;
    request.after.extend(&args.after);
    request.env.extend(args.env.iter().cloned());
    if !args.gpu_model.is_empty() {
        request.gpu_models.clone_from(&args.gpu_model);
    }
    if !args.command.is_empty() {
        request.command.clone_from(&args.command);
    }
    if !request.workdir.is_empty() {
        request.workdir = absolute(&request.workdir)?;
    }
    if request.command.is_empty() {
        bail!("no command; write it after `--`, or `command: [..]` in the job file");
    }
    Ok(request)
}

/// A folder as nodes know it: what is relative is meant from here.
fn absolute(folder: &str) -> Result<String> {
    let path = Path::new(folder);
    if path.is_absolute() {
        return Ok(folder.to_owned());
    }
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    // `.` and what is behind it would be correct, too, but nobody wants to read it.
    let whole: PathBuf = here.join(path).components().collect();
    let text = whole.to_str().context("the current folder has a name that is no text")?;
    Ok(text.to_owned())
}

fn set<T: Clone>(field: &mut T, flag: &Option<T>) {
    if let Some(value) = flag {
        field.clone_from(value);
    }
}

fn sharing(share: Share) -> Sharing {
    match share {
        Share::Never => Sharing::Never,
        Share::Willing => Sharing::Willing,
        Share::BestEffort => Sharing::BestEffort,
    }
}

fn read(file: &Path) -> Result<JobRequest> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{name}`"))?;
    let toml = file.extension().is_some_and(|ending| ending == "toml");
    let read: Result<JobRequest> = match toml {
        true => toml::from_str(&text).map_err(anyhow::Error::from),
        false => serde_yaml_ng::from_str(&text).map_err(anyhow::Error::from),
    };
    read.with_context(|| format!("`{name}` is no job file"))
}

/// Looks until all are over; the first that did not finish well is the error.
fn wait(client: &mut Client, accepted: Accepted) -> Result<()> {
    let Accepted { first, count } = accepted;
    let mut bad = None;
    for id in first..first + count {
        let mut told = String::new();
        let job = loop {
            let job: JobView = client.get(&format!("/jobs/{id}"))?;
            if job.ended.is_some() {
                break job;
            }
            // It may be tried for a minute: whoever mistyped need not wait for that.
            if job.held_by == Some(HeldBy::Start) && job.reason != told {
                say(format_args!("job {id}: {}", job.reason));
                told = job.reason;
            }
            std::thread::sleep(LOOK_AGAIN);
        };
        let exit = job.exit_code.map_or(String::new(), |code| format!(", exit code {code}"));
        let why = if job.reason.is_empty() { "" } else { ": " };
        say(format_args!("job {id}: {}{exit}{why}{}", state_name(job.state), job.reason));
        if job.state != JobState::Finished {
            bad.get_or_insert(job);
        }
    }
    match bad {
        // What never ran has printed nothing.
        Some(JobView { id, exit_code: None, .. }) => bail!("job {id} did not finish well"),
        Some(JobView { id, .. }) => {
            bail!("job {id} did not finish well; see `hostler logs {id} --stderr`")
        }
        None => Ok(()),
    }
}
