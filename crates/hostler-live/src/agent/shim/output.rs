//! Output of a task in files of limited size, named by where they begin in the stream.
//!
//! Reading goes by that place: it does not matter which file it is in, or that old ones are gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes one stream.
#[derive(Debug)]
pub(crate) struct Segments {
    folder: PathBuf,
    name: String,
    limit: u64,
    kept_max: usize,
    /// Where the open file begins, its length and the file.
    open: Option<(u64, u64, File)>,
    kept: Vec<u64>,
}

impl Segments {
    pub fn new(folder: &Path, name: &str, limit: u64) -> Segments {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        Segments { folder, name, limit: limit.max(1), kept_max: 2, open: None, kept: Vec::new() }
    }

    /// Keeps so many files at most; two at least, so that a reader never loses all at once.
    pub fn keep(mut self, kept_max: usize) -> Segments {
        self.kept_max = kept_max.max(2);
        self
    }

    /// Writes as much as there is room for; gives how much that was, and why not more.
    fn write(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.write_some(&bytes[written..]) {
                Ok(count) => written += count,
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) => return (written, Some(fault)),
            }
        }
        (written, None)
    }

    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let limit = self.limit;
        let (_, length, file) = self.segment()?;
        let room = usize::try_from(limit - *length).unwrap_or(usize::MAX);
        let count = file.write(&bytes[..room.min(bytes.len())])?;
        *length += count as u64;
        match count {
            0 => Err(io::ErrorKind::StorageFull.into()),
            count => Ok(count),
        }
    }

    /// The file with room in it.
    fn segment(&mut self) -> io::Result<&mut (u64, u64, File)> {
        let begin = match &self.open {
            Some((begin, length, _)) if *length >= self.limit => Some(begin + length),
            Some(_) => None,
            None => Some(0),
        };
        if let Some(begin) = begin {
            let mut options = OpenOptions::new();
            let path = self.path(begin);
            let file = options.create(true).truncate(true).write(true).mode(0o600).open(path)?;
            self.open = Some((begin, 0, file));
            self.kept.push(begin);
            if self.kept.len() > self.kept_max {
                let oldest = self.kept.remove(0);
                let _ = fs::remove_file(self.path(oldest));
            }
        }
        Ok(self.open.as_mut().expect("a file was opened above, or before"))
    }

    fn path(&self, begin: u64) -> PathBuf {
        self.folder.join(format!("{}.{begin:020}", self.name))
    }
}

/// What of the output of a lease could not be written.
#[derive(Debug, Default)]
pub(super) struct Losses(AtomicU64);

impl Losses {
    /// Bytes, of all streams.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Carries a stream into files until it ends. What a full disk does not take is lost, and where it
/// is missing the stream says so; the task is never made to wait. `tell` hears of the first loss.
pub(super) fn pump(
    mut stream: impl Read,
    mut segments: Segments,
    losses: &Losses,
    tell: impl Fn(io::Error),
) {
    let mut buffer = vec![0; 64 << 10];
    let mut gap = Gap::default();
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                let (written, fault) = match gap.close(&mut segments) {
                    Ok(()) => segments.write(&buffer[..count]),
                    Err(fault) => (0, Some(fault)),
                };
                if let Some(fault) = fault {
                    let lost = (count - written) as u64;
                    losses.0.fetch_add(lost, Ordering::Relaxed);
                    if gap.open(lost, &fault) {
                        tell(fault);
                    }
                }
            }
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    // If there is no room for that either, the record of the end tells it.
    let _ = gap.close(&mut segments);
}

/// A part of a stream that is missing, until that is written in its place.
#[derive(Debug, Default)]
struct Gap {
    bytes: u64,
    fault: String,
    told: bool,
}

impl Gap {
    /// Begins or widens; says whether it is the first of its stream.
    fn open(&mut self, bytes: u64, fault: &io::Error) -> bool {
        self.bytes += bytes;
        self.fault = fault.to_string();
        !std::mem::replace(&mut self.told, true)
    }

    fn close(&mut self, segments: &mut Segments) -> io::Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let Gap { bytes, fault, .. } = self;
        let line = format!("\n[hostler: {bytes} bytes of output are lost here: {fault}]\n");
        match segments.write(line.as_bytes()) {
            (_, None) => {
                self.bytes = 0;
                Ok(())
            }
            (_, Some(fault)) => Err(fault),
        }
    }
}

#[cfg(test)]
impl Segments {
    pub(crate) fn write_for_test(&mut self, bytes: &[u8]) {
        assert!(self.write(bytes).1.is_none());
    }
}
