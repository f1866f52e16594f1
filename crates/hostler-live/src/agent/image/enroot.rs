//! The words by which enroot runs a task.
//!
//! It runs squashfs files only, so that an image of a registry is made one first, once for each
//! user of a node.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::{Container, Launch, inside, outside, recounted, told};
use crate::agent::shim::ShimOrder;
use crate::wire::TaskOrder;

/// Writes what is run in place of what the image would run by itself (the folder and the command of
/// the job), makes the file of an image unless it is there, and goes on with what follows. Files
/// are there whole or not at all: other tasks may do the same at the same time.
const PREPARE: &str = r#"
echo 'cd "$1" && shift && exec "$@"' > "$2.$$" && mv "$2.$$" "$2" || exit 125
if [ -n "$4" ] && ! [ -e "$3" ]; then
    "$1" import --output "$3.$$" -- "$4" >&2 && mv "$3.$$" "$3" || exit 125
fi
shift 4
exec "$@""#;

pub(super) fn launch(
    container: &Container,
    shim: &ShimOrder,
    task: &TaskOrder,
    env: BTreeMap<String, String>,
) -> Launch {
    let mut own = outside(container, shim);
    for (name, folder) in
        [("CACHE", "cache"), ("DATA", "data"), ("RUNTIME", "run"), ("TEMP", "tmp")]
    {
        own.insert(format!("ENROOT_{name}_PATH"), container.folder(folder));
    }
    // Its hook shows these GPUs and no others, and counts them anew.
    let gpus: Vec<String> = container.gpus(task).iter().map(u32::to_string).collect();
    let gpus = if gpus.is_empty() { "void".to_owned() } else { gpus.join(",") };
    let mut seen = inside(shim, &container.image, env);
    recounted(&mut seen, task);
    seen.insert("NVIDIA_VISIBLE_DEVICES".to_owned(), gpus);
    let (program, rc) = (container.path.display().to_string(), container.folder("data/rc"));
    let (file, from) = file(container);
    let mut command = ["/bin/sh", "-c", PREPARE, "hostler"].map(str::to_owned).to_vec();
    command.extend([program.clone(), rc.clone(), file.clone(), from]);
    command.extend([program, "start".to_owned(), "--rc".to_owned(), rc]);
    let mounts =
        container.mounted(",ro", |from, to, how| format!("{from}:{to}:x-create=auto,rbind{how}"));
    command.extend(mounts.flat_map(|mount| ["--mount".to_owned(), mount]));
    command.extend(told(seen, &mut own).flat_map(|word| ["--env".to_owned(), word]));
    command.extend(container.args.iter().cloned());
    command.extend(["--".to_owned(), file, shim.workdir.display().to_string()]);
    command.extend(shim.order.command.iter().cloned());
    Launch { command, env: own }
}

/// The file of an image, and what it is made of where it must be.
fn file(container: &Container) -> (String, String) {
    match container.image.strip_prefix("docker://") {
        Some(name) => {
            let digest = Sha256::digest(name.as_bytes());
            let digest = data_encoding::HEXLOWER.encode(&digest[..16]);
            (container.folder(&format!("data/{digest}.sqsh")), uri(name))
        }
        None => (container.image.clone(), String::new()),
    }
}

/// The name of an image as enroot writes it: the registry stands before `#`.
fn uri(name: &str) -> String {
    match name.split_once('/') {
        Some((registry, rest)) if registry.contains(['.', ':']) || registry == "localhost" => {
            format!("docker://{registry}#{rest}")
        }
        _ => format!("docker://{name}"),
    }
}
