//! Where a job tells about itself: a Unix socket with lines like `step 40 total 100 saved` and
//! `gpu-use 0.35`, each answered by `ok` or by what is wrong with it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use rustix::process::{Gid, Uid};

use super::{Happened, ShimOrder};
use crate::agent::progress;

/// Connections of a job at a time; a thread is kept for each.
const CONNECTIONS_MAX: usize = 16;

/// Bytes of a line.
const LINE_BYTES_MAX: u64 = 256;

/// Listens from now on. Only the job's user may connect.
pub(super) fn listen(shim: &ShimOrder, happened: SyncSender<Happened>) -> io::Result<()> {
    let listener = UnixListener::bind(&shim.socket)?;
    std::fs::set_permissions(&shim.socket, std::fs::Permissions::from_mode(0o600))?;
    if let Some(user) = &shim.user {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::chown(&shim.socket, Some(uid), Some(gid))?;
    }
    let open = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (open, happened) = (open.clone(), happened.clone());
            thread::spawn(move || {
                serve(stream, &happened);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

fn serve(stream: UnixStream, happened: &SyncSender<Happened>) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        match reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let answer = match progress::parse(&line) {
            Ok(word) => {
                // One that finds no room is followed by a newer one.
                let _ = happened.try_send(Happened::Told(word));
                "ok\n".to_owned()
            }
            Err(fault) => format!("error: {fault}\n"),
        };
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
