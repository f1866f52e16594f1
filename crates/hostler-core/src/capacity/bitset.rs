//! A growable set of small integers with ordered iteration.
//!
//! Nodes move between sets of the free index at every booking; flipping a bit is the cheapest
//! ordered move there is.

/// A set of node numbers.
#[derive(Debug, Default)]
pub(super) struct BitSet {
    words: Vec<u64>,
    len: u32,
}

impl Clone for BitSet {
    fn clone(&self) -> BitSet {
        // Most sets are empty, whatever they held before.
        if self.is_empty() {
            return BitSet::default();
        }
        BitSet { words: self.words.clone(), len: self.len }
    }

    fn clone_from(&mut self, source: &BitSet) {
        if !source.is_empty() {
            self.words.clone_from(&source.words);
        } else if !self.is_empty() {
            self.words.fill(0);
        }
        self.len = source.len;
    }
}

impl PartialEq for BitSet {
    /// Equality of items: a set that once held larger ones has more words, all of them empty.
    fn eq(&self, other: &BitSet) -> bool {
        let shared = self.words.len().min(other.words.len());
        self.len == other.len && self.words[..shared] == other.words[..shared]
    }
}

impl Eq for BitSet {}

impl BitSet {
    pub(super) fn insert(&mut self, item: u32) {
        let (word, bit) = (item as usize / 64, 1u64 << (item % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.len += u32::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    pub(super) fn remove(&mut self, item: u32) {
        let (word, bit) = (item as usize / 64, 1u64 << (item % 64));
        if let Some(held) = self.words.get_mut(word) {
            self.len -= u32::from(*held & bit != 0);
            *held &= !bit;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `visit` for each item, ascending, until it says stop; tells whether it did.
    pub(super) fn visit(&self, visit: &mut impl FnMut(u32) -> bool) -> bool {
        if self.is_empty() {
            return false;
        }
        for (at, &word) in self.words.iter().enumerate() {
            if visit_word(at, word, visit) {
                return true;
            }
        }
        false
    }

    /// Adds the items of `other`.
    pub(super) fn union(&mut self, other: &BitSet) {
        if other.is_empty() {
            return;
        }
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (into, from) in self.words.iter_mut().zip(&other.words) {
            *into |= from;
        }
        self.len = self.words.iter().map(|word| word.count_ones()).sum();
    }
}

fn visit_word(at: usize, mut word: u64, visit: &mut impl FnMut(u32) -> bool) -> bool {
    while word != 0 {
        let item = at as u32 * 64 + word.trailing_zeros();
        word &= word - 1;
        if visit(item) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_ascending_and_once() {
        let mut set = BitSet::default();
        for item in [200, 3, 64, 3] {
            set.insert(item);
        }
        set.remove(64);
        set.remove(9000);
        let mut seen = Vec::new();
        set.visit(&mut |item| {
            seen.push(item);
            false
        });
        assert_eq!(seen, [3, 200]);
        assert_eq!(set.len, 2);
    }

    #[test]
    fn a_copy_into_a_used_set_holds_what_the_source_holds() {
        let (mut source, mut copy) = (BitSet::default(), BitSet::default());
        copy.insert(200);
        copy.clone_from(&source);
        assert_eq!(copy, source);
        source.insert(3);
        copy.clone_from(&source);
        assert_eq!(copy, source);
        copy.insert(4);
        assert_ne!(copy, source);
    }

    #[test]
    fn a_set_that_gave_an_item_back_equals_one_that_never_had_it() {
        let (mut one, mut other) = (BitSet::default(), BitSet::default());
        one.insert(200);
        assert_ne!(one, other);
        one.remove(200);
        assert_eq!(one, other);
        one.insert(3);
        other.insert(4);
        assert_ne!(one, other);
    }
}
