//! Reading pieces of a job's output from the files that its shim writes.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use data_encoding::BASE64;

use crate::limits::OUTPUT_BYTES_MAX;
use crate::wire::Stream;

/// A piece of output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins in the stream: later than asked for when the beginning is gone.
    pub offset: u64,
    /// The piece; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The piece as it is, in base64, where the text is not.
    pub base64: Option<String>,
    /// Bytes that it stands for.
    pub bytes: u64,
    /// Whether it reaches the end of what is written.
    pub at_end: bool,
}

/// Tries to read while the oldest files are being dropped.
const TRIES_MAX: u32 = 3;

/// Reads a piece from `offset` on; a negative one counts from the end.
pub fn read_piece(folder: &Path, rank: u32, stream: Stream, offset: i64) -> io::Result<Piece> {
    for _ in 1..TRIES_MAX {
        match try_read(folder, rank, stream, offset) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
            read => return read,
        }
    }
    try_read(folder, rank, stream, offset)
}

fn try_read(folder: &Path, rank: u32, stream: Stream, offset: i64) -> io::Result<Piece> {
    let segments = segments(folder, rank, stream)?;
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
        return Ok(Piece { at_end: true, ..Piece::default() });
    };
    let end = last.begin + last.length;
    let wanted = match u64::try_from(offset) {
        Ok(offset) => offset,
        Err(_) => end.saturating_sub(offset.unsigned_abs()),
    };
    let offset = wanted.clamp(first.begin, end);
    let after = segments.partition_point(|segment| segment.begin <= offset);
    let mut bytes = Vec::new();
    for segment in &segments[after - 1..] {
        let from = offset.saturating_sub(segment.begin);
        segment.read(from, OUTPUT_BYTES_MAX - bytes.len(), &mut bytes)?;
    }
    let reaches_end = |bytes: &[u8]| offset + bytes.len() as u64 >= end;
    if !reaches_end(&bytes) || bytes.len() == OUTPUT_BYTES_MAX {
        cut_at_character(&mut bytes);
    }
    let at_end = reaches_end(&bytes);
    let length = bytes.len() as u64;
    let (text, base64) = words(bytes);
    Ok(Piece { offset, text, base64, bytes: length, at_end })
}

/// Bytes as text, and as they are where text cannot tell them.
pub fn words(bytes: Vec<u8>) -> (String, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(fault) => {
            let text = String::from_utf8_lossy(fault.as_bytes()).into_owned();
            (text, Some(BASE64.encode(fault.as_bytes())))
        }
    }
}

struct Segment {
    begin: u64,
    length: u64,
    path: PathBuf,
}

impl Segment {
    /// Reads as much as was there when the segments were listed: more, and the next would be
    /// missing in between.
    fn read(&self, from: u64, limit: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let limit = (limit as u64).min(self.length.saturating_sub(from));
        if limit > 0 {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(from))?;
            file.take(limit).read_to_end(bytes)?;
        }
        Ok(())
    }
}

/// The files of a stream, in order.
fn segments(folder: &Path, rank: u32, stream: Stream) -> io::Result<Vec<Segment>> {
    let name = match stream {
        Stream::Stdout => format!("stdout-{rank}."),
        Stream::Stderr => format!("stderr-{rank}."),
    };
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name();
        let digits = file.to_str().and_then(|file| file.strip_prefix(&name));
        let Some(begin) = digits.and_then(|digits| digits.parse().ok()) else { continue };
        segments.push(Segment { begin, length: entry.metadata()?.len(), path: entry.path() });
    }
    segments.sort_by_key(|segment| segment.begin);
    Ok(segments)
}

/// Leaves a character that continues in the next piece to that, unless nothing else is here.
fn cut_at_character(bytes: &mut Vec<u8>) {
    for back in 1..=bytes.len().min(4) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0x00..=0x7f => 1,
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
        };
        if length > back && back < bytes.len() {
            bytes.truncate(bytes.len() - back);
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::shim::Segments;

    fn check(limit: u64, kept: usize, text: &str, asked: &[(i64, u64, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let mut segments = Segments::new(folder.path(), "stdout-0", limit).keep(kept);
        segments.write_for_test(text.as_bytes());
        for (offset, begin, expected) in asked {
            let piece = read_piece(folder.path(), 0, Stream::Stdout, *offset).unwrap();
            assert_eq!((piece.offset, piece.text.as_str()), (*begin, *expected), "from {offset}");
        }
    }

    #[test]
    fn output_is_read_over_the_borders_of_files() {
        let asked = [(0, 0, "abcdefghij"), (4, 4, "efghij"), (6, 6, "ghij"), (10, 10, "")];
        check(4, 9, "abcdefghij", &asked);
        check(4, 9, "abcdefghij", &[(-3, 7, "hij"), (-99, 0, "abcdefghij"), (99, 10, "")]);
    }

    #[test]
    fn output_whose_file_is_gone_begins_with_the_oldest_that_is_kept() {
        check(4, 2, "abcdefghij", &[(0, 4, "efghij"), (-99, 4, "efghij"), (8, 8, "ij")]);
    }

    #[test]
    fn a_character_on_a_border_is_not_torn() {
        check(4, 9, "abcüd", &[(0, 0, "abcüd"), (3, 3, "üd")]);
        let most = "a".repeat(OUTPUT_BYTES_MAX - 1);
        let next = i64::try_from(most.len()).unwrap();
        check(1 << 20, 9, &format!("{most}üd"), &[(0, 0, &most), (next, most.len() as u64, "üd")]);
    }
}
