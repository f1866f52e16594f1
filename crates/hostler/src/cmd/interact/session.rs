//! One stream between the person at this command and a job: keys and input go there, output comes
//! back, until one of them goes.

use std::io::{Read as _, Write as _, stderr, stdin, stdout};
use std::time::Duration;

use anyhow::Result;
use hostler_core::id::LeaseId;
use hostler_live::client::stream::{JobStream, StreamSender};
use hostler_live::limits::{STREAM_ALIVE_SECS, STREAM_FRAME_BYTES_MAX};
use hostler_live::stream::Frame;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tokio::time::interval;

use super::terminal::{self, Keys, Raw};

/// Frames that wait to be sent: enough to keep the connection busy.
const FRAMES_MAX: usize = 8;

/// Numbers of signals that are passed on.
const INTERRUPT: u8 = 2;
const BROKEN_PIPE: u8 = 13;

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The job or command ended with this code.
    Exit(i32),
    /// The person left.
    Detached,
    /// The person pressed Ctrl-C twice where keys do not go to the job.
    Interrupted,
    /// This command was told to end, by this signal.
    Told(i32),
    /// Nobody reads its output any more.
    Unread,
    /// The other end says why there is no more.
    Fault(String),
    /// The connection broke.
    Lost,
}

/// What this command has of the person.
pub struct Person {
    input: Option<mpsc::Receiver<Vec<u8>>>,
    resized: Signal,
    interrupted: Signal,
    terminated: Signal,
    hung_up: Signal,
    /// Input that was read and not sent.
    waiting: Option<Frame>,
    ended: bool,
    /// How far the output of a job is known.
    pub known: Option<(LeaseId, u64)>,
}

impl Person {
    /// Takes over signals; input is read from the first stream on.
    pub fn new() -> Result<Person> {
        Ok(Person {
            input: None,
            resized: signal(SignalKind::window_change())?,
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            waiting: None,
            ended: false,
            known: None,
        })
    }

    /// Waits until this command is told to end; gives the signal.
    pub async fn told_to_end(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupted.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminated.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.hung_up.recv() => SignalKind::hangup().as_raw_value(),
        }
    }

    /// Joins the person and a stream until one of them goes; `leaves` says whether keys do.
    pub async fn talk(&mut self, stream: JobStream, leaves: bool) -> Ended {
        let JobStream { opened, sender, mut receiver } = stream;
        let is_terminal = opened.terminal && terminal::is_there();
        let raw = is_terminal.then(Raw::set).flatten();
        let (frames, outgoing) = mpsc::channel(FRAMES_MAX);
        let sending = tokio::spawn(send_all(sender, outgoing));
        if is_terminal {
            // There is room for the first.
            let _ = frames.try_send(Frame::Resize(terminal::size()));
        }
        self.known = Some((opened.lease, opened.offset));
        let mut keys = (is_terminal && leaves).then(Keys::default);
        let (mut interrupts, mut listens) = (0, true);
        let mut window = Window { room: opened.room, on_way: 0 };
        self.input.get_or_insert_with(read_input);
        let ended = loop {
            let has_room = self.waiting.as_ref().is_some_and(|frame| window.lets(frame));
            let input = self.input.as_mut().expect("made above");
            tokio::select! {
                frame = receiver.next() => {
                    window.hear(frame.as_ref());
                    if let Some(ended) = self.show(frame, &frames) {
                        break ended;
                    }
                },
                permit = frames.reserve(), if listens && has_room => match permit {
                    Ok(permit) => {
                        let frame = self.waiting.take().expect("looked at above");
                        window.sent(&frame);
                        permit.send(frame);
                    }
                    // What still comes tells whether it is over or lost.
                    Err(_) => listens = false,
                },
                bytes = input.recv(), if self.waiting.is_none() && !self.ended => {
                    let (frame, left) = taken(bytes, keys.as_mut());
                    self.ended = frame == Some(Frame::End);
                    self.waiting = frame;
                    if left {
                        break Ended::Detached;
                    }
                },
                _ = self.resized.recv() => if is_terminal {
                    let _ = frames.try_send(Frame::Resize(terminal::size()));
                },
                _ = self.interrupted.recv() => {
                    interrupts += 1;
                    if interrupts > 1 || frames.try_send(Frame::Signal(INTERRUPT)).is_err() {
                        break Ended::Interrupted;
                    }
                },
                _ = self.terminated.recv() => break Ended::Told(15),
                _ = self.hung_up.recv() => break Ended::Told(1),
            }
        };
        if ended == Ended::Detached {
            // What has no room is not taken in time, and the job would not hear of the rest.
            let rest = self.waiting.take().filter(|frame| window.lets(frame));
            let rest = rest.into_iter().chain([Frame::Detach]);
            for frame in rest {
                let _ = frames.send(frame).await;
            }
        }
        drop(frames);
        // What was to be sent is, and then this end is closed.
        let _ = tokio::time::timeout(Duration::from_secs(5), sending).await;
        drop(raw);
        ended
    }

    /// Shows what came; says how the stream ended if it has.
    fn show(&mut self, frame: Option<Frame>, frames: &mpsc::Sender<Frame>) -> Option<Ended> {
        let written = match frame {
            Some(Frame::Data(bytes)) => {
                self.count(&bytes);
                block_in_place(|| stdout().write_all(&bytes).and_then(|()| stdout().flush()))
            }
            Some(Frame::Errors(bytes)) => {
                self.count(&bytes);
                // Nobody has to read them.
                block_in_place(|| stderr().write_all(&bytes)).or(Ok(()))
            }
            Some(Frame::Exit(code)) => return Some(Ended::Exit(code)),
            Some(Frame::Fault(fault)) => return Some(Ended::Fault(fault.fault)),
            Some(_) => Ok(()),
            None => return Some(Ended::Lost),
        };
        written.is_err().then(|| {
            // As the writer in a pipe is told.
            let _ = frames.try_send(Frame::Signal(BROKEN_PIPE));
            Ended::Unread
        })
    }

    fn count(&mut self, bytes: &[u8]) {
        if let Some((_, offset)) = &mut self.known {
            *offset += bytes.len() as u64;
        }
    }
}

