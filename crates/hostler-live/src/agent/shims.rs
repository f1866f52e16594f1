//! Where shims find the agent: one Unix socket, a connection for each shim.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use hostler_core::decision::StopHow;
use hostler_core::id::LeaseId;

use super::core::AgentInput;
use super::shell::Incoming;
use super::shim::{FromShim, StopTold, ToShim};
use super::streams::Arrivals;

/// Bytes of one message of a shim: the exits of a full node fit.
const LINE_BYTES_MAX: u64 = 256 << 10;

/// Orders that wait for one shim.
const ORDERS_MAX: usize = 64;

/// Listens for shims from now on. Only the agent's own user may connect.
pub(super) fn listen(
    socket: &Path,
    inbox: mpsc::Sender<Incoming>,
    arrivals: Arrivals,
) -> io::Result<JoinHandle<()>> {
    match std::fs::remove_file(socket) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                let (inbox, arrivals) = (inbox.clone(), arrivals.clone());
                tokio::spawn(async move { follow(stream, &inbox, &arrivals).await });
            }
        }
    }))
}

/// Talks with one shim until either side goes; a connection for a stream is handed on.
async fn follow(
    stream: UnixStream,
    inbox: &mpsc::Sender<Incoming>,
    arrivals: &Arrivals,
) -> Option<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut message = read(&mut reader).await?;
    if let FromShim::Stream { lease, stream: number } = message {
        // The shim waits for what it is for, so nothing of it was read yet.
        arrivals.arrived(number, lease, reader.into_inner().reunite(writer).ok()?);
        return None;
    }
    // The first word says what it can do.
    let unable = match &message {
        FromShim::Stands { lease, suspends: false, .. } => Some(*lease),
        _ => None,
    };
    let (sender, mut orders) = mpsc::channel::<ToShim>(ORDERS_MAX);
    let answers = inbox.clone();
    tokio::spawn(async move {
        while let Some(order) = orders.recv().await {
            if let Some(lease) = unable.filter(|_| is_suspension(order)) {
                let fault = "it was started by an earlier release".to_owned();
                let refused = AgentInput::SuspendRefused { lease, fault };
                if answers.send(Incoming::Happened(refused)).await.is_err() {
                    return;
                }
                continue;
            }
            let mut line = serde_json::to_vec(&order).expect("keys of messages are text");
            line.push(b'\n');
            if writer.write_all(&line).await.is_err() {
                return;
            }
        }
    });
    let mut known: Option<LeaseId> = None;
    loop {
        let (FromShim::Stands { lease, .. }
        | FromShim::Progress { lease, .. }
        | FromShim::SuspendRefused { lease, .. }
        | FromShim::OutputLost { lease, .. }
        | FromShim::Stream { lease, .. }) = message;
        if known.replace(lease).is_none() {
            inbox.send(Incoming::ShimCame { lease, sender: sender.clone() }).await.ok()?;
        }
        if let Some(incoming) = incoming(message) {
            inbox.send(incoming).await.ok()?;
        }
        match read(&mut reader).await {
            Some(next) => message = next,
            None => break,
        }
    }
    match known {
        Some(lease) => inbox.send(Incoming::ShimLeft { lease }).await.ok(),
        None => None,
    }
}

fn is_suspension(order: ToShim) -> bool {
    matches!(order, ToShim::Stop(StopTold { how: StopHow::Suspend, .. }))
}

/// The next message; none at the end, or when it makes no sense.
async fn read(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<FromShim> {
    let mut line = String::new();
    match reader.take(LINE_BYTES_MAX).read_line(&mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) => serde_json::from_str(&line).ok(),
    }
}

fn incoming(message: FromShim) -> Option<Incoming> {
    Some(match message {
        FromShim::Stands { lease, stage, .. } => {
            Incoming::Happened(AgentInput::Seen { lease, stage })
        }
        FromShim::Progress { lease, progress } => {
            let super::shim::Progress { step, total, saved } = progress;
            Incoming::Happened(AgentInput::Progress { lease, step, total, saved })
        }
        FromShim::SuspendRefused { lease, fault } => {
            tracing::warn!(lease = lease.0, fault, "a job cannot be suspended");
            Incoming::Happened(AgentInput::SuspendRefused { lease, fault })
        }
        FromShim::OutputLost { lease, fault } => Incoming::OutputLost { lease, fault },
        FromShim::Stream { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shim_of_an_earlier_release_refuses_to_suspend_instead_of_passing_over_it() {
        let (agent, mut shim) = UnixStream::pair().unwrap();
        let (inbox, mut came) = mpsc::channel(8);
        tokio::spawn(async move { follow(agent, &inbox, &Arrivals::default()).await });
        let stage = serde_json::to_string(&crate::wire::Stage::Running).unwrap();
        let line = format!("{{\"say\":\"stands\",\"lease\":7,\"stage\":{stage}}}\n");
        shim.write_all(line.as_bytes()).await.unwrap();
        let Some(Incoming::ShimCame { sender, .. }) = came.recv().await else {
            panic!("its orders have a way");
        };
        assert!(matches!(came.recv().await, Some(Incoming::Happened(AgentInput::Seen { .. }))));
        let stop = |how| ToShim::Stop(StopTold { how, grace_ms: 0 });
        sender.send(stop(StopHow::Suspend)).await.unwrap();
        let answer = came.recv().await;
        let refused = |answer: &Option<Incoming>| match answer {
            Some(Incoming::Happened(AgentInput::SuspendRefused { lease, .. })) => lease.0 == 7,
            _ => false,
        };
        assert!(refused(&answer), "{answer:?}");
        // What it does understand reaches it.
        sender.send(stop(StopHow::Kill)).await.unwrap();
        let mut line = String::new();
        BufReader::new(&mut shim).read_line(&mut line).await.unwrap();
        assert!(line.contains("kill"), "{line}");
    }
}
