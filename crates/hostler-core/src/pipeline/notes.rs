//! What is noted of running jobs, by lease: a table by number, because many ask at every question.

use std::cell::Cell;
use std::collections::VecDeque;

use super::backlog::Rank;
use crate::id::LeaseId;

/// A running job as those see it who wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The largest key that it may have until one is said.
    pub(super) key: i64,
    /// Whether it was told to stop before this question.
    pub(super) told: bool,
}

/// What is noted of a lease.
#[derive(Clone, Debug)]
pub(super) struct Note {
    /// A rank that it does not rank after by now.
    pub(super) rank: Rank,
    /// Whether it was told to stop.
    pub(super) told: bool,
    /// How it was seen at a question, by the number of the question.
    seen: Cell<Option<(u64, Seen)>>,
}

impl Note {
    pub(super) fn new(rank: Rank, told: bool) -> Note {
        Note { rank, told, seen: Cell::new(None) }
    }

    /// How it is seen at a question: who holds parts of many nodes is looked at once.
    pub(super) fn at(&self, question: u64, look: impl FnOnce() -> Option<Seen>) -> Option<Seen> {
        if let Some((_, seen)) = self.seen.get().filter(|(asked, _)| *asked == question) {
            return Some(seen);
        }
        let seen = look();
        self.seen.set(seen.map(|seen| (question, seen)));
        seen
    }
}

/// The place of a lease of which nothing is noted.
const NOWHERE: u32 = u32::MAX;

/// Notes by lease. Leases that run at the same time have numbers that lie close together, but for a
/// few that run for long: what a number costs that is not there is four bytes.
#[derive(Default)]
pub(super) struct Notes {
    base: u32,
    /// Where the note of each lease from `base` on lies.
    places: VecDeque<u32>,
    notes: Vec<Note>,
    /// Places that nobody has.
    vacant: Vec<u32>,
}

impl Notes {
    fn place(&self, id: LeaseId) -> Option<usize> {
        let place = *self.places.get(id.0.checked_sub(self.base)? as usize)?;
        (place != NOWHERE).then_some(place as usize)
    }

    pub(super) fn get(&self, id: LeaseId) -> Option<&Note> {
        Some(&self.notes[self.place(id)?])
    }

    /// Notes that a lease was told to stop, if it is known here.
    pub(super) fn tell(&mut self, id: LeaseId) {
        if let Some(place) = self.place(id) {
            let note = &mut self.notes[place];
            (note.told, note.seen) = (true, Cell::new(None));
        }
    }

    /// Notes something of a lease; the answer is what was noted before.
    pub(super) fn insert(&mut self, id: LeaseId, note: Note) -> Option<Note> {
        if let Some(place) = self.place(id) {
            return Some(std::mem::replace(&mut self.notes[place], note));
        }
        if self.places.is_empty() {
            self.base = id.0;
        }
        while id.0 < self.base {
            self.places.push_front(NOWHERE);
            self.base -= 1;
        }
        let at = (id.0 - self.base) as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, NOWHERE);
        }
        let place = self.vacant.pop().unwrap_or(self.notes.len() as u32);
        match self.notes.get_mut(place as usize) {
            Some(vacant) => *vacant = note,
            None => self.notes.push(note),
        }
        self.places[at] = place;
        None
    }

    pub(super) fn remove(&mut self, id: LeaseId) {
        let Some(place) = self.place(id) else { return };
        self.vacant.push(place as u32);
        self.places[(id.0 - self.base) as usize] = NOWHERE;
        while self.places.front() == Some(&NOWHERE) {
            self.places.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;

    #[test]
    fn notes_are_found_by_number_whatever_comes_and_goes() {
        let mut notes = Notes::default();
        let note = |key: i64| Note::new((key, JobId(0)), false);
        let key = |notes: &Notes, id: u32| notes.get(LeaseId(id)).map(|note| note.rank.0);
        for (id, value) in [(7, 70), (9, 90), (4, 40)] {
            assert!(notes.insert(LeaseId(id), note(value)).is_none());
        }
        assert_eq!([3, 4, 5, 7, 9, 10].map(|id| key(&notes, id)), {
            [None, Some(40), None, Some(70), Some(90), None]
        });
        assert_eq!(notes.insert(LeaseId(7), note(71)).map(|before| before.rank.0), Some(70));
        [4, 4, 8, 99].into_iter().for_each(|id| notes.remove(LeaseId(id)));
        notes.insert(LeaseId(12), note(120));
        notes.tell(LeaseId(12));
        notes.tell(LeaseId(4));
        assert_eq!([4, 7, 9, 12].map(|id| key(&notes, id)), [None, Some(71), Some(90), Some(120)]);
        assert!(notes.get(LeaseId(12)).is_some_and(|note| note.told));
        assert_eq!(notes.notes.len(), 3);
    }
}
