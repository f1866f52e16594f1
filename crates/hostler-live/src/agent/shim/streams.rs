//! Streams of people who go inside a job: each has a connection to the agent of its own, made when
//! the agent asks for it, and a few threads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use hostler_core::id::LeaseId;

use super::console::{Console, Next};
use super::exec::{ExecAsk, RunningCommand, hang_up, signal_session};
use super::input::InputQueue;
use super::remnants::TaskPid;
use super::{FromShim, Happened, ShimOrder, terminal};
use crate::agent::folder::{LeaseFolder, read_json};
use crate::limits::{
    MESSAGE_BYTES_MAX, STREAM_FRAME_BYTES_MAX, STREAM_INPUT_BYTES_MAX, STREAM_LAST_WORDS_SECS_MAX,
    STREAMS_PER_SHIM_MAX,
};
use crate::stream::{Frame, Opened, StreamKind, StreamRequest};
use crate::wire::TaskExit;

/// Seconds for the agent to say what a stream is for.
const REQUEST_SECS_MAX: u64 = 10;

/// Milliseconds for the last output of a command that has ended.
const DRAIN_MS: u64 = 500;

/// Time between two looks whether a person is there whose input is not taken.
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

/// One of the streams that may be open at a time.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(open: &Arc<AtomicUsize>) -> Option<Slot> {
        let before = open.fetch_add(1, Ordering::Relaxed);
        // One too many gives its place back at once.
        let slot = Slot(open.clone());
        (before < STREAMS_PER_SHIM_MAX).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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
        // The agent gives up waiting by itself.
        let Some(slot) = Slot::take(&self.open) else { return };
        // The limit of processes may be reached: the job must not suffer from who looks at it.
        let _ = thread::Builder::new().spawn(move || {
            // Whoever is gone is told nothing.
            let _ = streams.serve(stream, &Arc::new(slot));
        });
    }

    fn serve(&self, stream: u64, slot: &Arc<Slot>) -> io::Result<()> {
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
        let StreamRequest { rank, counts, what } = request;
        match what {
            StreamKind::Attach { known } => self.attach(&socket, known, counts, slot),
            StreamKind::Exec { command, terminal, term } => {
                let (reply, answer) = sync_channel(1);
                let ask = ExecAsk { rank, command, terminal, term, reply };
                self.exec(&socket, ask, &answer, counts)
            }
            StreamKind::Port { .. } => Ok(()),
        }
    }

    /// Attaches somebody to the console until one of them goes.
    fn attach(
        &self,
        line: &Arc<Line>,
        known: Option<(LeaseId, u64)>,
        counts: bool,
        slot: &Arc<Slot>,
    ) -> io::Result<()> {
        let Some(console) = &self.console else {
            return line.send(&Frame::fault(
                "it was not started by `hostler run`, so that there is nothing to attach to; \
                 `hostler logs -f` follows its output and `hostler exec` runs a command inside",
            ));
        };
        let known = known.filter(|(lease, _)| *lease == self.lease).map(|(_, offset)| offset);
        let (reader, offset) = console.attach(known);
        let (lease, room) = (self.lease, room(counts));
        let opened = Opened { lease, offset, terminal: console.terminal, room };
        line.send(&Frame::Opened(opened)).inspect_err(|_| console.leave(reader, false))?;
        let (queue, to, told) = (Arc::<InputQueue>::default(), console.clone(), line.clone());
        let (typed, from, streams) = (queue.clone(), line.clone(), self.clone());
        let slot = slot.clone();
        let writing = thread::Builder::new().spawn(move || {
            to.write(&typed, |count| tell_taken(&told, counts, count));
            // Input that nobody reads outlives its person, and counts as long.
            drop(slot);
        });
        let to = console.clone();
        // Ends when the agent closes its end, or this one is closed below.
        let taking = writing.and_then(|_| {
            let taken = queue.clone();
            thread::Builder::new().spawn(move || {
                let on_purpose = streams.take_frames(&from, &to, reader, &taken);
                to.leave(reader, on_purpose);
                match on_purpose {
                    true => {
                        taken.close_within(Duration::from_secs(STREAM_LAST_WORDS_SECS_MAX));
                    }
                    // The person comes back and goes on after what was sent.
                    false => taken.outlive(),
                }
            })
        });
        if taking.is_err() {
            queue.close();
        }
        let told = taking.and_then(|_| tell_output(line, console, reader));
        console.leave(reader, false);
        line.close();
        told
    }

    /// Takes what comes from somebody who is attached; says whether it goes on purpose.
    fn take_frames(&self, line: &Line, console: &Console, reader: u64, queue: &InputQueue) -> bool {
        while let Ok(Some(frame)) = line.receive() {
            console.heard(reader);
            match frame {
                Frame::Data(bytes) if !take_input(line, queue, &bytes) => return false,
                // Those at a terminal end their input by a key.
                Frame::End if !console.terminal => queue.end(),
                Frame::Resize(size) if console.terminal => console.resize(size),
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
        ask: ExecAsk,
        answer: &Receiver<Result<RunningCommand, String>>,
        counts: bool,
    ) -> io::Result<()> {
        if self.happened.send(Happened::Exec(Box::new(ask))).is_err() {
            return line.send(&Frame::fault("the job is over"));
        }
        let running = match answer.recv() {
            Ok(Ok(running)) => running,
            Ok(Err(fault)) => return line.send(&Frame::fault(fault)),
            Err(_) => return line.send(&Frame::fault("the job is over")),
        };
        let (lease, terminal, room) = (self.lease, running.terminal.is_some(), room(counts));
        line.send(&Frame::Opened(Opened { lease, offset: 0, terminal, room }))?;
        let process = running.process;
        let ended = carry(line, running, counts);
        line.close();
        if !ended.as_ref().is_ok_and(|ended| *ended) {
            hang_up(process);
        }
        ended.map(drop)
    }
}

/// Carries between a person and a command until the command has ended or the person is gone; says
/// whether it has ended.
fn carry(line: &Arc<Line>, running: RunningCommand, counts: bool) -> io::Result<bool> {
    let RunningCommand { process, variables, mut stdin, terminal, outputs, exit } = running;
    stdin.write_all(&variables)?;
    let mut pumps = Vec::new();
    for (output, errors) in outputs.into_iter().zip([false, true]) {
        let line = line.clone();
        let pump = thread::Builder::new().spawn(move || send_output(&line, output, errors));
        pumps.push(pump?);
    }
    let screen = terminal.as_ref().map(File::try_clone).transpose()?;
    let input = terminal.unwrap_or(stdin);
    let (gone, person_gone) = sync_channel(1);
    let (queue, to, from) = (Arc::<InputQueue>::default(), line.clone(), line.clone());
    let typed = queue.clone();
    // Two threads: one that waits for a command which reads nothing does not hear a person.
    thread::Builder::new().spawn(move || {
        let write = |bytes: &[u8]| (&input).write_all(bytes);
        typed.write_by(&Mutex::default(), write, |count| tell_taken(&to, counts, count))
    })?;
    let heard = queue.clone();
    let hearing = thread::Builder::new().spawn(move || {
        hear_person(&from, process, screen.as_ref(), &heard);
        heard.close();
        let _ = gone.send(());
    });
    hearing.inspect_err(|_| queue.close())?;
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

/// Takes what comes from the person until nobody is there, also while a command reads nothing.
fn hear_person(line: &Line, process: TaskPid, screen: Option<&File>, queue: &InputQueue) {
    while let Ok(Some(frame)) = line.receive() {
        match (frame, screen) {
            (Frame::Signal(number), _) => {
                allowed(number).into_iter().for_each(|it| signal_session(process, it));
            }
            (Frame::Resize(size), Some(screen)) => terminal::resize(screen, size),
            // Those at a terminal end their input by a key.
            (Frame::End, None) => queue.end(),
            (Frame::Data(bytes), _) if !take_input(line, queue, &bytes) => return,
            _ => {}
        }
    }
}

/// Lets input wait for who should read it. There is room for it unless the person does not count;
/// then the person is looked after meanwhile. Says whether anybody is still there.
fn take_input(line: &Line, queue: &InputQueue, bytes: &[u8]) -> bool {
    let (mut left, mut looked) = (bytes, Instant::now());
    loop {
        left = &left[queue.offer(left)..];
        if left.is_empty() {
            return true;
        }
        if looked.elapsed() >= PERSON_LOOK {
            // What is said to an end that is closed tells that it is.
            looked = Instant::now();
            if line.send(&Frame::Alive).is_err() {
                return false;
            }
        }
    }
}

/// Bytes of input that somebody who counts may have on the way.
fn room(counts: bool) -> Option<u32> {
    counts.then_some(STREAM_INPUT_BYTES_MAX as u32)
}

/// Tells somebody who counts what was taken.
fn tell_taken(line: &Line, counts: bool, count: usize) {
    if let Ok(count) = u32::try_from(count)
        && counts
    {
        // Whoever is gone by now does not want to know.
        let _ = line.send(&Frame::Taken(count));
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
    use std::os::fd::OwnedFd;

    use super::*;

    /// What a shim would hold for a command: here its input is never read.
    fn hearing(ours: UnixStream, process: TaskPid) -> (Arc<InputQueue>, thread::JoinHandle<()>) {
        let (line, queue) = (Line::new(ours).unwrap(), Arc::<InputQueue>::default());
        let heard = queue.clone();
        (queue, thread::spawn(move || hear_person(&line, process, None, &heard)))
    }

    fn until(what: &str, mut look: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !look() {
            assert!(Instant::now() < end, "waited in vain for {what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_person_who_goes_is_noticed_while_a_command_reads_nothing() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let process = TaskPid { rank: 0, pid: u32::MAX, started: 0 };
        let (_queue, hearing) = hearing(ours, process);
        // Nobody takes what is said: more than fits waits in the connection.
        for _ in 0..STREAM_INPUT_BYTES_MAX / 10_000 + 3 {
            write_block(&mut theirs, &Frame::Data(vec![b'x'; 10_000]).to_bytes()).unwrap();
        }
        thread::sleep(PERSON_LOOK * 2);
        assert!(!hearing.is_finished(), "somebody is there");
        drop(theirs);
        until("the end", || hearing.is_finished());
    }

    #[test]
    fn a_signal_overtakes_input_that_a_command_never_reads() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut command = std::process::Command::new("setsid");
        command.args(["sleep", "600"]).stdin(std::process::Stdio::piped());
        let mut sleep = command.spawn().unwrap();
        let pid = sleep.id();
        until("a session of its own", || {
            crate::agent::processes::process(pid).is_some_and(|process| process.session == pid)
        });
        let (queue, hearing) = hearing(ours, TaskPid { rank: 0, pid, started: 0 });
        let input = File::from(OwnedFd::from(sleep.stdin.take().unwrap()));
        let typed = queue.clone();
        let writing = thread::spawn(move || {
            typed.write_by(&Mutex::default(), |bytes| (&input).write_all(bytes), |_| {})
        });
        // As much as somebody who counts may have on the way.
        let mut left = STREAM_INPUT_BYTES_MAX;
        while left > 0 {
            let bytes = vec![b'x'; left.min(STREAM_FRAME_BYTES_MAX)];
            left -= bytes.len();
            write_block(&mut theirs, &Frame::Data(bytes).to_bytes()).unwrap();
        }
        // Not an interrupt, which whoever runs this in the background may have it ignore.
        write_block(&mut theirs, &Frame::Signal(15).to_bytes()).unwrap();
        let ended = sleep.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(15));
        drop(theirs);
        until("the end of hearing", || hearing.is_finished());
        queue.close();
        until("the end of writing", || writing.is_finished());
    }
}
