//! A look at SQLite's write-ahead log before SQLite takes it up.
//!
//! SQLite reads the log up to the first page that makes no sense and drops the rest without a word.
//! For the end of a log that is right: a crash leaves it torn, and nobody was told of what stands
//! there. But each commit is on the disk before the next one begins, so where pages of a later
//! commit follow, the one that cannot be read was acknowledged: the disk has lost it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 24;

/// The first four bytes of a log; the last bit tells the byte order of its sums.
const MAGIC: u32 = 0x377f_0682;

/// Pages are this large at least and at most.
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 512..=65_536;

/// What a log looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WalLook {
    /// Whether its end cannot be read.
    pub(super) torn: bool,
    /// Whether commits that were acknowledged cannot be read.
    pub(super) broken: bool,
}

/// Looks at a log; one that is not there is whole. `page_bytes` is what the file says, for a log
/// that cannot tell any more.
pub(super) fn look(path: &Path, page_bytes: usize) -> io::Result<WalLook> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(WalLook::default()),
        Err(error) => return Err(error),
    };
    let mut log = BufReader::with_capacity(1 << 16, file);
    let mut head = [0; HEAD_BYTES];
    if read_full(&mut log, &mut head)? < HEAD_BYTES {
        return Ok(WalLook::default());
    }
    let big_endian = word(&head, 0) & 1 == 1;
    let sum = checksum(big_endian, (0, 0), &head[..24]);
    let is_sound = word(&head, 0) & !1 == MAGIC && sum == (word(&head, 24), word(&head, 28));
    let page = if is_sound { word(&head, 8) as usize } else { page_bytes };
    if !PAGE_BYTES.contains(&page) {
        return Ok(WalLook { torn: true, broken: false });
    }
    let salts = (word(&head, 16), word(&head, 20));
    let chain = is_sound.then_some(sum);
    let (commits, after_commit, torn) = (0, false, !is_sound);
    let reading = Reading { big_endian, page, salts, is_sound, chain, commits, after_commit, torn };
    scan(&mut log, reading)
}

/// Where the scan of a log stands.
struct Reading {
    big_endian: bool,
    page: usize,
    /// What tells frames of this log from those of an earlier one in the same file.
    salts: (u32, u32),
    /// Whether the head of the log says so; otherwise they are those of the last frame.
    is_sound: bool,
    /// The sum after the last frame, while everything was sound.
    chain: Option<(u32, u32)>,
    /// Commits that end at or after the first frame that is not sound.
    commits: u32,
    /// Whether a frame follows such a commit.
    after_commit: bool,
    /// Whether something of this log is not sound.
    torn: bool,
}

fn scan(log: &mut impl Read, mut reading: Reading) -> io::Result<WalLook> {
    let mut frame = vec![0; FRAME_HEAD_BYTES + reading.page];
    loop {
        let read = read_full(log, &mut frame)?;
        if read < frame.len() {
            let torn = read > 0 || reading.torn;
            return Ok(WalLook { torn, broken: reading.after_commit });
        }
        let salts = (word(&frame, 8), word(&frame, 12));
        if !reading.is_sound && reading.salts != salts {
            (reading.salts, reading.commits) = (salts, 0);
        }
        let is_ours = reading.salts == salts;
        if let Some(chain) = reading.chain {
            let sum = checksum(reading.big_endian, chain, &frame[..8]);
            let sum = checksum(reading.big_endian, sum, &frame[FRAME_HEAD_BYTES..]);
            if is_ours && sum == (word(&frame, 16), word(&frame, 20)) {
                reading.chain = Some(sum);
                continue;
            }
            (reading.chain, reading.torn) = (None, is_ours);
        }
        // From here on nothing counts for SQLite.
        if is_ours {
            reading.after_commit |= reading.commits > 0;
            reading.commits += u32::from(word(&frame, 4) != 0);
        }
    }
}

/// Reads until the buffer is full or there is no more.
fn read_full(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match from.read(&mut into[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The sum of SQLite's file format, going on from the one before.
fn checksum(big_endian: bool, (mut first, mut second): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let number = |at: usize| match big_endian {
        true => word(bytes, at),
        false => word(bytes, at).swap_bytes(),
    };
    for at in (0..bytes.len()).step_by(8) {
        first = first.wrapping_add(number(at)).wrapping_add(second);
        second = second.wrapping_add(number(at + 4)).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with three commits of some pages each, and where each of them ends.
    fn log() -> (Vec<u8>, [usize; 3]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let wal = folder.path().join("t.db-wal");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
        connection.execute_batch("CREATE TABLE t (x TEXT)").unwrap();
        let ends = [(); 3].map(|()| {
            connection.execute("INSERT INTO t VALUES (?1)", ["x".repeat(9_000)]).unwrap();
            usize::try_from(std::fs::metadata(&wal).unwrap().len()).unwrap()
        });
        (std::fs::read(&wal).unwrap(), ends)
    }

    fn look_at(bytes: &[u8]) -> (bool, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wal");
        std::fs::write(&path, bytes).unwrap();
        let WalLook { torn, broken } = look(&path, 4096).unwrap();
        (torn, broken)
    }

    #[test]
    fn a_torn_end_is_no_loss_and_a_hole_before_later_commits_is_one() {
        let (whole, ends) = log();
        assert_eq!(look_at(&whole), (false, false));
        assert_eq!(look_at(&whole[..ends[2] - 700]), (true, false));
        assert_eq!(look_at(&whole[..ends[2] - 4120 - 700]), (true, false));
        let spoilt = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at..at + 100].fill(0x55);
            bytes
        };
        assert_eq!(look_at(&spoilt(ends[1] + 500)), (true, false), "in the last commit");
        assert_eq!(look_at(&spoilt(ends[0] + 500)), (true, true), "in the one before");
        assert_eq!(look_at(&spoilt(ends[1] - 500)), (true, true), "at its end");
        assert_eq!(look_at(&spoilt(0)), (true, true), "in the head");
    }
}
