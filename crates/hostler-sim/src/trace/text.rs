//! One pool for all text of a trace: each distinct text is stored once and named by four bytes.
//!
//! Not for building text, and never for order: ids follow first appearance.

use std::hash::{BuildHasher, RandomState};

use super::limits::TEXT_BYTES_MAX;

/// Name of a text in a [`TextPool`]; equal ids of one pool mean equal texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

impl TextId {
    /// The empty text, which in the tables means "not known".
    pub const EMPTY: TextId = TextId(0);

    /// Whether this is the empty text.
    pub fn is_empty(self) -> bool {
        self == TextId::EMPTY
    }

    /// Position for tables kept beside the pool.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The pool holds [`TEXT_BYTES_MAX`] bytes or as many texts as ids allow, and takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {} bytes of distinct text; split the trace", TEXT_BYTES_MAX)]
pub struct TextPoolFull;

const VACANT: u32 = u32::MAX;

/// All distinct texts of one trace.
///
/// An own open-addressing table of ids costs 4 bytes a slot where a map of owned strings would
/// cost 40 or more; a trace of a million jobs has a million distinct job ids.
#[derive(Clone, Debug)]
pub struct TextPool {
    bytes: String,
    /// End of each text in `bytes`; a text begins where the one before ends.
    ends: Vec<u32>,
    /// Ids by hash, linear probing; the length is a power of two, at most half is taken.
    slots: Vec<u32>,
    /// Randomly keyed, so a hostile trace cannot force collisions. Order never depends on it.
    hasher: RandomState,
}

impl Default for TextPool {
    fn default() -> Self {
        let hasher = RandomState::new();
        let mut pool =
            TextPool { bytes: String::new(), ends: Vec::new(), slots: vec![VACANT; 16], hasher };
        let empty = pool.intern("").expect("an empty pool has room for the empty text");
        assert_eq!(empty, TextId::EMPTY, "the empty text has the first id");
        pool
    }
}

impl TextPool {
    /// Id of `text`, which is stored if it is not there yet.
    pub fn intern(&mut self, text: &str) -> Result<TextId, TextPoolFull> {
        let slot = match self.probe(text) {
            Ok(id) => return Ok(id),
            Err(slot) => slot,
        };
        let end = self.bytes.len() + text.len();
        if end > TEXT_BYTES_MAX || self.ends.len() >= (VACANT / 2) as usize {
            return Err(TextPoolFull);
        }
        let id = self.ends.len() as u32;
        self.bytes.push_str(text);
        self.ends.push(end as u32);
        self.slots[slot] = id;
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        Ok(TextId(id))
    }

    /// Id of `text` if the pool holds it.
    pub fn find(&self, text: &str) -> Option<TextId> {
        self.probe(text).ok()
    }

    /// The text of an id of this pool.
    pub fn get(&self, id: TextId) -> &str {
        let index = id.index();
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    /// Number of distinct texts, the empty one included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether only the empty text is held.
    pub fn is_empty(&self) -> bool {
        self.ends.len() == 1
    }

    /// Gives unused memory back.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Heap bytes in use, for memory budgets.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * (self.ends.capacity() + self.slots.capacity())
    }

    fn probe(&self, text: &str) -> Result<TextId, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        loop {
            let id = self.slots[slot];
            if id == VACANT {
                return Err(slot);
            }
            if self.get(TextId(id)) == text {
                return Ok(TextId(id));
            }
            slot = (slot + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(size, VACANT);
        for id in 0..self.ends.len() as u32 {
            let slot = self.probe(self.get(TextId(id)));
            let vacant = slot.expect_err("a text is in the pool once");
            self.slots[vacant] = id;
        }
    }
}
