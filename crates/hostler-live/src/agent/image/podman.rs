//! The words by which Podman runs a task.
//!
//! It is told not to make control groups and namespaces of network and shared memory of its own:
//! limits and ports are as for every other task, and libraries of GPUs find what they need. Without
//! control groups it insists on numbers of processes of its own. What it runs is below its
//! `conmon`, and that below the shim.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::{Resource, geteuid, getrlimit};

use super::{Container, Launch, inside, outside, recounted, told};
use crate::agent::shim::ShimOrder;
use crate::agent::user::JobUser;
use crate::image::{ImageKind, path_of};
use crate::wire::TaskOrder;

pub(super) fn launch(
    container: &Container,
    shim: &ShimOrder,
    task: &TaskOrder,
    env: BTreeMap<String, String>,
) -> Launch {
    let mut seen = inside(shim, &container.image, env);
    recounted(&mut seen, task);
    let mut own = outside(container, shim);
    let mut command = program(container);
    let name = Container::name(shim, task.rank);
    command.extend(words(&["run", "--rm", "--replace", "--name", &name]));
    command.extend(words(&["--cgroups=disabled", "--network=host"]));
    // It cannot show all of that where the machine has no queues of messages.
    let has_queues = Path::new("/dev/mqueue").exists();
    command.push(if has_queues { "--ipc=host" } else { "--volume=/dev/shm:/dev/shm" }.to_owned());
    command.extend(limits());
    command.extend(words(&["--security-opt=no-new-privileges", "--security-opt=label=disable"]));
    // Output goes to the shim, which bounds it.
    command.extend(words(&["--log-driver=none", "--workdir", &shim.workdir.display().to_string()]));
    command.extend(container.mounted(":ro", |from, to, how| format!("--volume={from}:{to}{how}")));
    let gpus = container.gpus(task).into_iter();
    command.extend(gpus.map(|gpu| format!("--device=nvidia.com/gpu={gpu}")));
    command.extend(told(seen, &mut own).map(|word| format!("--env={word}")));
    command.extend(container.args.iter().cloned());
    command.extend(image(container, &shim.order.command, shim.user.as_ref()));
    Launch { command, env: own }
}

/// The image and what is run in it, in place of what the image would run by itself.
fn image(container: &Container, command: &[String], user: Option<&JobUser>) -> Vec<String> {
    let image = container.image.as_str();
    let (program, arguments) =
        command.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
    let entry = serde_json::to_string(&[program]).expect("text is JSON");
    let mut all = vec![format!("--entrypoint={entry}")];
    match (ImageKind::of(image), path_of(image)) {
        (Some(ImageKind::Folder), Some(path)) if is_own(path, user) => {
            // What the job writes to the folder goes with it.
            all.extend(["--rootfs".to_owned(), format!("{path}:O")]);
        }
        // Layers over what belongs to somebody else need more than one user inside.
        (Some(ImageKind::Folder), Some(path)) => {
            all.extend(words(&["--read-only", "--rootfs", path]));
        }
        _ => all.push(container.source()),
    }
    all.extend(arguments.iter().cloned());
    all
}

/// Whether a folder can have a layer over it: the job's user owns it, or is root.
fn is_own(path: &str, user: Option<&JobUser>) -> bool {
    let uid = user.map_or_else(|| geteuid().as_raw(), |user| user.uid);
    uid == 0 || std::fs::metadata(path).is_ok_and(|folder| folder.uid() == uid)
}

/// The limits that tasks have outside, which it would raise: not everybody may.
fn limits() -> Vec<String> {
    let most = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    let most = most.and_then(|text| text.trim().parse::<u64>().ok());
    let word = |name: &str, resource: Resource, most: Option<u64>| {
        let limit = getrlimit(resource);
        let bound = |value: Option<u64>| value.into_iter().chain(most).min();
        let (soft, hard) = (bound(limit.current)?, bound(limit.maximum)?);
        Some(format!("--ulimit={name}={}:{hard}", soft.min(hard)))
    };
    let files = word("nofile", Resource::Nofile, None);
    files.into_iter().chain(word("nproc", Resource::Nproc, most)).collect()
}

/// What takes the containers of a lease away.
pub(super) fn remove(container: &Container, shim: &ShimOrder) -> Launch {
    let mut command = program(container);
    command.extend(words(&["rm", "--force", "--ignore", "--time=0"]));
    command.extend(shim.order.tasks.iter().map(|task| Container::name(shim, task.rank)));
    Launch { command, env: outside(container, shim) }
}

fn program(container: &Container) -> Vec<String> {
    let mut command = vec![container.path.display().to_string()];
    // Its own folders, so that no session of the user and no home are needed.
    command.push(format!("--root={}", container.folder("data")));
    command.push(format!("--runroot={}", container.folder("run")));
    command.extend(words(&["--cgroup-manager=cgroupfs", "--events-backend=none"]));
    command.push("--log-level=error".to_owned());
    command
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
