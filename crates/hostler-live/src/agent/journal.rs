//! The leases that an agent ever took on, in one file that only grows: `+7` taken on, `-7` over,
//! `+7=3` taken on with the tasks that were started for 3, `^7` over are all up to 7 that are not
//! named.
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
    known: Known,
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    /// True while held.
    leases: BTreeMap<LeaseId, bool>,
    /// Shims of leases that are held and go on with the tasks of others.
    shims: BTreeMap<LeaseId, LeaseId>,
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
        let mut known = Known::parse(&text);
        known.prune();
        let file = write_anew(path, &known.show())?;
        Ok(Journal { path: path.to_owned(), file, lines: 0, known })
    }

    fn write(&mut self, lines: &[Line]) -> io::Result<()> {
        // One write, and a newline first: half a line of a full disk spoils no other.
        let text = lines.iter().fold(String::from("\n"), |text, line| text + &line.show());
        self.file.write_all(text.as_bytes())?;
        lines.iter().for_each(|line| self.known.take(*line));
        self.lines += lines.len();
        Ok(())
    }
}

/// One line of the file.
#[derive(Clone, Copy, Debug)]
enum Line {
    Held(LeaseId, Option<LeaseId>),
    Over(LeaseId),
    Mark(LeaseId),
}

impl Line {
    fn parse(line: &str) -> Option<Line> {
        let lease = |digits: &str| digits.parse().ok().map(LeaseId);
        let rest = line.get(1..)?;
        match (line.get(..1)?, rest.split_once('=')) {
            ("+", None) => Some(Line::Held(lease(rest)?, None)),
            ("+", Some((held, shim))) => Some(Line::Held(lease(held)?, Some(lease(shim)?))),
            ("-", None) => Some(Line::Over(lease(rest)?)),
            ("^", None) => Some(Line::Mark(lease(rest)?)),
            _ => None,
        }
    }

    fn show(self) -> String {
        match self {
            Line::Held(lease, None) => format!("+{}\n", lease.0),
            Line::Held(lease, Some(shim)) => format!("+{}={}\n", lease.0, shim.0),
            Line::Over(lease) => format!("-{}\n", lease.0),
            Line::Mark(lease) => format!("^{}\n", lease.0),
        }
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
        let leases = self.known.leases.iter();
        leases.filter(|(_, held)| **held).map(|(lease, _)| *lease).collect()
    }

    fn is_forgotten(&self, lease: LeaseId) -> bool {
        match self.known.leases.get(&lease) {
            Some(held) => !held,
            None => self.known.mark.is_some_and(|mark| lease <= mark),
        }
    }

    fn last(&self) -> Option<LeaseId> {
        self.known.leases.keys().next_back().copied().max(self.known.mark)
    }

    fn accept(&mut self, lease: LeaseId) -> io::Result<()> {
        self.write(&[Line::Held(lease, None)])
    }

    fn shim_of(&self, lease: LeaseId) -> LeaseId {
        self.known.shims.get(&lease).copied().unwrap_or(lease)
    }

    fn carry_on(&mut self, lease: LeaseId, of: LeaseId) -> io::Result<()> {
        let shim = self.shim_of(of);
        self.write(&[Line::Held(lease, Some(shim)), Line::Over(of)])
    }

    fn forget(&mut self, lease: LeaseId) -> io::Result<()> {
        self.write(&[Line::Over(lease)])?;
        if self.known.leases.len() > 2 * OVER_MAX {
            self.known.prune();
        }
        if self.lines > LINES_MAX {
            // The long one serves as well until there is room for another.
            self.lines = 0;
            if let Ok(file) = write_anew(&self.path, &self.known.show()) {
                self.file = file;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Known {
    fn parse(text: &str) -> Known {
        let mut known = Known::default();
        // A line without its end may have lost digits.
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.filter_map(Line::parse).for_each(|line| known.take(line));
        known
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Held(lease, shim) => {
                self.leases.insert(lease, true);
                let Some(shim) = shim else { return };
                // The word that the one before is over may be lost on a full disk.
                let before = self.shims.iter().find(|(_, of)| **of == shim).map(|(held, _)| *held);
                let before = before.unwrap_or(shim);
                if before != lease {
                    self.take(Line::Over(before));
                }
                self.shims.insert(lease, shim);
            }
            Line::Over(lease) => {
                self.leases.insert(lease, false);
                self.shims.remove(&lease);
            }
            Line::Mark(lease) => self.mark = Some(lease),
        }
    }

    fn show(&self) -> String {
        let line = |(lease, held): (&LeaseId, &bool)| match held {
            true => Line::Held(*lease, self.shims.get(lease).copied()),
            false => Line::Over(*lease),
        };
        let lines = self.mark.map(Line::Mark).into_iter().chain(self.leases.iter().map(line));
        lines.map(Line::show).collect()
    }

    /// Replaces the oldest leases that are over by the mark.
    fn prune(&mut self) {
        let over = self.leases.iter().filter(|(_, held)| !**held).map(|(lease, _)| *lease);
        let over: Vec<LeaseId> = over.collect();
        let Some(excess) = over.len().checked_sub(OVER_MAX) else { return };
        for lease in over.into_iter().take(excess) {
            self.leases.remove(&lease);
            self.mark = self.mark.max(Some(lease));
        }
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
        let mut known = Known::parse(&text);
        known.prune();
        assert_eq!(known.mark, Some(LeaseId(903)));
        assert_eq!(known.leases.get(&LeaseId(9000)), Some(&true));
        assert_eq!(known.leases.get(&LeaseId(90)), None);
        assert_eq!(Known::parse(&known.show()), known);
    }

    #[test]
    fn who_goes_on_with_the_tasks_of_another_is_known_to_the_next_agent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        journal.accept(LeaseId(3)).unwrap();
        journal.carry_on(LeaseId(5), LeaseId(3)).unwrap();
        journal.carry_on(LeaseId(9), LeaseId(5)).unwrap();
        let again = Journal::open(&path).unwrap();
        assert_eq!(again.held(), [LeaseId(9)]);
        assert_eq!(again.shim_of(LeaseId(9)), LeaseId(3));
        assert!(again.is_forgotten(LeaseId(3)) && again.is_forgotten(LeaseId(5)));
    }

    #[test]
    fn of_two_leases_with_the_same_tasks_the_later_one_has_them() {
        let known = Known::parse("+3\n\n+5=3\n\n+9=3\n-");
        let held: Vec<u32> =
            known.leases.iter().filter(|(_, held)| **held).map(|(lease, _)| lease.0).collect();
        assert_eq!(held, [9]);
        assert_eq!(known.shims, BTreeMap::from([(LeaseId(9), LeaseId(3))]));
    }
}
