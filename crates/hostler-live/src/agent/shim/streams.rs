//! Streams of people who go inside a job: each has a connection to the agent of its own, made when
//! the agent asks for it, and a few threads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use hostler_core::id::LeaseId;

use super::console::{Console, Next};
use super::exec::{ExecAsk, RunningCommand, hang_up, signal_session};
use super::remnants::TaskPid;
use super::{FromShim, Happened, ShimOrder, terminal};
use crate::agent::folder::{LeaseFolder, read_json};
use crate::limits::{MESSAGE_BYTES_MAX, STREAM_FRAME_BYTES_MAX, STREAMS_PER_SHIM_MAX};
use crate::stream::{Frame, Opened, StreamKind, StreamRequest, TerminalSize};
use crate::wire::TaskExit;

/// Seconds for the agent to say what a stream is for.
const REQUEST_SECS_MAX: u64 = 10;

/// Milliseconds for the last output of a command that has ended.
const DRAIN_MS: u64 = 500;

/// Frames of input that wait for a command, and the time between two looks whether it takes more.
const INPUT_FRAMES_MAX: usize = 4;
const INPUT_PAUSE: Duration = Duration::from_millis(20);

/// Time between two looks whether a person is there whose command takes nothing.
const PERSON_LOOK: Duration = Duration::from_secs(1);

/// Signals that people may send to where there is no terminal: those that keys stand for, a
/// hang-up, and what tells a writer that nobody reads.
const SIGNALS: [Signal; 5] = [Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP, Signal::PIPE];

/// What streams need of the shim.
#[derive(Clone)]
pub(super) struct Streams {
    lease: LeaseId,
    agent_socket: PathBuf,
    folder: LeaseFolder,
    happened: SyncSender<Happened>,
    console: Option<Arc<Console>>,
    open: Arc<AtomicUsize>,
}

impl Streams {
    pub fn new(
        shim: &ShimOrder,
        happened: SyncSender<Happened>,
        console: Option<Arc<Console>>,
    ) -> Streams {
        let folder = shim.socket.parent().map_or_else(PathBuf::new, PathBuf::from);
        Streams {
            lease: shim.order.lease,
            agent_socket: shim.agent_socket.clone(),
            folder: LeaseFolder::at(&folder),
            happened,
            console,
            open: Arc::default(),
        }
    }

