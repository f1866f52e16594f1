//! The latest run times by likeness, and how right it was to go by them.
//!
//! The likeness that was taught least recently is forgotten first. Run times are logarithms in
//! whole millionths, so that sorting and adding them up is exact.

use std::collections::{BTreeMap, VecDeque};

use super::likeness::Likeness;

/// Numbers of latest run times that are looked at: what just changed, what is usual, and what is
/// steady.
pub(super) const WINDOWS: [usize; 3] = [5, 20, 50];

/// Ways to make one number of all that is said; see [`super::guess`].
pub(super) const GUESSES: usize = 2;

/// No entry.
const NONE: u32 = u32::MAX;

/// How right something was: a mean of losses in which old ones fade.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    losses: f64,
    weight: f64,
}

impl Record {
    /// Adds a loss; those before count `fade` of what they did.
    pub(super) fn add(&mut self, loss: f64, fade: f64) {
        self.losses = self.losses * fade + loss;
        self.weight = self.weight * fade + 1.0;
    }

    /// The mean loss, when `usual` counts as that many losses more.
    pub(super) fn mean(&self, usual: f64, count: f64) -> f64 {
        (self.losses + usual * count) / (self.weight + count)
    }
}

/// The latest run times of jobs that are alike.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) likeness: Likeness,
    /// The lesson that it began with: tells it from what had its place before.
    pub(super) born: u64,
    pub(super) oldest_first: VecDeque<u32>,
    /// The latest of each window but the first, which is as quickly sorted.
    ascending: [Vec<u32>; WINDOWS.len() - 1],
    /// Sums of the roots of the run times of each window, whole so that they stay exact.
    roots: [u64; WINDOWS.len()],
    /// How right the middle of each window was.
    pub(super) records: [Record; WINDOWS.len()],
    /// How often each guess about such jobs missed.
    pub(super) misses: [Record; GUESSES],
    older: u32,
    newer: u32,
}

impl Entry {
    fn new(likeness: Likeness, born: u64) -> Entry {
        Entry {
            likeness,
            born,
            oldest_first: VecDeque::new(),
            ascending: [Vec::new(), Vec::new()],
            roots: [0; WINDOWS.len()],
            records: [Record::default(); WINDOWS.len()],
            misses: [Record::default(); GUESSES],
            older: NONE,
            newer: NONE,
        }
    }

    /// Windows that differ: one that is not full is the same as the next larger.
    pub(super) fn windows(&self) -> usize {
        let count = self.oldest_first.len();
        1 + WINDOWS[..WINDOWS.len() - 1].iter().filter(|window| count > **window).count()
    }

    /// The middle of each window; those that do not differ repeat the last that does.
    pub(super) fn middles(&self) -> [u32; WINDOWS.len()] {
        let latest = self.oldest_first.iter().rev().take(WINDOWS[0]);
        let mut first = [0; WINDOWS[0]];
        let mut count = 0;
        for (place, run) in first.iter_mut().zip(latest) {
            *place = *run;
            count += 1;
        }
        first[..count].sort_unstable();
        [middle(&first[..count]), middle(&self.ascending[0]), middle(&self.ascending[1])]
    }

    /// The mean root of each window's run times.
    pub(super) fn mean_roots(&self) -> [f64; WINDOWS.len()] {
        let count = self.oldest_first.len();
        std::array::from_fn(|at| self.roots[at] as f64 / count.min(WINDOWS[at]) as f64)
    }

    fn push(&mut self, run: u32) {
        let count = self.oldest_first.len();
        for (sum, most) in self.roots.iter_mut().zip(WINDOWS) {
            if count >= most {
                *sum -= root(self.oldest_first[count - most]);
            }
            *sum += root(run);
        }
        for (ascending, most) in self.ascending.iter_mut().zip(&WINDOWS[1..]) {
            if ascending.len() == *most {
                let leaving = self.oldest_first[self.oldest_first.len() - most];
                ascending.remove(ascending.partition_point(|known| *known < leaving));
            }
            ascending.insert(ascending.partition_point(|known| *known < run), run);
        }
        if self.oldest_first.len() == WINDOWS[WINDOWS.len() - 1] {
            self.oldest_first.pop_front();
        }
        self.oldest_first.push_back(run);
    }
}

/// The square root of a run time in microseconds, from its logarithm.
fn root(log: u32) -> u64 {
    libm::round(libm::exp(f64::from(log) / 2e6)) as u64
}

/// The middle of ascending numbers; of an even count the mean of the two in the middle.
fn middle(ascending: &[u32]) -> u32 {
    let count = ascending.len();
    assert!(count > 0, "an entry has a run time");
    ascending[(count - 1) / 2].midpoint(ascending[count / 2])
}

/// Entries by likeness, and by when they were taught.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    index: BTreeMap<Likeness, u32>,
    entries: Vec<Entry>,
    /// Ends of the list through `older` and `newer`.
    oldest: u32,
    newest: u32,
    max: usize,
    lessons: u64,
}

