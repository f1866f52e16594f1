//! Output of a task in files of limited size, named by where they begin in the stream.
//!
//! Reading goes by that place: it does not matter which file it is in, or that old ones are gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

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

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let limit = self.limit;
            let (_, length, file) = self.segment()?;
            let room = usize::try_from(limit - *length).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            file.write_all(now)?;
            *length += now.len() as u64;
            bytes = later;
        }
        Ok(())
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

/// Carries a stream into files until it ends. What a full disk does not take is lost; the task is
/// never made to wait for it.
pub(super) fn pump(mut stream: impl Read, mut segments: Segments) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                let _ = segments.write(&buffer[..count]);
            }
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
impl Segments {
    pub(crate) fn write_for_test(&mut self, bytes: &[u8]) {
        self.write(bytes).unwrap();
    }
}
