//! What `hostler submit` sends: a job file or a script, the lines in it, and the flags.
//!
//! Later words beat earlier ones: `#SBATCH` lines, then `#HOSTLER` lines or what a job file says,
//! then the command line.

mod fields;
mod file;
mod here;
pub mod sbatch;
pub mod schema;
pub mod script;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hostler_live::job::{JobRequest, Sharing};
use hostler_live::notice::NotifyEvent;

use crate::cli::{Notify, Share, Submit};

pub use file::text;
pub use here::{Export, export, settle};
pub use words::split;

/// A job as it is sent, and what its author should know of it.
#[derive(Debug)]
pub struct Submission {
    /// What is sent.
    pub request: JobRequest,
    /// Lines of the script that were understood otherwise than Slurm does, or not at all.
    pub notes: Vec<String>,
    /// Whether the script itself asks to wait for the end.
    pub wait: bool,
    /// Which variables go along; what is usual when none.
    pub export: Option<Export>,
}

impl Submission {
    /// A job of which nothing else is said.
    pub fn of(request: JobRequest) -> Submission {
        Submission { request, notes: Vec::new(), wait: false, export: None }
    }
}

/// What file, lines and flags say.
pub fn read(args: &Submit) -> Result<Submission> {
    let mut job = match &args.file {
        Some(file) => of_file(file)?,
        None => Submission::of(JobRequest::default()),
    };
    apply(&mut job.request, args);
    job.export = args.export.clone().or(job.export);
    export(&mut job)?;
    let request = &mut job.request;
    let more = args.args.iter().chain(&args.command).cloned();
    if !request.script.is_empty() {
        request.command.extend(more);
    } else if !args.args.is_empty() {
        bail!("`{}`: only scripts take arguments; a command stands after `--`", args.args[0]);
    } else if !args.command.is_empty() {
        request.command.clone_from(&args.command);
    }
    localize(request)?;
    if request.command.is_empty() {
        bail!("no command; write it after `--`, or `command = ..` in the job file");
    }
    Ok(job)
}

/// A script, or a job file by its ending.
fn of_file(file: &Path) -> Result<Submission> {
    let name = file.display();
    if !file.exists() && is_program(file) {
        bail!("`{name}` is a program, and no script or job file here; a command stands after `--`");
    }
    let bytes = std::fs::read(file).with_context(|| format!("cannot read `{name}`"))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| anyhow::anyhow!("`{name}` is no text: neither a script nor a job file"))?;
    if text.starts_with("#!") {
        return script::read(file, text);
    }
    Ok(Submission::of(file::read(file, &text)?))
}

/// Whether a word is the name of a program that would be found.
fn is_program(word: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    word.components().count() == 1 && folders.any(|folder| folder.join(word).is_file())
}

/// Puts flags on top of what a job has been told before.
pub fn apply(request: &mut JobRequest, args: &Submit) {
    set(&mut request.name, &args.name);
    set(&mut request.gpus, &args.gpus);
    set(&mut request.gpu_mem_mib, &args.gpu_mem);
    set(&mut request.cpus, &args.cpus);
    set(&mut request.mem_mib, &args.mem);
    set(&mut request.tasks, &args.tasks);
    set(&mut request.priority, &args.priority);
    set(&mut request.group, &args.group);
    set(&mut request.reservation, &args.reservation);
    if let Some(array) = args.array {
        request.array = array.count;
        request.array_first = array.first;
        request.array_step = array.step;
        request.array_limit = array.limit;
    }
    set(&mut request.workdir, &args.workdir);
    set(&mut request.image, &args.image);
    request.mounts.extend(args.mount.iter().cloned());
    set(&mut request.sharing, &args.share.map(sharing));
    request.deadline_secs = args.deadline.or(request.deadline_secs);
    request.max_secs = args.max_time.or(request.max_secs);
    request.estimate_secs = args.estimate.or(request.estimate_secs);
    request.grace_secs = args.grace.or(request.grace_secs);
    request.steps = args.steps.or(request.steps);
    request.skew = args.skew.or(request.skew);
    set(&mut request.tasks, &args.nodes);
    // Where the tasks go is one thing, whichever flag says it.
    if args.tasks.is_some() || args.nodes.is_some() || args.one_node {
        request.apart = args.nodes.is_some();
        request.one_node = args.one_node;
    }
    request.checkpoints |= args.checkpoints;
    request.no_suspend |= args.no_suspend;
    tell(request, args);
    request.after.extend(&args.after);
    request.env.extend(args.env.iter().cloned());
    if !args.gpu_model.is_empty() {
        request.gpu_models.clone_from(&args.gpu_model);
    }
}

/// Of what to tell, and where.
fn tell(request: &mut JobRequest, args: &Submit) {
    if !args.notify.is_empty() {
        request.notify = events(&args.notify);
    }
    set(&mut request.mail_to, &args.mail_to);
    if args.notify.contains(&Notify::None) {
        request.mail_to.clear();
    } else if args.mail_to.is_some() && request.notify.is_empty() {
        request.notify = vec![NotifyEvent::End];
    }
}

/// Events without those that are named twice.
pub fn events(words: &[Notify]) -> Vec<NotifyEvent> {
    let all = [
        (Notify::Start, NotifyEvent::Start),
        (Notify::End, NotifyEvent::End),
        (Notify::Fail, NotifyEvent::Fail),
    ];
    let asked = |word| words.contains(&word) || words.contains(&Notify::All);
    all.into_iter().filter(|(word, _)| asked(*word)).map(|(_, event)| event).collect()
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
    }
}

/// Makes what is named from here what is named from `/` on.
pub fn localize(request: &mut JobRequest) -> Result<()> {
    if !request.workdir.is_empty() && request.workdir != here::PRIVATE {
        request.workdir = absolute(&request.workdir)?;
    }
    if !request.image.is_empty() {
        request.image = image(&request.image)?;
    }
    for mount in &mut request.mounts {
        let (from, rest) =
            mount.split_once(':').map_or((mount.as_str(), None), |(from, rest)| (from, Some(rest)));
        *mount = match rest {
            Some(rest) => format!("{}:{rest}", absolute(from)?),
            None => absolute(from)?,
        };
    }
    Ok(())
}

/// An image as nodes know it: a word that looks like no file and is none here is a name of a
/// registry.
fn image(image: &str) -> Result<String> {
    if image.contains("://") {
        return Ok(image.to_owned());
    }
    for archive in ["oci-archive:", "docker-archive:"] {
        if let Some(path) = image.strip_prefix(archive) {
            return Ok(format!("{archive}{}", absolute(path)?));
        }
    }
    let is_path = image.starts_with(['/', '.'])
        || [".sif", ".sqsh", ".squashfs", ".tar"].iter().any(|ending| image.ends_with(ending));
    match is_path || Path::new(image).exists() {
        true => absolute(image),
        false => Ok(format!("docker://{image}")),
    }
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
