//! A table by ascending id that forgets what is over.
//!
//! Ids only grow and most entries are short-lived, so the live ones lie in a window; look-up is an
//! index into it and memory follows the window, not the history. One entry that stays for long
//! keeps the window open behind it: a bit for each number tells where something may be, so that a
//! walk over the entries passes 64 gaps at a time.
//!
//! Entries themselves lie in blocks that are used again: who comes gets the place of somebody who
//! left just before, which is still in the processor's cache, and nobody asks for memory.

use std::collections::VecDeque;

/// Entries in one block: large enough that few are asked for, small enough for a small table.
const BLOCK: usize = 64;

/// The place of a number that has no entry.
const NOWHERE: u32 = u32::MAX;

/// Entries by ascending number.
#[derive(Clone, Debug)]
pub struct IdWindow<Entry> {
    base: u32,
    /// Where the entry of each number from `base` on lies.
    places: VecDeque<u32>,
    /// A bit for each number from `64 * (base / 64)` on, set where an entry is, or was taken from
    /// for a moment.
    used: VecDeque<u64>,
    /// The entries, `BLOCK` of them in each but the last.
    blocks: Vec<Vec<Option<Entry>>>,
    /// Places that nobody has.
    vacant: Vec<u32>,
    len: usize,
}

impl<Entry> Default for IdWindow<Entry> {
    fn default() -> Self {
        let (places, used) = (VecDeque::new(), VecDeque::new());
        IdWindow { base: 0, places, used, blocks: Vec::new(), vacant: Vec::new(), len: 0 }
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
        self.base + self.places.len() as u32
    }

    /// Leaves numbers out: the next one is at least this.
    pub fn skip_to(&mut self, next_id: u32) {
        if self.len == 0 && next_id > self.next_id() {
            self.places.clear();
            self.used.clear();
            self.base = next_id - 1;
        }
        while self.next_id() < next_id {
            self.push(NOWHERE);
        }
    }

    fn push(&mut self, place: u32) {
        let id = self.next_id();
        let word = (id / 64 - self.base / 64) as usize;
        if word == self.used.len() {
            self.used.push_back(0);
        }
        self.used[word] |= u64::from(place != NOWHERE) << (id % 64);
        self.places.push_back(place);
    }

    /// Puts an entry into a place that nobody has.
    fn settle(&mut self, entry: Entry) -> u32 {
        if let Some(place) = self.vacant.pop() {
            *self.place_mut(place) = Some(entry);
            return place;
        }
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let full = (self.blocks.len() - 1) * BLOCK;
        let block = self.blocks.last_mut().expect("pushed just now, if it was missing");
        block.push(Some(entry));
        (full + block.len() - 1) as u32
    }

    /// The place of a number that has one.
    fn place_of(&self, id: u32) -> Option<u32> {
        let place = *self.places.get(id.checked_sub(self.base)? as usize)?;
        (place != NOWHERE).then_some(place)
    }

    fn place_mut(&mut self, place: u32) -> &mut Option<Entry> {
        &mut self.blocks[place as usize / BLOCK][place as usize % BLOCK]
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
        if self.places.is_empty() {
            self.base = id;
        }
        while self.next_id() < id {
            self.push(NOWHERE);
        }
        let place = self.settle(entry);
        self.push(place);
        self.len += 1;
    }

    /// The entry of a number.
    pub fn get(&self, id: u32) -> Option<&Entry> {
        let place = self.place_of(id)? as usize;
        self.blocks[place / BLOCK][place % BLOCK].as_ref()
    }

    /// The entry of a number, to change it.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Entry> {
        let place = self.place_of(id)?;
        self.place_mut(place).as_mut()
    }

    /// Takes an entry out.
    pub fn remove(&mut self, id: u32) -> Option<Entry> {
        let place = self.place_of(id)?;
        let entry = self.place_mut(place).take()?;
        self.vacant.push(place);
        self.places[(id - self.base) as usize] = NOWHERE;
        self.len -= 1;
        self.used[(id / 64 - self.base / 64) as usize] &= !(1 << (id % 64));
        // The last number stays, so that `next_id` never goes back.
        while self.places.len() > 1 && self.places.front() == Some(&NOWHERE) {
            self.places.pop_front();
            self.base += 1;
            if self.base.is_multiple_of(64) {
                self.used.pop_front();
            }
        }
        Some(entry)
    }

    /// Takes an entry out for a moment: its place is kept until it is [put back](Self::put_back).
    pub fn take(&mut self, id: u32) -> Option<Entry> {
        let place = self.place_of(id)?;
        self.place_mut(place).take()
    }

    /// Puts an entry back that was taken out for a moment.
    pub fn put_back(&mut self, id: u32, entry: Entry) {
        let place = self.place_of(id).expect("the place of a taken entry is kept");
        *self.place_mut(place) = Some(entry);
    }

    /// The entries to change them, in no order that means anything.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.blocks.iter_mut().flatten().filter_map(Option::as_mut)
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
                assert_eq!(table.remove(id - 10), Some(id - 10));
            }
        }
        assert_eq!((table.len(), table.places.len()), (10, 10));
        assert_eq!(table.blocks.len(), 1, "places are used again");
        assert_eq!(table.get(5), None);
        assert_eq!(table.get(995), Some(&995));
        for id in 990..1000 {
            table.remove(id);
        }
        assert_eq!(table.next_id(), 1000);
        table.skip_to(900);
        assert_eq!(table.next_id(), 1000);
        table.skip_to(4_000_000_000);
        assert_eq!((table.next_id(), table.places.len()), (4_000_000_000, 1));
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
                        assert_eq!(table.remove(id), map.remove(&id));
                    }
                }
            }
            assert!(table.numbered().eq(map.iter().map(|(id, entry)| (*id, entry))));
            assert!(table.iter().eq(map.values()) && table.len() == map.len());
            let from = (random.bits() % u64::from(next + 2)) as u32;
            assert!(
                table.numbered_from(from).map(|(id, _)| id).eq(map.range(from..).map(|it| *it.0))
            );
            let mut values: Vec<u32> = table.values_mut().map(|value| *value).collect();
            values.sort_unstable();
            assert!(values.iter().eq(map.values()));
        }
        let again = IdWindow::restore(table.next_id(), map);
        assert!(again == table);
    }
}
