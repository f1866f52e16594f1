//! Scripts that travel with their job: written beside its lease, and read by the program that their
//! first line names.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{AtFlags, CWD};
use rustix::process::{Gid, Uid};

use super::folder::LeaseFolder;
use super::user::JobUser;
use crate::wire::StartOrder;

/// Writes the script of an order, if it has one, where only the job's user reads it, and makes the
/// command one that runs it.
pub(super) fn place(
    order: &mut StartOrder,
    folder: &LeaseFolder,
    user: Option<&JobUser>,
) -> io::Result<()> {
    if order.script.is_empty() {
        return Ok(());
    }
    let path = folder.script();
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o500).open(&path)?;
    file.write_all(order.script.as_bytes())?;
    if let Some(user) = user.filter(|user| user.uid != rustix::process::geteuid().as_raw()) {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::chownat(CWD, &path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    let path = path.to_str().ok_or_else(|| io::Error::other("the data folder is no text"))?;
    let arguments = order.command.iter().skip(1).cloned();
    order.command =
        reader(&order.script).into_iter().chain([path.to_owned()]).chain(arguments).collect();
    order.script.clear();
    Ok(())
}

/// The program that reads a script and its one argument, as the kernel takes them from the first
/// line. Folders from which nothing may be run are no hindrance to it.
fn reader(script: &str) -> Vec<String> {
    let line = script.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or_default();
    let (program, argument) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
    let words = [program, argument.trim()];
    words.iter().filter(|word| !word.is_empty()).map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_who_reads_it() {
        assert_eq!(reader("#!/bin/bash -l  \necho"), ["/bin/bash", "-l"]);
        assert_eq!(reader("#! /usr/bin/env python3\n"), ["/usr/bin/env", "python3"]);
        assert_eq!(reader("#!/usr/bin/env -S a b\n"), ["/usr/bin/env", "-S a b"]);
        assert_eq!(reader("#!/bin/sh"), ["/bin/sh"]);
    }
}
