//! What flows between a person and a running job: the frames of a stream, from end to end.
//!
//! A stream is attached to the job's terminal, to a command that runs inside the job, or to a port
//! of it. Daemon and agent pass frames on without looking into them. Streams are no part of the
//! log: when one breaks, the job goes on.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Interval, interval};
use utoipa::ToSchema;

use hostler_core::id::LeaseId;

use crate::limits::{STREAM_ALIVE_SECS, STREAM_FRAME_BYTES_MAX};

/// What an agent says in its greeting when it passes streams on.
pub const ABILITY: &str = "streams";

/// Where agents connect for one stream; its number follows.
pub const AGENT_STREAM_PATH: &str = "/api/v1/agent/streams/";

/// How a job is run that people attach to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Interactive {
    /// Its terminal is of this size at first; without one it has pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Seconds after which it is ended when those who were attached have vanished; it goes on
    /// without them when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3162240000u64)]
    pub linger_secs: Option<u64>,
}

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// What a person wants of a job: the first message of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRequest {
    /// The task.
    #[serde(default)]
    pub rank: u32,
    /// Whether the person's side keeps to [`Opened::room`], and wants to be told what was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// What.
    #[serde(flatten)]
    pub what: StreamKind,
}

/// What a stream leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "open")]
pub enum StreamKind {
    /// The terminal, or the standard streams, of an interactive job.
    Attach {
        /// How far its output is known: the stay and the bytes of it.
        #[serde(default)]
        known: Option<(LeaseId, u64)>,
    },
    /// A command that is run inside the job.
    Exec {
        /// Program and arguments.
        command: Vec<String>,
        /// With a terminal of this size; with pipes otherwise.
        #[serde(default)]
        terminal: Option<TerminalSize>,
        /// What kind of terminal the person has (`TERM`).
        #[serde(default)]
        term: Option<String>,
    },
    /// A port on which a process of the job listens.
    Port {
        /// Its number.
        port: u16,
    },
}

impl StreamKind {
    /// What is noted of it: never the arguments of a command, which may hold secrets.
    pub fn note(&self) -> String {
        match self {
            StreamKind::Attach { .. } => "attach".to_owned(),
            StreamKind::Exec { command, .. } => {
                format!("exec {}", command.first().map_or("", String::as_str).escape_debug())
            }
            StreamKind::Port { port } => format!("port {port}"),
        }
    }
}

/// The stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The stay that it leads to.
    pub lease: LeaseId,
    /// Where its output begins, for who is attached.
    #[serde(default)]
    pub offset: u64,
    /// Whether there is a terminal at the other end.
    #[serde(default)]
    pub terminal: bool,
    /// Bytes of input that may be on the way without having been taken, for who counts them: then
    /// no signal waits behind input that nobody reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
}

/// Why there is no stream, or none any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFault {
    /// Why.
    pub fault: String,
    /// Whether trying again in a moment may help.
    #[serde(default)]
    pub retry: bool,
}

/// One message of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Input of the job, or its output.
    Data(Vec<u8>),
    /// Its errors, where it has no terminal.
    Errors(Vec<u8>),
    /// No more data comes from this side.
    End,
    /// The person's terminal has another size.
    Resize(TerminalSize),
    /// A signal for the processes at the other end.
    Signal(u8),
    /// Nothing but a sign of life.
    Alive,
    /// The person goes and wants the job to go on.
    Detach,
    /// The stream stands; the first frame from the job's side.
    Opened(Opened),
    /// The command has ended with this code.
    Exit(i32),
    /// There is no stream, or none any more.
    Fault(StreamFault),
    /// So many more bytes of input were taken; for who counts them.
    Taken(u32),
}

