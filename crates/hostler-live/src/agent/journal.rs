//! The leases that an agent ever took on, in one file that only grows: `+7` taken on, `-7` over,
//! `^7` over are all up to 7 that are not named.
//!
//! One file makes any number of leases safe with one sync. When it is opened, and when it has grown
//! long, it is written anew without what is long over.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hostler_core::id::LeaseId;

use super::core::LeaseDisk;

/// Leases that are over and still known by name: orders overtake each other by far fewer.
const OVER_MAX: usize = 4096;

/// Lines that are added before the file is written anew: as many as it then has, some times over.
const LINES_MAX: usize = 8 * OVER_MAX;

/// A journal of leases on a real disk.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Lines that were added since it was written anew.
    lines: usize,
    /// True while held.
    leases: BTreeMap<LeaseId, bool>,
    /// All up to this one that are not named are over.
    mark: Option<LeaseId>,
}

impl Journal {
    /// Reads the journal at `path`, or begins one.
    pub fn open(path: &Path) -> io::Result<Journal> {
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => String::new(),
            Err(fault) => return Err(fault),
        };
        let (mut leases, mut mark) = parse(&text);
        prune(&mut leases, &mut mark);
        let file = write_anew(path, &show(&leases, mark))?;
        Ok(Journal { path: path.to_owned(), file, lines: 0, leases, mark })
    }

    fn write(&mut self, lease: LeaseId, held: bool) -> io::Result<()> {
        let sign = if held { '+' } else { '-' };
        // One write, and a newline first: half a line of a full disk spoils no other.
        self.file.write_all(format!("\n{sign}{}\n", lease.0).as_bytes())?;
        self.leases.insert(lease, held);
        self.lines += 1;
        Ok(())
    }
}

/// Writes a file that replaces the one at `path` whole or not at all.
fn write_anew(path: &Path, text: &str) -> io::Result<File> {
    let partial = path.with_extension("partial");
    let mut options = OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&partial, path)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

impl LeaseDisk for Journal {
    fn held(&self) -> Vec<LeaseId> {
        self.leases.iter().filter(|(_, held)| **held).map(|(lease, _)| *lease).collect()
    }

    fn is_forgotten(&self, lease: LeaseId) -> bool {
        match self.leases.get(&lease) {
            Some(held) => !held,
            None => self.mark.is_some_and(|mark| lease <= mark),
        }
    }

    fn last(&self) -> Option<LeaseId> {
        self.leases.keys().next_back().copied().max(self.mark)
    }

    fn accept(&mut self, lease: LeaseId) -> io::Result<()> {
        self.write(lease, true)
    }

    fn forget(&mut self, lease: LeaseId) -> io::Result<()> {
        self.write(lease, false)?;
        if self.leases.len() > 2 * OVER_MAX {
            prune(&mut self.leases, &mut self.mark);
        }
        if self.lines > LINES_MAX {
            // The long one serves as well until there is room for another.
            self.lines = 0;
            if let Ok(file) = write_anew(&self.path, &show(&self.leases, self.mark)) {
                self.file = file;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn parse(text: &str) -> (BTreeMap<LeaseId, bool>, Option<LeaseId>) {
    let (mut leases, mut mark) = (BTreeMap::new(), None);
    // A line without its end may have lost digits.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let lease = |digits: &str| digits.parse().ok().map(LeaseId);
        match (line.get(..1), line.get(1..).and_then(lease)) {
            (Some("+"), Some(lease)) => _ = leases.insert(lease, true),
            (Some("-"), Some(lease)) => _ = leases.insert(lease, false),
            (Some("^"), Some(lease)) => mark = Some(lease),
            _ => {}
        }
    }
    (leases, mark)
}

fn show(leases: &BTreeMap<LeaseId, bool>, mark: Option<LeaseId>) -> String {
    let mark = mark.map(|lease| format!("^{}\n", lease.0)).unwrap_or_default();
    let line = |(lease, held): (&LeaseId, &bool)| {
        format!("{}{}\n", if *held { '+' } else { '-' }, lease.0)
    };
    leases.iter().map(line).fold(mark, |text, line| text + &line)
}

/// Replaces the oldest leases that are over by the mark.
fn prune(leases: &mut BTreeMap<LeaseId, bool>, mark: &mut Option<LeaseId>) {
    let over: Vec<LeaseId> = leases.iter().filter(|(_, held)| !**held).map(|(id, _)| *id).collect();
    let Some(excess) = over.len().checked_sub(OVER_MAX) else { return };
    for lease in over.into_iter().take(excess) {
        leases.remove(&lease);
        *mark = (*mark).max(Some(lease));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_has_grown_long_is_written_anew_and_says_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        let most = u32::try_from(2 * LINES_MAX).unwrap();
        journal.accept(LeaseId(0)).unwrap();
        for id in 1..most {
            journal.accept(LeaseId(id)).unwrap();
            journal.forget(LeaseId(id)).unwrap();
        }
        journal.sync().unwrap();
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert!(bytes < 12 * (LINES_MAX + 2 * OVER_MAX) as u64, "the file has {bytes} bytes");
        let again = Journal::open(&path).unwrap();
        assert_eq!(again.held(), [LeaseId(0)]);
        assert!((1..most).all(|id| again.is_forgotten(LeaseId(id))));
    }

    #[test]
    fn a_torn_line_and_what_is_long_over_are_left_out() {
        let mut text: String = (0..5000).map(|id| format!("+{id}\n\n-{id}\n")).collect();
        text += "+9000\n-90";
        let (mut leases, mut mark) = parse(&text);
        prune(&mut leases, &mut mark);
        assert_eq!(mark, Some(LeaseId(903)));
        assert_eq!(leases.get(&LeaseId(9000)), Some(&true));
        assert_eq!(leases.get(&LeaseId(90)), None);
        assert_eq!(parse(&show(&leases, mark)), (leases, mark));
    }
}
