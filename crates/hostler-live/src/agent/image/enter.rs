//! How a command that a person runs inside a job gets into the job's container: it joins the
//! namespaces of the task's first process there, by `nsenter`, as the job's user and below the
//! shim. So it is the same for every program that runs images, and ends as other commands do.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::{Container, INSIDE, Launch};
use crate::agent::processes::{self, Process};
use crate::agent::shim::ShimOrder;

/// Namespaces that a container may have of its own, as the kernel and `nsenter` call them. That of
/// users comes first: it gives the right to join the others.
const NAMESPACES: [(&str, &str); 7] = [
    ("user", "--user"),
    ("mnt", "--mount"),
    ("pid", "--pid"),
    ("ipc", "--ipc"),
    ("uts", "--uts"),
    ("net", "--net"),
    ("cgroup", "--cgroup"),
];

/// The words by which a command runs beside a task in its container, and its variables: those of
/// the task.
pub(super) fn launch(
    container: &Container,
    shim: &ShimOrder,
    rank: u32,
    command: &[String],
) -> io::Result<Launch> {
    let program = find(&shim.path).ok_or_else(|| {
        let fault = "commands get into containers by `nsenter` of util-linux, which is not there";
        io::Error::other(fault)
    })?;
    let first = first_inside(container, shim, rank).ok_or_else(|| {
        io::Error::other(format!("nothing runs in the container of task {rank} at the moment"))
    })?;
    let mut words = vec![program, "--target".to_owned(), first.pid.to_string()];
    words.extend(own_namespaces(first.pid).map(str::to_owned));
    let folder = shim.workdir.display();
    words.extend(["--preserve-credentials".to_owned(), "--root".to_owned()]);
    words.extend([format!("--wd=/proc/{}/root{folder}", first.pid), "--".to_owned()]);
    words.extend(command.iter().cloned());
    Ok(Launch { command: words, env: variables(first.pid)? })
}

/// The first process of a task that is inside of its container.
fn first_inside(container: &Container, shim: &ShimOrder, rank: u32) -> Option<Process> {
    let (socket, rank) = (shim.socket.display().to_string(), rank.to_string());
    let is_inside = |process: &Process| {
        let has = |name: &str, value: &str| processes::has_variable(process.pid, name, value);
        !process.ended
            && has(INSIDE, &container.image)
            && has("HOSTLER_SOCKET", &socket)
            && (shim.order.tasks.len() == 1 || has("RANK", &rank))
    };
    let inside = processes::processes().into_iter().filter(is_inside);
    inside.min_by_key(|process| (process.started, process.pid))
}

/// The namespaces that a process does not share with this one, in the words of `nsenter`.
fn own_namespaces(pid: u32) -> impl Iterator<Item = &'static str> {
    let of = |who: &str, name: &str| fs::read_link(format!("/proc/{who}/ns/{name}")).ok();
    NAMESPACES.into_iter().filter_map(move |(name, word)| {
        (of(&pid.to_string(), name)? != of("self", name)?).then_some(word)
    })
}

/// The variables that a process was started with, but for those by which `nsenter` would load code
/// of the image outside of the container.
fn variables(pid: u32) -> io::Result<BTreeMap<String, String>> {
    let bytes = fs::read(format!("/proc/{pid}/environ"))?;
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|pair| {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        (!is_of_loader(name)).then(|| (name.to_owned(), value.to_owned()))
    });
    Ok(pairs.collect())
}

fn is_of_loader(name: &str) -> bool {
    name.starts_with("LD_") || ["GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH"].contains(&name)
}

fn find(path: &str) -> Option<String> {
    let mut folders = path.split(':').filter(|folder| folder.starts_with('/'));
    let found = folders.find_map(|folder| {
        let program = Path::new(folder).join("nsenter");
        program.is_file().then_some(program)
    });
    found.map(|program| program.display().to_string())
}
