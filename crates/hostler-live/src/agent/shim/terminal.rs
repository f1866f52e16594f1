//! Terminals of jobs: a pair of ends, of which the shim keeps one.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Gid, Uid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::agent::user::JobUser;
use crate::stream::TerminalSize;

/// Opens a terminal; gives the shim's end and that of the job, which belongs to its user: programs
/// open it again by its name.
pub(super) fn open(size: TerminalSize, user: Option<&JobUser>) -> io::Result<(File, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    if let Some(user) = user {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::fchown(&theirs, Some(uid), Some(gid))?;
        rustix::fs::fchmod(&theirs, rustix::fs::Mode::from_raw_mode(0o600))?;
    }
    resize(&ours, size);
    Ok((File::from(ours), theirs))
}

/// Gives a terminal another size; its programs are told by a signal.
pub(super) fn resize(terminal: impl AsFd, size: TerminalSize) {
    let TerminalSize { columns, rows } = size;
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // A terminal that is gone has no size.
    let _ = tcsetwinsize(terminal, size);
}
