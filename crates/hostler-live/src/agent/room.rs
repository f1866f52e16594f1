//! Whether the agent's disk takes anything: what a job prints must have a place before it starts.
//!
//! Found out by writing, which quotas, read-only file systems and broken disks have a word in.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::core::AgentInput;
use super::shell::Incoming;

/// Bytes that there must be room for: the records of some jobs and the beginning of their output.
const ROOM_BYTES: usize = 256 << 10;

/// Seconds between two looks.
const LOOK_SECS: u64 = 2;

/// Looks again and again, and at once when `asked`, and tells what changes.
pub(super) async fn watch(data: PathBuf, asked: Arc<Notify>, inbox: mpsc::Sender<Incoming>) {
    let mut known = None;
    while !inbox.is_closed() {
        let folder = data.clone();
        let look = tokio::task::spawn_blocking(move || look(&folder).err());
        let Ok(fault) = look.await else { return };
        let unable = fault.map(|fault| {
            format!("cannot write to the agent's folder `{}`: {fault}", data.display())
        });
        if unable != known {
            match &unable {
                Some(unable) => tracing::error!("no job is started here: {unable}"),
                None => tracing::info!("the agent's folder can be written to again"),
            }
            known.clone_from(&unable);
            let _ = inbox.send(Incoming::Happened(AgentInput::Unable(unable))).await;
        }
        let pause = tokio::time::sleep(Duration::from_secs(LOOK_SECS));
        tokio::select! { () = pause => {}, () = asked.notified() => {} }
    }
}

/// Writes as much as there must be room for, and takes it away again.
fn look(data: &Path) -> io::Result<()> {
    let path = data.join("room");
    let mut options = OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&path)?;
    let written = file.write_all(&vec![0; ROOM_BYTES]);
    drop(file);
    fs::remove_file(&path)?;
    written
}
