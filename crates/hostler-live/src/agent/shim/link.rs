//! The way from a shim to the agent: made again whenever there is an agent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use hostler_core::id::LeaseId;

use super::{FromShim, Happened, Progress, ShimOrder, Streams, ToShim};
use crate::wire::Stage;

/// Milliseconds between two looks for an agent.
const RETRY_MS: u64 = 200;

/// Seconds after which an agent that does not read is given up.
const WRITE_SECS_MAX: u64 = 1;

/// Bytes of one order to a shim.
const LINE_BYTES_MAX: u64 = 1024;

/// What the agent is told, now and when it comes back.
pub(super) struct Link {
    lease: LeaseId,
    state: Arc<Mutex<State>>,
}

struct State {
    stream: Option<UnixStream>,
    stage: Stage,
    progress: Option<Progress>,
}

impl Link {
    /// Looks for the agent from now on; its orders arrive in `happened`.
    pub fn start(shim: &ShimOrder, happened: SyncSender<Happened>, streams: Streams) -> Link {
        let state = State { stream: None, stage: Stage::Starting, progress: None };
        let state = Arc::new(Mutex::new(state));
        let lease = shim.order.lease;
        let (socket, shared) = (shim.agent_socket.clone(), state.clone());
        thread::spawn(move || {
            loop {
                if let Ok(stream) = UnixStream::connect(&socket) {
                    follow(stream, lease, &shared, &happened, &streams);
                }
                thread::sleep(Duration::from_millis(RETRY_MS));
            }
        });
        Link { lease, state }
    }

    /// Says where the tasks stand.
    pub fn say(&self, stage: Stage) {
        let mut state = lock(&self.state);
        state.stage = stage.clone();
        state.send(&FromShim::Stands { lease: self.lease, stage, suspends: true });
    }

    /// Says how far the job is.
    pub fn tell(&self, progress: Progress) {
        let mut state = lock(&self.state);
        state.progress = Some(progress);
        state.send(&FromShim::Progress { lease: self.lease, progress });
    }

    /// Says that the tasks cannot be suspended.
    pub fn refuse(&self, fault: String) {
        lock(&self.state).send(&FromShim::SuspendRefused { lease: self.lease, fault });
    }

    /// Says that output cannot be written.
    pub fn lost(&self, fault: String) {
        lock(&self.state).send(&FromShim::OutputLost { lease: self.lease, fault });
    }
}

impl State {
    fn send(&mut self, message: &impl Serialize) {
        let Some(stream) = &mut self.stream else { return };
        let mut line = serde_json::to_vec(message).expect("keys of messages are text");
        line.push(b'\n');
        if stream.write_all(&line).is_err() {
            self.stream = None;
        }
    }
}

/// Talks with one agent until it goes.
fn follow(
    stream: UnixStream,
    lease: LeaseId,
    state: &Mutex<State>,
    happened: &SyncSender<Happened>,
    streams: &Streams,
) {
    let timeout = stream.set_write_timeout(Some(Duration::from_secs(WRITE_SECS_MAX)));
    let (Ok(reader), Ok(())) = (stream.try_clone(), timeout) else { return };
    {
        let mut state = lock(state);
        state.stream = Some(stream);
        let (stage, progress) = (state.stage.clone(), state.progress);
        state.send(&FromShim::Stands { lease, stage, suspends: true });
        if let Some(progress) = progress {
            state.send(&FromShim::Progress { lease, progress });
        }
    }
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = String::new();
        match reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        match serde_json::from_str::<ToShim>(&line) {
            Ok(ToShim::Stop(stop)) => _ = happened.send(Happened::Stop(stop)),
            Ok(ToShim::Resume { now_for }) => _ = happened.send(Happened::Resume(now_for)),
            Ok(ToShim::Stream { stream }) => streams.answer(stream),
            Err(_) => {}
        }
    }
    lock(state).stream = None;
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
