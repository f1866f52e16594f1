//! The console of an interactive job: recent output for those who attach, the way for their input,
//! and who is there.
//!
//! Output is recorded as that of every job; this is a copy of its end. Those who are attached slow
//! the job down as a terminal or a pipe would, but only while they give signs of life. When nobody
//! is attached the job never waits.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::input::InputQueue;
use super::terminal;
use crate::limits::{
    CONSOLE_RECENT_BYTES, CONSOLE_WAITING_BYTES_MAX, STREAM_FRAME_BYTES_MAX, STREAM_SILENT_SECS_MAX,
};
use crate::stream::TerminalSize;

/// The longest wait for a change before somebody looks again.
const LOOK: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Console {
    /// Whether the job has a terminal; it has pipes otherwise.
    pub terminal: bool,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Held by whoever writes input.
    writing: Mutex<()>,
}

struct Inner {
    chunks: VecDeque<Chunk>,
    /// Bytes in them.
    bytes: usize,
    /// Bytes of output so far.
    end: u64,
    readers: BTreeMap<u64, Reader>,
    last_reader: u64,
    input: Input,
    /// Size of the terminal of who was attached last.
    size: Option<TerminalSize>,
    /// Exit code, once all is over.
    exit: Option<i32>,
    /// Since when those who were attached have vanished.
    alone_since: Option<Instant>,
}

/// A part of the output as it came.
struct Chunk {
    begin: u64,
    errors: bool,
    bytes: Vec<u8>,
}

struct Reader {
    /// What it has got of the output.
    at: u64,
    heard: Instant,
}

/// The way for input.
enum Input {
    /// The task does not run yet.
    Later,
    Open(Arc<File>),
    Closed,
}

/// What comes next for somebody who is attached.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Output; whether it is of standard error.
    Output(bool, Vec<u8>),
    /// All is over.
    Exit(i32),
    /// It was not heard for too long.
    Gone,
    /// Nothing for now.
    Nothing,
}

