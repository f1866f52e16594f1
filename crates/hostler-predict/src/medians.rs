//! Medians of the latest run times by what jobs have in common. Not for choosing among them.

use std::collections::{BTreeMap, VecDeque};

use hostler_core::job::Estimate;
use hostler_core::metrics::percentile;
use hostler_core::units::Span;

use crate::features::Key;
use crate::limits::{GROUP_SAMPLES_MIN, KEYS_MAX, RECENT_MAX};

/// The latest run times of every key.
#[derive(Clone, Debug)]
pub struct Medians {
    pub(crate) samples_min: usize,
    pub(crate) keys_max: usize,
    recent: BTreeMap<Key, Recent>,
    /// Keys by when they were last taught; the first is the first to be forgotten.
    by_age: BTreeMap<u64, Key>,
    lessons: u64,
}

/// The latest run times of a key.
#[derive(Clone, Debug, Default)]
struct Recent {
    oldest_first: VecDeque<Span>,
    ascending: Vec<Span>,
    taught: u64,
}

impl Medians {
    /// Medians that are believed once they are of `samples_min` run times.
    pub fn new(samples_min: usize) -> Medians {
        assert!(samples_min > 0, "a median needs a run time");
        assert!(samples_min <= RECENT_MAX, "at most {RECENT_MAX} run times are remembered");
        Medians {
            samples_min,
            keys_max: KEYS_MAX,
            recent: BTreeMap::new(),
            by_age: BTreeMap::new(),
            lessons: 0,
        }
    }

    /// What is believed of jobs with this key.
    pub fn belief(&self, key: Key) -> Option<Estimate> {
        let recent = self.recent.get(&key)?;
        (recent.ascending.len() >= self.samples_min(key)).then(|| middle_of(&recent.ascending))
    }

    /// Run times that a key needs before it is believed.
    fn samples_min(&self, key: Key) -> usize {
        match key {
            // The widest of the group's keys, so that one run does not outvote many.
            Key::Group(_) => self.samples_min.min(GROUP_SAMPLES_MIN),
            Key::UserGroupGpu(..) | Key::UserGroup(..) | Key::User(_) | Key::Gpu(_) | Key::All => {
                self.samples_min
            }
        }
    }

    /// All that is believed.
    pub fn beliefs(&self) -> impl Iterator<Item = (Key, Estimate)> + '_ {
        self.recent.keys().filter_map(|key| Some((*key, self.belief(*key)?)))
    }

    /// Remembers a run time of a key.
    pub fn teach(&mut self, key: Key, run: Span) {
        self.lessons += 1;
        let recent = self.recent.entry(key).or_default();
        self.by_age.remove(&recent.taught);
        self.by_age.insert(self.lessons, key);
        recent.taught = self.lessons;
        recent.push(run);
        if self.recent.len() > self.keys_max {
            let (_, oldest) = self.by_age.pop_first().expect("every key has an age");
            self.recent.remove(&oldest);
        }
    }
}

impl Recent {
    fn push(&mut self, run: Span) {
        if self.oldest_first.len() == RECENT_MAX {
            let oldest = self.oldest_first.pop_front().expect("it is full");
            let at = self.ascending.partition_point(|known| *known < oldest);
            self.ascending.remove(at);
        }
        self.oldest_first.push_back(run);
        let at = self.ascending.partition_point(|known| *known < run);
        self.ascending.insert(at, run);
    }
}

/// The median of ascending run times, and half the distance between their quartiles.
pub(crate) fn middle_of(runs: &[Span]) -> Estimate {
    let quartile = |percent| percentile(runs, percent).expect("there is a run time");
    let spread = Span(quartile(75).saturating_sub(quartile(25)).0 / 2);
    Estimate { run: median(runs), spread }
}

/// The middle of ascending run times; of an even number the mean of the two in the middle.
fn median(runs: &[Span]) -> Span {
    let (below, above) = (runs[(runs.len() - 1) / 2], runs[runs.len() / 2]);
    Span(below.0.midpoint(above.0))
}