impl Memory {
    /// A memory of at most `max` likenesses.
    pub(super) fn new(max: usize) -> Memory {
        assert!(max > 0, "a memory holds something");
        Memory {
            index: BTreeMap::new(),
            entries: Vec::new(),
            oldest: NONE,
            newest: NONE,
            max,
            lessons: 0,
        }
    }

    /// The place of a likeness.
    pub(super) fn find(&self, likeness: &Likeness) -> Option<u32> {
        self.index.get(likeness).copied()
    }

    pub(super) fn entry(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    /// The entry that began with a lesson, if it is still there.
    pub(super) fn same(&mut self, at: u32, born: u64) -> Option<&mut Entry> {
        self.entries.get_mut(at as usize).filter(|entry| entry.born == born)
    }

    /// Teaches all likenesses of a job what it took.
    pub(super) fn teach(&mut self, likenesses: impl Iterator<Item = Likeness>, run: u32) {
        self.lessons += 1;
        for likeness in likenesses {
            let at = self.place(likeness);
            self.make_newest(at);
            self.entries[at as usize].push(run);
        }
    }

    /// The place of a likeness; one that is new gets that of the oldest when there is no room.
    fn place(&mut self, likeness: Likeness) -> u32 {
        if let Some(at) = self.find(&likeness) {
            return at;
        }
        let entry = Entry::new(likeness, self.lessons);
        let at = if self.entries.len() < self.max {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let at = self.oldest;
            self.unlink(at);
            let forgotten = std::mem::replace(&mut self.entries[at as usize], entry);
            self.index.remove(&forgotten.likeness);
            at
        };
        self.index.insert(likeness, at);
        at
    }

    fn make_newest(&mut self, at: u32) {
        if self.newest == at {
            return;
        }
        self.unlink(at);
        let before = std::mem::replace(&mut self.newest, at);
        self.entries[at as usize].older = before;
        match before {
            NONE => self.oldest = at,
            before => self.entries[before as usize].newer = at,
        }
    }

    /// Takes an entry out of the list; one that is in none stays as it is.
    fn unlink(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        let older = std::mem::replace(&mut entry.older, NONE);
        let newer = std::mem::replace(&mut entry.newer, NONE);
        match older {
            NONE if self.oldest == at => self.oldest = newer,
            NONE => {}
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE if self.newest == at => self.newest = older,
            NONE => {}
            newer => self.entries[newer as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use hostler_core::id::TenantId;
    use hostler_core::random::Random;

    use super::*;

    fn tenant(number: u64) -> Likeness {
        Likeness::Tenant(TenantId(number as u32))
    }

    #[test]
    fn what_was_taught_least_recently_is_forgotten_first() {
        let mut memory = Memory::new(3);
        // A plain list in the order of teaching, the latest last.
        let (mut order, mut random) = (Vec::new(), Random::new(5));
        for run in 0..2000 {
            let likeness = tenant(random.bits() % 6);
            memory.teach([likeness].into_iter(), run);
            order.retain(|known| *known != likeness);
            order.push(likeness);
            let kept = &order[order.len().saturating_sub(3)..];
            for number in 0..6 {
                let likeness = tenant(number);
                assert_eq!(memory.find(&likeness).is_some(), kept.contains(&likeness));
            }
            let at = memory.find(&likeness).expect("it was taught just now");
            assert_eq!(memory.entry(at).oldest_first.back(), Some(&run));
        }
        assert_eq!(memory.entries.len(), 3);
    }

    #[test]
    fn a_window_is_about_the_latest() {
        let (mut memory, mut random) = (Memory::new(1), Random::new(9));
        let mut all = Vec::new();
        for _ in 0..300 {
            let run = (random.bits() % 30_000_000) as u32;
            all.push(run);
            memory.teach([Likeness::All].into_iter(), run);
            let entry = memory.entry(0);
            let expected = WINDOWS.map(|window| {
                let mut latest = all[all.len().saturating_sub(window)..].to_vec();
                latest.sort_unstable();
                middle(&latest)
            });
            assert_eq!(entry.middles(), expected);
            let roots = WINDOWS.map(|window| {
                let latest = &all[all.len().saturating_sub(window)..];
                latest.iter().map(|run| root(*run) as f64).sum::<f64>() / latest.len() as f64
            });
            assert_eq!(entry.mean_roots(), roots);
            let windows = WINDOWS.iter().filter(|window| all.len() > **window).count() + 1;
            assert_eq!(entry.windows(), windows.min(WINDOWS.len()));
        }
    }

    #[test]
    fn a_new_entry_is_not_taken_for_the_one_before() {
        let mut memory = Memory::new(1);
        memory.teach([tenant(1)].into_iter(), 7);
        let born = memory.entry(0).born;
        assert!(memory.same(0, born).is_some());
        memory.teach([tenant(2)].into_iter(), 7);
        assert!(memory.same(0, born).is_none());
        assert!(memory.same(9, born).is_none());
    }
}
