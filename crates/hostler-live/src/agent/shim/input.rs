//! Input of a person on its way to a job or a command inside it.
//!
//! It waits in a bounded queue, from which a thread of its own writes: whoever hears the person is
//! free for signals while the job does not read. Of all who write to one file at most one waits for
//! the job; the others wait for their turn, and leave when their person does.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::limits::{PIECE_BYTES_MAX, STREAM_INPUT_BYTES_MAX};

/// The longest wait before somebody looks again.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Default)]
pub(super) struct InputQueue {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    bytes: VecDeque<u8>,
    /// Whether a piece is being written.
    is_writing: bool,
    /// No more comes.
    ended: bool,
    /// Nobody is there: what waits is dropped.
    closed: bool,
    /// Nobody is there, but what waits is written.
    left: bool,
}

impl InputQueue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a moment for a change.
    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.changed.wait_timeout(inner, LOOK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes as many of these bytes as there is room for, after a moment's wait where there is
    /// none; says how many.
    pub fn offer(&self, bytes: &[u8]) -> usize {
        let mut inner = self.lock();
        if inner.bytes.len() >= STREAM_INPUT_BYTES_MAX {
            inner = self.wait(inner);
        }
        if inner.ended || inner.closed || inner.left {
            return bytes.len();
        }
        let count = bytes.len().min(STREAM_INPUT_BYTES_MAX.saturating_sub(inner.bytes.len()));
        inner.bytes.extend(&bytes[..count]);
        self.changed.notify_all();
        count
    }

    /// No more comes after what is there.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Drops what waits.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The person is gone without a word, as by a broken connection: what was said is written,
    /// however long that takes and before what others say, and no more comes.
    pub fn outlive(&self) {
        self.lock().left = true;
        self.changed.notify_all();
    }

    /// Gives what waits a while to be taken, and drops the rest.
    pub fn close_within(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut inner = self.lock();
        while (inner.is_writing || !inner.bytes.is_empty()) && Instant::now() < end {
            inner = self.wait(inner);
        }
        drop(inner);
        self.close();
    }

    /// Writes what comes until no more does, and says how much was taken. What nobody reads any
    /// more is taken, too: whoever does not read may still write. Says whether the input has ended
    /// and all of it was written.
    pub fn write_by(
        &self,
        turn: &Mutex<()>,
        write: impl Fn(&[u8]) -> io::Result<()>,
        taken: impl Fn(usize),
    ) -> bool {
        let (mut ours, mut whole) = (None, true);
        while let Some(piece) = self.next() {
            ours = ours.or_else(|| self.turn(turn));
            whole = ours.is_some();
            if !whole {
                break;
            }
            let _ = write(&piece);
            let mut inner = self.lock();
            inner.is_writing = false;
            // Whose person has left writes all of it first.
            ours = ours.filter(|_| inner.left);
            drop(inner);
            self.changed.notify_all();
            taken(piece.len());
        }
        let inner = self.lock();
        inner.ended && inner.bytes.is_empty() && whole
    }

    /// The next piece; none when no more comes.
    fn next(&self) -> Option<Vec<u8>> {
        let mut inner = self.lock();
        loop {
            let no_more = inner.ended || inner.left;
            if inner.closed || (no_more && inner.bytes.is_empty()) {
                return None;
            }
            let count = inner.bytes.len().min(PIECE_BYTES_MAX);
            if count > 0 {
                inner.is_writing = true;
                let piece = inner.bytes.drain(..count).collect();
                self.changed.notify_all();
                return Some(piece);
            }
            inner = self.wait(inner);
        }
    }

    /// The right to write; none when the person is gone before.
    fn turn<'a>(&self, turn: &'a Mutex<()>) -> Option<MutexGuard<'a, ()>> {
        loop {
            match turn.try_lock() {
                Ok(ours) => return Some(ours),
                Err(TryLockError::Poisoned(ours)) => return Some(ours.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            let inner = self.lock();
            if inner.closed {
                return None;
            }
            drop(self.wait(inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeWriter, Read as _, Write as _};
    use std::sync::Arc;
    use std::thread::{self, JoinHandle};

    use super::*;

    fn writing(
        queue: &Arc<InputQueue>,
        pipe: &Arc<PipeWriter>,
        turn: &Arc<Mutex<()>>,
    ) -> JoinHandle<bool> {
        let (queue, pipe, turn) = (queue.clone(), pipe.clone(), turn.clone());
        thread::spawn(move || queue.write_by(&turn, |bytes| (&*pipe).write_all(bytes), |_| {}))
    }

    fn fill(queue: &InputQueue) -> usize {
        let mut all = 0;
        loop {
            match queue.offer(&[b'x'; 1000]) {
                0 => return all,
                count => all += count,
            }
        }
    }

    #[test]
    fn input_waits_within_bounds_and_comes_whole_and_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = Arc::new(writer);
        let (queue, turn) = (Arc::<InputQueue>::default(), Arc::default());
        let written = writing(&queue, &pipe, &turn);
        queue.offer(b"first ");
        let all = fill(&queue);
        let most = STREAM_INPUT_BYTES_MAX - 6;
        assert!((most..2 * most).contains(&all), "{all}");
        queue.end();
        drop(pipe);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(written.join().unwrap(), "it has ended");
        assert_eq!((read.len(), &read[..7]), (all + 6, &b"first x"[..]));
    }

    #[test]
    fn what_was_said_before_a_connection_broke_is_written_to_its_end_and_before_what_others_say() {
        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = Arc::new(writer);
        let (first, turn) = (Arc::<InputQueue>::default(), Arc::default());
        let written = writing(&first, &pipe, &turn);
        let all = fill(&first);
        first.outlive();
        let (second, last) = (Arc::<InputQueue>::default(), b"last");
        let next = writing(&second, &pipe, &turn);
        second.offer(last);
        second.end();
        second.outlive();
        drop(pipe);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(!written.join().unwrap(), "its input goes on with the next connection");
        assert!(next.join().unwrap(), "it has ended");
        assert_eq!((read.len(), read.ends_with(b"xlast")), (all + last.len(), true));
    }

    #[test]
    fn of_many_who_write_to_a_job_that_does_not_read_one_waits_for_it() {
        let (reader, writer) = io::pipe().unwrap();
        let pipe = Arc::new(writer);
        let (turn, mut threads) = (Arc::default(), Vec::new());
        for _ in 0..5 {
            let queue = Arc::<InputQueue>::default();
            let written = writing(&queue, &pipe, &turn);
            fill(&queue);
            queue.close_within(Duration::from_millis(50));
            threads.push(written);
        }
        let end = Instant::now() + Duration::from_secs(60);
        let left = || threads.iter().filter(|thread| !thread.is_finished()).count();
        while left() > 1 && Instant::now() < end {
            thread::sleep(LOOK);
        }
        assert_eq!(left(), 1);
        // The last one goes with the job.
        drop(reader);
        threads.into_iter().for_each(|thread| assert!(!thread.join().unwrap()));
    }
}