impl Console {
    pub fn new(terminal: bool) -> Console {
        let inner = Inner {
            chunks: VecDeque::new(),
            bytes: 0,
            end: 0,
            readers: BTreeMap::new(),
            last_reader: 0,
            input: Input::Later,
            size: None,
            exit: None,
            // Whoever submitted it may have vanished while it waited.
            alone_since: Some(Instant::now()),
        };
        let (changed, writing) = (Condvar::new(), Mutex::new(()));
        Console { terminal, inner: Mutex::new(inner), changed, writing }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.changed.wait_timeout(inner, LOOK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes in output; waits for those who are attached and behind.
    pub fn push(&self, errors: bool, bytes: &[u8]) {
        let mut inner = self.lock();
        while inner.exit.is_none() && inner.is_full() {
            inner.drop_silent(Instant::now());
            if inner.is_full() {
                inner = self.wait(inner);
            }
        }
        let chunk = Chunk { begin: inner.end, errors, bytes: bytes.to_vec() };
        inner.chunks.push_back(chunk);
        inner.bytes += bytes.len();
        inner.end += bytes.len() as u64;
        inner.trim();
        self.changed.notify_all();
    }

    /// The task runs: input goes there.
    pub fn set_input(&self, file: Arc<File>) {
        let mut inner = self.lock();
        if let Some(size) = inner.size.filter(|_| self.terminal) {
            terminal::resize(&*file, size);
        }
        inner.input = Input::Open(file);
        self.changed.notify_all();
    }

    /// No more input comes.
    pub fn end_input(&self) {
        self.lock().input = Input::Closed;
    }

    /// The file that input goes to, once there is one; none when it is closed or all is over.
    fn input(&self) -> Option<Arc<File>> {
        let mut inner = self.lock();
        loop {
            match &inner.input {
                Input::Open(file) => return Some(file.clone()),
                Input::Closed => return None,
                Input::Later if inner.exit.is_some() => return None,
                Input::Later => inner = self.wait(inner),
            }
        }
    }

    /// The terminal of somebody who is attached has this size, and so has the job's.
    pub fn resize(&self, size: TerminalSize) {
        let mut inner = self.lock();
        inner.size = Some(size);
        if let Input::Open(file) = &inner.input {
            terminal::resize(&**file, size);
        }
    }

    /// Writes what somebody says until that one has gone or says no more; what nobody takes any
    /// more is dropped.
    pub fn write(&self, queue: &InputQueue, taken: impl Fn(usize)) {
        let write = |bytes: &[u8]| self.input().map_or(Ok(()), |file| (&*file).write_all(bytes));
        if queue.write_by(&self.writing, write, taken) {
            self.end_input();
        }
    }

    /// Somebody attaches who knows the output up to `known`; gives a number and where output
    /// begins.
    pub fn attach(&self, known: Option<u64>) -> (u64, u64) {
        let mut inner = self.lock();
        let oldest = inner.chunks.front().map_or(inner.end, |chunk| chunk.begin);
        let at = known.map_or(oldest, |known| known.clamp(oldest, inner.end));
        inner.last_reader += 1;
        let number = inner.last_reader;
        inner.readers.insert(number, Reader { at, heard: Instant::now() });
        inner.alone_since = None;
        (number, at)
    }

    /// A sign of life of somebody who is attached.
    pub fn heard(&self, reader: u64) {
        if let Some(reader) = self.lock().readers.get_mut(&reader) {
            reader.heard = Instant::now();
        }
    }

    /// Somebody goes: on purpose, or not.
    pub fn leave(&self, reader: u64, on_purpose: bool) {
        let mut inner = self.lock();
        let was_there = inner.readers.remove(&reader).is_some();
        if was_there && inner.readers.is_empty() && !on_purpose {
            inner.alone_since = Some(Instant::now());
        }
        self.changed.notify_all();
    }

    /// What comes next; waits for it a while.
    pub fn next(&self, reader: u64) -> Next {
        let mut inner = self.lock();
        for looks in 0.. {
            let Some(at) = inner.readers.get(&reader).map(|reader| reader.at) else {
                return Next::Gone;
            };
            if let Some((errors, bytes)) = inner.piece(at) {
                let end = at + bytes.len() as u64;
                inner.readers.get_mut(&reader).expect("looked up above").at = end;
                self.changed.notify_all();
                return Next::Output(errors, bytes);
            }
            if let Some(code) = inner.exit {
                return Next::Exit(code);
            }
            if looks > 0 {
                break;
            }
            inner = self.wait(inner);
        }
        Next::Nothing
    }

    /// All is over; nobody is waited for any more.
    pub fn close(&self, exit: i32) {
        self.lock().exit = Some(exit);
        self.changed.notify_all();
    }

    /// How long those who were attached have been gone; none when somebody is there, or went on
    /// purpose.
    pub fn alone_for(&self) -> Option<Duration> {
        self.lock().alone_since.map(|since| since.elapsed())
    }

    /// Those who have vanished have from now on to come back.
    pub fn begin_waiting_anew(&self) {
        let mut inner = self.lock();
        inner.alone_since = inner.alone_since.map(|_| Instant::now());
    }

    /// Waits until nobody is attached any more, for so long at most.
    pub fn until_left(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut inner = self.lock();
        while !inner.readers.is_empty() && Instant::now() < end {
            inner = self.wait(inner);
        }
    }
}

impl Inner {
    /// Whether the job has to wait: somebody who is attached still needs the oldest of too much.
    fn is_full(&self) -> bool {
        self.bytes >= CONSOLE_WAITING_BYTES_MAX && self.is_needed()
    }

    fn is_needed(&self) -> bool {
        let Some(oldest) = self.chunks.front() else { return false };
        let end = oldest.begin + oldest.bytes.len() as u64;
        self.readers.values().any(|reader| reader.at < end)
    }

    /// Drops what is neither recent nor needed.
    fn trim(&mut self) {
        while let Some(oldest) = self.chunks.front() {
            if self.bytes - oldest.bytes.len() < CONSOLE_RECENT_BYTES || self.is_needed() {
                return;
            }
            self.bytes -= oldest.bytes.len();
            self.chunks.pop_front();
        }
    }

    fn drop_silent(&mut self, now: Instant) {
        let limit = Duration::from_secs(STREAM_SILENT_SECS_MAX);
        self.readers.retain(|_, reader| now.duration_since(reader.heard) < limit);
        if self.readers.is_empty() && self.alone_since.is_none() {
            self.alone_since = Some(now);
        }
    }

    /// Output from there on, of one kind, as much as fits a frame.
    fn piece(&self, at: u64) -> Option<(bool, Vec<u8>)> {
        let place = self.chunks.partition_point(|chunk| chunk.begin <= at).checked_sub(1)?;
        let mut piece = Vec::new();
        let mut errors = None;
        for chunk in self.chunks.range(place..) {
            if errors.is_some_and(|errors| errors != chunk.errors) {
                break;
            }
            let from = usize::try_from((at + piece.len() as u64).saturating_sub(chunk.begin));
            let rest = chunk.bytes.get(from.unwrap_or(usize::MAX)..).unwrap_or_default();
            let count = rest.len().min(STREAM_FRAME_BYTES_MAX - piece.len());
            if count == 0 {
                continue;
            }
            errors = Some(chunk.errors);
            piece.extend_from_slice(&rest[..count]);
            if count < rest.len() {
                break;
            }
        }
        errors.map(|errors| (errors, piece))
    }
}

/// Output that is read and copied to the console on the way.
pub(super) struct Tee<R> {
    pub stream: R,
    pub console: Arc<Console>,
    pub errors: bool,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        if count > 0 {
            self.console.push(self.errors, &buffer[..count]);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> Next {
        Next::Output(false, text.as_bytes().to_vec())
    }

    #[test]
    fn whoever_attaches_sees_recent_output_and_what_follows() {
        let console = Console::new(true);
        console.push(false, b"one ");
        console.push(false, b"two ");
        let (first, from) = console.attach(None);
        assert_eq!((from, console.next(first)), (0, output("one two ")));
        console.push(true, b"wrong");
        console.push(false, b"three");
        assert_eq!(console.next(first), Next::Output(true, b"wrong".to_vec()));
        let (second, from) = console.attach(Some(10));
        assert_eq!((from, console.next(second)), (10, Next::Output(true, b"ong".to_vec())));
        assert_eq!(console.next(second), output("three"));
        console.close(3);
        assert_eq!([console.next(first), console.next(second)], [output("three"), Next::Exit(3)]);
        assert_eq!(console.next(first), Next::Exit(3));
    }

    #[test]
    fn old_output_goes_and_the_rest_keeps_its_place() {
        let console = Console::new(true);
        let line = vec![b'x'; 10_000];
        (0..100).for_each(|_| console.push(false, &line));
        let (reader, from) = console.attach(Some(5));
        assert_eq!(from, 930_000);
        assert!(console.lock().bytes < CONSOLE_RECENT_BYTES + line.len());
        let Next::Output(false, bytes) = console.next(reader) else { panic!("no output") };
        assert_eq!(bytes.len(), STREAM_FRAME_BYTES_MAX);
    }

    #[test]
    fn nothing_is_lost_by_a_reader_that_is_slow() {
        let console = Arc::new(Console::new(false));
        let (reader, _) = console.attach(None);
        let writer = console.clone();
        let wrote = std::thread::spawn(move || {
            (0..400).for_each(|number: u32| writer.push(false, &vec![number as u8; 10_000]));
            writer.close(0);
        });
        let mut bytes = Vec::new();
        loop {
            match console.next(reader) {
                Next::Output(_, more) => bytes.extend(more),
                Next::Exit(code) => break assert_eq!(code, 0),
                Next::Nothing | Next::Gone => {}
            }
        }
        wrote.join().unwrap();
        let expected: Vec<u8> =
            (0..400).flat_map(|number: u32| vec![number as u8; 10_000]).collect();
        assert!(bytes == expected);
    }

    #[test]
    fn those_who_go_on_purpose_are_not_missed() {
        let console = Console::new(true);
        assert!(console.alone_for().is_some());
        let ((first, _), (second, _)) = (console.attach(None), console.attach(None));
        console.leave(first, false);
        assert!(console.alone_for().is_none());
        console.leave(second, true);
        assert!(console.alone_for().is_none());
        let (third, _) = console.attach(None);
        console.leave(third, false);
        assert!(console.alone_for().is_some());
    }
}