/// Input that is on the way: no more than there is room for, so that the way is free for signals.
struct Window {
    room: Option<u32>,
    on_way: u64,
}

impl Window {
    fn hear(&mut self, frame: Option<&Frame>) {
        if let Some(Frame::Taken(bytes)) = frame {
            self.on_way = self.on_way.saturating_sub(u64::from(*bytes));
        }
    }

    /// Whether there is room for a frame.
    fn lets(&self, frame: &Frame) -> bool {
        self.room.is_none_or(|room| self.on_way + weight(frame) <= u64::from(room))
    }

    fn sent(&mut self, frame: &Frame) {
        self.on_way += weight(frame);
    }
}

fn weight(frame: &Frame) -> u64 {
    if let Frame::Data(bytes) = frame { bytes.len() as u64 } else { 0 }
}

/// What becomes of input, and whether the person leaves behind it.
fn taken(bytes: Option<Vec<u8>>, keys: Option<&mut Keys>) -> (Option<Frame>, bool) {
    match (bytes, keys) {
        (None, _) => (Some(Frame::End), false),
        (Some(bytes), None) => (Some(Frame::Data(bytes)), false),
        (Some(bytes), Some(keys)) => {
            let (rest, left) = keys.take(&bytes);
            ((!rest.is_empty()).then_some(Frame::Data(rest)), left)
        }
    }
}

/// Sends what there is, and a sign of life now and then: also while the person does not read.
async fn send_all(mut sender: StreamSender, mut frames: mpsc::Receiver<Frame>) {
    let mut alive = interval(Duration::from_secs(STREAM_ALIVE_SECS));
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            _ = alive.tick() => Some(Frame::Alive),
        };
        let Some(frame) = frame else { break };
        if !sender.send(&frame).await {
            return;
        }
    }
    sender.close().await;
}

/// Reads input on a thread that nobody waits for: it may sit there when all is over.
fn read_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut buffer = vec![0; STREAM_FRAME_BYTES_MAX];
        loop {
            match stdin().read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    if sender.blocking_send(buffer[..count].to_vec()).is_err() {
                        return;
                    }
                }
                Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    receiver
}
