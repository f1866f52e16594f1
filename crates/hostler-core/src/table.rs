//! A table by ascending id that forgets what is over.
//!
//! Ids only grow and most entries are short-lived, so the live ones lie in a window; look-up is an
//! index into it and memory follows the window, not the history.

use std::collections::VecDeque;

/// Entries by ascending number.
#[derive(Clone, Debug)]
pub struct IdWindow<Entry> {
    base: u32,
    slots: VecDeque<Option<Box<Entry>>>,
    len: usize,
}

impl<Entry> Default for IdWindow<Entry> {
    fn default() -> Self {
        IdWindow { base: 0, slots: VecDeque::new(), len: 0 }
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
        if table.slots.is_empty() && next_id > 0 {
            table.base = next_id - 1;
        }
        while table.next_id() < next_id {
            table.slots.push_back(None);
        }
        table
    }

    /// The entries with their numbers, ascending.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let slots = (self.base..).zip(&self.slots);
        slots.filter_map(|(id, slot)| slot.as_deref().map(|entry| (id, entry)))
    }

    /// The number that the next entry gets at least.
    pub fn next_id(&self) -> u32 {
        self.base + self.slots.len() as u32
    }

    /// Leaves numbers out: the next one is at least this.
    pub fn skip_to(&mut self, next_id: u32) {
        if self.len == 0 && next_id > self.next_id() {
            self.slots.clear();
            self.base = next_id - 1;
        }
        while self.next_id() < next_id {
            self.slots.push_back(None);
        }
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
            self.slots.push_back(None);
        }
        self.slots.push_back(Some(Box::new(entry)));
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
        // The last slot stays, so that `next_id` never goes back.
        while self.slots.len() > 1 && self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.base += 1;
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
        self.slots.iter().filter_map(Option::as_deref)
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
}