impl Frame {
    /// A fault that will not go away by itself.
    pub fn fault(fault: impl Into<String>) -> Frame {
        Frame::Fault(StreamFault { fault: fault.into(), retry: false })
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let with = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
        let json = "keys of messages are text";
        match self {
            Frame::Data(bytes) => with(0, bytes),
            Frame::Errors(bytes) => with(1, bytes),
            Frame::End => with(2, &[]),
            Frame::Resize(size) => {
                let [columns, rows] = [size.columns, size.rows].map(u16::to_be_bytes);
                with(3, &[columns, rows].concat())
            }
            Frame::Signal(number) => with(4, &[*number]),
            Frame::Alive => with(5, &[]),
            Frame::Detach => with(6, &[]),
            Frame::Opened(opened) => with(7, &serde_json::to_vec(opened).expect(json)),
            Frame::Exit(code) => with(8, &code.to_be_bytes()),
            Frame::Fault(fault) => with(9, &serde_json::to_vec(fault).expect(json)),
            Frame::Taken(bytes) => with(10, &bytes.to_be_bytes()),
        }
    }

    /// Reads what was sent; none when it makes no sense.
    pub fn parse(bytes: &[u8]) -> Option<Frame> {
        let (kind, rest) = bytes.split_first()?;
        if rest.len() > STREAM_FRAME_BYTES_MAX {
            return None;
        }
        Some(match (kind, rest) {
            (0, _) => Frame::Data(rest.to_vec()),
            (1, _) => Frame::Errors(rest.to_vec()),
            (2, []) => Frame::End,
            (3, [a, b, c, d]) => {
                let (columns, rows) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
                Frame::Resize(TerminalSize { columns, rows })
            }
            (4, [number]) => Frame::Signal(*number),
            (5, []) => Frame::Alive,
            (6, []) => Frame::Detach,
            (7, _) => Frame::Opened(serde_json::from_slice(rest).ok()?),
            (8, _) => Frame::Exit(i32::from_be_bytes(rest.try_into().ok()?)),
            (9, _) => Frame::Fault(serde_json::from_slice(rest).ok()?),
            (10, _) => Frame::Taken(u32::from_be_bytes(rest.try_into().ok()?)),
            _ => return None,
        })
    }
}

/// What a connection says, as frames: its bytes, their end, and signs of life meanwhile and
/// afterwards.
pub struct Frames<R> {
    reader: R,
    alive: Interval,
    buffer: Vec<u8>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// Of one end of a connection.
    pub fn of(reader: R) -> Frames<R> {
        let alive = interval(Duration::from_secs(STREAM_ALIVE_SECS));
        Frames { reader, alive, buffer: vec![0; STREAM_FRAME_BYTES_MAX], ended: false }
    }

    /// The next one; none when the connection is broken.
    pub async fn next(&mut self) -> Option<Frame> {
        tokio::select! {
            read = self.reader.read(&mut self.buffer), if !self.ended => match read.ok()? {
                0 => {
                    self.ended = true;
                    Some(Frame::End)
                }
                count => Some(Frame::Data(self.buffer[..count].to_vec())),
            },
            _ = self.alive.tick() => Some(Frame::Alive),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_read() {
        let opened = Opened { lease: LeaseId(7), offset: 1 << 40, terminal: true, room: Some(9) };
        for frame in [
            Frame::Data(b"hello".to_vec()),
            Frame::Errors(Vec::new()),
            Frame::End,
            Frame::Resize(TerminalSize { columns: 132, rows: 43 }),
            Frame::Signal(2),
            Frame::Alive,
            Frame::Detach,
            Frame::Opened(opened),
            Frame::Exit(-1),
            Frame::Fault(StreamFault { fault: "gone".into(), retry: true }),
            Frame::Taken(70_000),
        ] {
            assert_eq!(Frame::parse(&frame.to_bytes()), Some(frame));
        }
    }

    #[test]
    fn what_makes_no_sense_is_no_frame() {
        for bytes in
            [&[][..], &[2, 0], &[3, 1, 2, 3], &[4], &[7, b'{'], &[8, 0], &[9], &[10, 1], &[99]]
        {
            assert_eq!(Frame::parse(bytes), None, "{bytes:?}");
        }
        assert_eq!(Frame::parse(&vec![0; STREAM_FRAME_BYTES_MAX + 2]), None);
    }

    #[test]
    fn the_note_of_a_command_has_no_arguments() {
        let command = vec!["curl".to_owned(), "--header=secret".to_owned()];
        let what = StreamKind::Exec { command, terminal: None, term: None };
        assert_eq!(what.note(), "exec curl");
    }
}
