//! A table by ascending id that forgets what is over.
//!
//! Ids only grow and most entries are short-lived, so the live ones lie in a window; look-up is an
//! index into it and memory follows the window, not the history. One entry that stays for long
//! keeps the window open behind it: a bit for each number tells where something may be, so that a
//! walk over the entries passes 64 gaps at a time.

use std::collections::VecDeque;

/// Entries by ascending number.
#[derive(Clone, Debug)]
pub struct IdWindow<Entry> {
    base: u32,
    slots: VecDeque<Option<Box<Entry>>>,
    /// A bit for each number from `64 * (base / 64)` on, set where an entry is, or was taken from
    /// for a moment.
    used: VecDeque<u64>,
    len: usize,
}

impl<Entry> Default for IdWindow<Entry> {
    fn default() -> Self {
        IdWindow { base: 0, slots: VecDeque::new(), used: VecDeque::new(), len: 0 }
    }
}

impl<Entry: PartialEq> PartialEq for IdWindow<Entry> {
    /// Equality of entries and of the next number; how far the window reaches back is chance.
    fn eq(&self, other: &IdWindow<Entry>) -> bool {
        self.next_id() == other.next_id() && self.numbered().eq(other.numbered())
    }
}

impl<Entry: Eq> Eq for IdWindow<Entry> {}

impl<Entry> IdWindow<Entry> {
    /// The table with these entries, ascending, whose next number is at least `next_id`.
    pub fn restore(
        next_id: u32,
        entries: impl IntoIterator<Item = (u32, Entry)>,
    ) -> IdWindow<Entry> {
        let mut table = IdWindow::default();
        for (id, entry) in entries {
            table.insert(id, entry);
        }
        table.skip_to(next_id);
        table
    }

    /// The entries with their numbers, ascending.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.numbered_from(0)
    }

    /// The entries from a number on, ascending.
    pub fn numbered_from(&self, id: u32) -> impl Iterator<Item = (u32, &Entry)> {
        let first = self.base / 64 * 64;
        let from = id.max(first) - first;
        let (skipped, part) = ((from / 64) as usize, u64::MAX << (from % 64));
        let words = self.used.iter().enumerate().skip(skipped);
        let ids = words.flat_map(move |(at, word)| {
            let mut left = if at == skipped { *word & part } else { *word };
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(first + at as u32 * 64 + bit)
            })
        });
        ids.filter_map(|id| self.get(id).map(|entry| (id, entry)))
    }

    /// The number that the next entry gets at least.
    pub fn next_id(&self) -> u32 {
        self.base + self.slots.len() as u32
    }

    /// Leaves numbers out: the next one is at least this.
    pub fn skip_to(&mut self, next_id: u32) {
        if self.len == 0 && next_id > self.next_id() {
            self.slots.clear();
            self.used.clear();
            self.base = next_id - 1;
        }
        while self.next_id() < next_id {
            self.push(None);
        }
    }

    fn push(&mut self, entry: Option<Box<Entry>>) {
        let id = self.next_id();
        let word = (id / 64 - self.base / 64) as usize;
        if word == self.used.len() {
            self.used.push_back(0);
        }
        self.used[word] |= u64::from(entry.is_some()) << (id % 64);
        self.slots.push_back(entry);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry; numbers only go up.
    pub fn insert(&mut self, id: u32, entry: Entry) {
        assert!(id >= self.next_id(), "number {id} is given twice");
        if self.slots.is_empty() {
            self.base = id;
        }
        while self.next_id() < id {
            self.push(None);
        }
        self.push(Some(Box::new(entry)));
        self.len += 1;
    }

    /// The entry of a number.
    pub fn get(&self, id: u32) -> Option<&Entry> {
        self.slots.get(id.checked_sub(self.base)? as usize)?.as_deref()
    }

    /// The entry of a number, to change it.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Entry> {
        self.slots.get_mut(id.checked_sub(self.base)? as usize)?.as_deref_mut()
    }

    /// Takes an entry out.
    pub fn remove(&mut self, id: u32) -> Option<Box<Entry>> {
        let slot = self.slots.get_mut(id.checked_sub(self.base)? as usize)?;
        let entry = slot.take()?;
        self.len -= 1;
        self.used[(id / 64 - self.base / 64) as usize] &= !(1 << (id % 64));
        // The last slot stays, so that `next_id` never goes back.
        while self.slots.len() > 1 && self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.base += 1;
            if self.base.is_multiple_of(64) {
                self.used.pop_front();
            }
        }
        Some(entry)
    }

    /// Takes an entry out for a moment: its place is kept until it is [put back](Self::put_back).
    pub fn take(&mut self, id: u32) -> Option<Box<Entry>> {
        self.slots.get_mut(id.checked_sub(self.base)? as usize)?.take()
    }

    /// Puts an entry back that was taken out for a moment.
    pub fn put_back(&mut self, id: u32, entry: Box<Entry>) {
        let slot = self.slots.get_mut((id - self.base) as usize);
        *slot.expect("the place of a taken entry is kept") = Some(entry);
    }

    /// The entries, ascending, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.slots.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// The entries, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.numbered().map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_on_and_numbers_are_never_reused() {
        let mut table = IdWindow::default();
        for id in 0..1000 {
            table.insert(id, id);
            if id >= 10 {
                assert_eq!(table.remove(id - 10).as_deref(), Some(&(id - 10)));
            }
        }
        assert_eq!((table.len(), table.slots.len()), (10, 10));
        assert_eq!(table.get(5), None);
        assert_eq!(table.get(995), Some(&995));
        for id in 990..1000 {
            table.remove(id);
        }
        assert_eq!(table.next_id(), 1000);
        table.skip_to(900);
        assert_eq!(table.next_id(), 1000);
        table.skip_to(4_000_000_000);
        assert_eq!((table.next_id(), table.slots.len()), (4_000_000_000, 1));
    }

    #[test]
    fn any_sequence_of_changes_lists_what_a_map_lists() {
        let mut random = crate::random::Random::new(3);
        let (mut table, mut map) = (IdWindow::default(), std::collections::BTreeMap::new());
        for _ in 0..4000 {
            let next = table.next_id();
            match random.bits() % 8 {
                0..=3 => {
                    let id = next + [0, 0, 0, 1, 90][(random.bits() % 5) as usize];
                    table.insert(id, id);
                    map.insert(id, id);
                }
                4 => table.skip_to(next + (random.bits() % 3) as u32),
                5 if !map.is_empty() => {
                    let at = (random.bits() % map.len() as u64) as usize;
                    let id = *map.keys().nth(at).unwrap();
                    let taken = table.take(id).unwrap();
                    assert_eq!(table.numbered().count(), map.len() - 1);
                    table.put_back(id, taken);
                }
                _ => {
                    // Mostly the oldest, as it is with jobs.
                    let at = if random.bits().is_multiple_of(4) { map.len() / 2 } else { 0 };
                    if let Some(id) = map.keys().nth(at).copied() {
                        assert_eq!(table.remove(id).as_deref(), map.remove(&id).as_ref());
                    }
                }
            }
            assert!(table.numbered().eq(map.iter().map(|(id, entry)| (*id, entry))));
            assert!(table.iter().eq(map.values()) && table.len() == map.len());
            let from = (random.bits() % u64::from(next + 2)) as u32;
            assert!(
                table.numbered_from(from).map(|(id, _)| id).eq(map.range(from..).map(|it| *it.0))
            );
            assert!(table.iter_mut().eq(map.values()));
        }
        let again = IdWindow::restore(table.next_id(), map);
        assert!(again == table);
    }
}
