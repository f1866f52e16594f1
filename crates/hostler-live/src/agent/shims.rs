//! Where shims find the agent: one Unix socket, a connection for each shim.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use hostler_core::id::LeaseId;

use super::core::AgentInput;
use super::shell::Incoming;
use super::shim::{FromShim, StopTold};

/// Bytes of one message of a shim: the exits of a full node fit.
const LINE_BYTES_MAX: u64 = 256 << 10;

/// Orders that wait for one shim.
const STOPS_MAX: usize = 16;

/// Listens for shims from now on. Only the agent's own user may connect.
pub(super) fn listen(socket: &Path, inbox: mpsc::Sender<Incoming>) -> io::Result<JoinHandle<()>> {
    match std::fs::remove_file(socket) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                let inbox = inbox.clone();
                tokio::spawn(async move { follow(stream, &inbox).await });
            }
        }
    }))
}

/// Talks with one shim until either side goes.
async fn follow(stream: UnixStream, inbox: &mpsc::Sender<Incoming>) -> Option<()> {
    let (reader, mut writer) = stream.into_split();
    let (sender, mut stops) = mpsc::channel::<StopTold>(STOPS_MAX);
    tokio::spawn(async move {
        while let Some(stop) = stops.recv().await {
            let mut line = serde_json::to_vec(&stop).expect("keys of messages are text");
            line.push(b'\n');
            if writer.write_all(&line).await.is_err() {
                return;
            }
        }
    });
    let mut reader = BufReader::new(reader);
    let mut known: Option<LeaseId> = None;
    loop {
        let mut line = String::new();
        let read = (&mut reader).take(LINE_BYTES_MAX).read_line(&mut line).await;
        let message = match read {
            Ok(0) | Err(_) => break,
            Ok(_) => serde_json::from_str::<FromShim>(&line),
        };
        let Ok(message) = message else { break };
        let (FromShim::Stands { lease, .. }
        | FromShim::Progress { lease, .. }
        | FromShim::OutputLost { lease, .. }) = message;
        if known.replace(lease).is_none() {
            inbox.send(Incoming::ShimCame { lease, sender: sender.clone() }).await.ok()?;
        }
        inbox.send(incoming(message)).await.ok()?;
    }
    match known {
        Some(lease) => inbox.send(Incoming::ShimLeft { lease }).await.ok(),
        None => None,
    }
}

fn incoming(message: FromShim) -> Incoming {
    match message {
        FromShim::Stands { lease, stage } => Incoming::Happened(AgentInput::Seen { lease, stage }),
        FromShim::Progress { lease, progress } => {
            let super::shim::Progress { step, total, saved } = progress;
            Incoming::Happened(AgentInput::Progress { lease, step, total, saved })
        }
        FromShim::OutputLost { lease, fault } => Incoming::OutputLost { lease, fault },
    }
}