    /// The agent wants a connection for a stream.
    pub fn answer(&self, stream: u64) {
        let streams = self.clone();
        if self.open.fetch_add(1, Ordering::Relaxed) >= STREAMS_PER_SHIM_MAX {
            // The agent gives up waiting by itself.
            self.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let spawned = thread::Builder::new().spawn(move || {
            // Whoever is gone is told nothing.
            let _ = streams.serve(stream);
            streams.open.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            // The limit of processes may be reached: the job must not suffer from who looks at it.
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn serve(&self, stream: u64) -> io::Result<()> {
        let mut socket = UnixStream::connect(&self.agent_socket)?;
        let word = FromShim::Stream { lease: self.lease, stream };
        let mut line = serde_json::to_vec(&word)?;
        line.push(b'\n');
        socket.write_all(&line)?;
        socket.set_read_timeout(Some(Duration::from_secs(REQUEST_SECS_MAX)))?;
        let request = read_block(&mut socket, MESSAGE_BYTES_MAX)?.unwrap_or_default();
        let request: StreamRequest = serde_json::from_slice(&request)?;
        socket.set_read_timeout(None)?;
        let socket = Line::new(socket)?;
        match request.what {
            StreamKind::Attach { known } => self.attach(&socket, known),
            StreamKind::Exec { command, terminal, term } => {
                self.exec(&socket, request.rank, command, terminal, term)
            }
            StreamKind::Port { .. } => Ok(()),
        }
    }

    /// Attaches somebody to the console until one of them goes.
    fn attach(&self, line: &Arc<Line>, known: Option<(LeaseId, u64)>) -> io::Result<()> {
        let Some(console) = &self.console else {
            return line.send(&Frame::fault(
                "it was not started by `hostler run`, so that there is nothing to attach to; \
                 `hostler logs -f` follows its output and `hostler exec` runs a command inside",
            ));
        };
        let known = known.filter(|(lease, _)| *lease == self.lease).map(|(_, offset)| offset);
        let (reader, offset) = console.attach(known);
        let opened = Opened { lease: self.lease, offset, terminal: console.terminal };
        line.send(&Frame::Opened(opened)).inspect_err(|_| console.leave(reader, false))?;
        let (from, to, streams) = (line.clone(), console.clone(), self.clone());
        // Ends when the agent closes its end, or this one is closed below.
        let taking = thread::Builder::new().spawn(move || {
            let on_purpose = streams.take_frames(&from, &to, reader);
            to.leave(reader, on_purpose);
        });
        let told = taking.and_then(|_| tell_output(line, console, reader));
        console.leave(reader, false);
        line.close();
        told
    }

    /// Takes what comes from somebody who is attached; says whether it goes on purpose.
    fn take_frames(&self, line: &Line, console: &Console, reader: u64) -> bool {
        while let Ok(Some(frame)) = line.receive() {
            console.heard(reader);
            match frame {
                Frame::Data(bytes) => console.write(&bytes),
                // Those at a terminal end their input by a key.
                Frame::End if !console.terminal => console.end_input(),
                Frame::Resize(size) if console.terminal => {
                    console.input().into_iter().for_each(|file| terminal::resize(&*file, size));
                }
                Frame::Signal(number) => self.signal_first(number),
                Frame::Detach => return true,
                _ => {}
            }
        }
        false
    }

    /// Sends a signal to the first task.
    fn signal_first(&self, number: u8) {
        let remnants: Option<super::Remnants> = read_json(&self.folder.pids());
        let first = remnants.and_then(|remnants| remnants.first());
        if let (Some(first), Some(signal)) = (first, allowed(number)) {
            signal_session(first, signal);
        }
    }

    /// Runs a command beside the tasks.
    fn exec(
        &self,
        line: &Arc<Line>,
        rank: u32,
        command: Vec<String>,
        terminal: Option<TerminalSize>,
        term: Option<String>,
    ) -> io::Result<()> {
        let (reply, answer) = sync_channel(1);
        let ask = ExecAsk { rank, command, terminal, term, reply };
        if self.happened.send(Happened::Exec(Box::new(ask))).is_err() {
            return line.send(&Frame::fault("the job is over"));
        }
        let running = match answer.recv() {
            Ok(Ok(running)) => running,
            Ok(Err(fault)) => return line.send(&Frame::fault(fault)),
            Err(_) => return line.send(&Frame::fault("the job is over")),
        };
        let opened = Opened { lease: self.lease, offset: 0, terminal: running.terminal.is_some() };
        line.send(&Frame::Opened(opened))?;
        let process = running.process;
        let ended = carry(line, running);
        line.close();
        if !ended.as_ref().is_ok_and(|ended| *ended) {
            hang_up(process);
        }
        ended.map(drop)
    }
}

/// Carries between a person and a command until the command has ended or the person is gone; says
/// whether it has ended.
fn carry(line: &Arc<Line>, running: RunningCommand) -> io::Result<bool> {
    let RunningCommand { process, variables, mut stdin, terminal, outputs, exit } = running;
    stdin.write_all(&variables)?;
    let mut pumps = Vec::new();
    for (output, errors) in outputs.into_iter().zip([false, true]) {
        let line = line.clone();
        let pump = thread::Builder::new().spawn(move || send_output(&line, output, errors));
        pumps.push(pump?);
    }
    let input = match terminal {
        Some(terminal) => {
            drop(stdin);
            CommandInput { file: Some(terminal), is_terminal: true }
        }
        None => CommandInput { file: Some(stdin), is_terminal: false },
    };
    let (gone, person_gone) = sync_channel(1);
    let (from, (words, said)) = (line.clone(), sync_channel(INPUT_FRAMES_MAX));
    // Two threads: one that waits for a command which reads nothing does not see a person go.
    thread::Builder::new().spawn(move || input.take(&said))?;
    thread::Builder::new().spawn(move || {
        hear_person(&from, process, &words);
        let _ = gone.send(());
    })?;
    let Some(exit) = until_exit(&exit, &person_gone) else { return Ok(false) };
    let end = Instant::now() + Duration::from_millis(DRAIN_MS);
    for pump in pumps {
        // What the command left in the background may keep its output open.
        while !pump.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let code = exit.code.or(exit.signal.map(|signal| 128 + signal)).unwrap_or(1);
    // Whoever is gone by now does not want to know.
    let _ = line.send(&Frame::Exit(code));
    Ok(true)
}

/// How the command ended; none when the person went first.
fn until_exit(exit: &Receiver<TaskExit>, person_gone: &Receiver<()>) -> Option<TaskExit> {
    loop {
        match exit.recv_timeout(Duration::from_millis(50)) {
            Ok(exit) => return Some(exit),
            Err(RecvTimeoutError::Timeout) => {
                if person_gone.try_recv().is_ok() {
                    return None;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Where the input of a command goes.
struct CommandInput {
    file: Option<File>,
    is_terminal: bool,
}

impl CommandInput {
    /// Writes what the person says until nobody says anything any more.
    fn take(mut self, said: &Receiver<Frame>) {
        while let Ok(frame) = said.recv() {
            match (frame, &mut self.file) {
                // A command that does not read any more may still write.
                (Frame::Data(bytes), Some(file)) => _ = file.write_all(&bytes),
                (Frame::End, file) if !self.is_terminal => *file = None,
                (Frame::Resize(size), Some(file)) if self.is_terminal => {
                    terminal::resize(&*file, size);
                }
                _ => {}
            }
        }
    }
}

/// Takes what comes from the person until nobody is there, also while a command reads nothing.
fn hear_person(line: &Line, process: TaskPid, words: &SyncSender<Frame>) {
    while let Ok(Some(frame)) = line.receive() {
        if let Frame::Signal(number) = frame {
            allowed(number).into_iter().for_each(|it| signal_session(process, it));
            continue;
        }
        let (mut left, mut looked) = (Some(frame), Instant::now());
        while let Some(frame) = left.take() {
            match words.try_send(frame) {
                Ok(()) => {}
                Err(TrySendError::Full(frame)) => {
                    // What is said to an end that is closed tells that it is.
                    if looked.elapsed() >= PERSON_LOOK {
                        looked = Instant::now();
                        if line.send(&Frame::Alive).is_err() {
                            return;
                        }
                    }
                    left = Some(frame);
                    thread::sleep(INPUT_PAUSE);
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }
}

fn send_output(line: &Line, mut output: File, errors: bool) {
    let mut buffer = vec![0; STREAM_FRAME_BYTES_MAX];
    // The last reader of a terminal sees a fault when its other end is closed.
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        let bytes = buffer[..count].to_vec();
        let frame = if errors { Frame::Errors(bytes) } else { Frame::Data(bytes) };
        if line.send(&frame).is_err() {
            return;
        }
    }
}

/// Tells somebody who is attached what the job writes, until it is over.
fn tell_output(line: &Line, console: &Console, reader: u64) -> io::Result<()> {
    loop {
        match console.next(reader) {
            Next::Output(false, bytes) => line.send(&Frame::Data(bytes))?,
            Next::Output(true, bytes) => line.send(&Frame::Errors(bytes))?,
            Next::Exit(code) => return line.send(&Frame::Exit(code)),
            Next::Gone => return Ok(()),
            Next::Nothing => {}
        }
    }
}

fn allowed(number: u8) -> Option<Signal> {
    SIGNALS.into_iter().find(|signal| signal.as_raw() == i32::from(number))
}

/// A connection to the agent that carries frames.
struct Line {
    reader: Mutex<UnixStream>,
    writer: Mutex<UnixStream>,
    both: UnixStream,
}

impl Line {
    fn new(socket: UnixStream) -> io::Result<Arc<Line>> {
        let (reader, writer) = (Mutex::new(socket.try_clone()?), Mutex::new(socket.try_clone()?));
        Ok(Arc::new(Line { reader, writer, both: socket }))
    }

    fn send(&self, frame: &Frame) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        write_block(&mut *writer, &frame.to_bytes())
    }

    /// The next frame; none when the agent has closed its end.
    fn receive(&self) -> io::Result<Option<Frame>> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        match read_block(&mut *reader, STREAM_FRAME_BYTES_MAX + 1)? {
            Some(block) => {
                let wrong = || io::Error::new(io::ErrorKind::InvalidData, "no frame");
                Frame::parse(&block).map(Some).ok_or_else(wrong)
            }
            None => Ok(None),
        }
    }

    fn close(&self) {
        let _ = self.both.shutdown(Shutdown::Both);
    }
}

/// Writes a block: its length and itself.
fn write_block(to: &mut impl Write, block: &[u8]) -> io::Result<()> {
    let length = u32::try_from(block.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_be_bytes()[..], block].concat())
}

/// Reads a block of so many bytes at most; none at the end.
fn read_block(from: &mut impl Read, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a block is too long"));
    }
    let mut block = vec![0; length];
    from.read_exact(&mut block)?;
    Ok(Some(block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_who_goes_is_noticed_while_a_command_reads_nothing() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let line = Line::new(ours).unwrap();
        let (words, said) = sync_channel(INPUT_FRAMES_MAX);
        let process = TaskPid { rank: 0, pid: u32::MAX, started: 0 };
        let hearing = thread::spawn(move || hear_person(&line, process, &words));
        // Nobody takes what is said: more than fits waits in the connection.
        for _ in 0..2 * INPUT_FRAMES_MAX {
            write_block(&mut theirs, &Frame::Data(vec![b'x'; 100]).to_bytes()).unwrap();
        }
        thread::sleep(PERSON_LOOK * 2);
        assert!(!hearing.is_finished(), "somebody is there");
        drop(theirs);
        let end = Instant::now() + Duration::from_secs(60);
        while !hearing.is_finished() && Instant::now() < end {
            thread::sleep(INPUT_PAUSE);
        }
        assert!(hearing.is_finished(), "nobody is there any more");
        assert_eq!(said.try_iter().count(), INPUT_FRAMES_MAX);
    }
}
