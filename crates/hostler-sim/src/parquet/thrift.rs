//! As much of Thrift's compact protocol as the headers of a Parquet file need.

/// Kinds of fields, by the numbers that the protocol gives them.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure on its way to bytes.
#[derive(Default)]
pub(super) struct Thrift {
    bytes: Vec<u8>,
    /// Number of the last field: the next one says how far it is behind that.
    last: u8,
}

impl Thrift {
    /// The bytes of one structure.
    pub(super) fn of(write: impl FnOnce(&mut Thrift)) -> Vec<u8> {
        let mut thrift = Thrift::default();
        thrift.element(write);
        thrift.bytes
    }

    pub(super) fn i32(&mut self, field: u8, value: i32) {
        self.field(field, I32);
        self.integer(value.into());
    }

    pub(super) fn i64(&mut self, field: u8, value: i64) {
        self.field(field, I64);
        self.integer(value);
    }

    pub(super) fn text(&mut self, field: u8, value: &str) {
        self.field(field, BINARY);
        self.binary(value);
    }

    /// A structure inside this one.
    pub(super) fn part(&mut self, field: u8, write: impl FnOnce(&mut Thrift)) {
        self.field(field, STRUCT);
        self.element(write);
    }

    /// A list of structures; each is written by [`Thrift::element`].
    pub(super) fn parts(&mut self, field: u8, count: usize) {
        self.list(field, STRUCT, count);
    }

    /// A list of small integers.
    pub(super) fn integers(&mut self, field: u8, values: &[i32]) {
        self.list(field, I32, values.len());
        values.iter().for_each(|value| self.integer((*value).into()));
    }

    /// A list of one text.
    pub(super) fn one_text(&mut self, field: u8, value: &str) {
        self.list(field, BINARY, 1);
        self.binary(value);
    }

    /// A structure that no field announces: the whole, or one of a list.
    pub(super) fn element(&mut self, write: impl FnOnce(&mut Thrift)) {
        let outside = std::mem::take(&mut self.last);
        write(self);
        self.bytes.push(0);
        self.last = outside;
    }

    fn field(&mut self, field: u8, kind: u8) {
        let ahead = field - self.last;
        assert!((1..=15).contains(&ahead), "fields ascend, and none is far behind another");
        self.bytes.push((ahead << 4) | kind);
        self.last = field;
    }

    fn list(&mut self, field: u8, kind: u8, count: usize) {
        const SHORT: usize = 15;
        self.field(field, LIST);
        if count < SHORT {
            self.bytes.push(((count as u8) << 4) | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, count as u64);
        }
    }

    fn binary(&mut self, value: &str) {
        varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
    }

    /// Small numbers of either sign are short: the sign goes last.
    fn integer(&mut self, value: i64) {
        varint(&mut self.bytes, ((value << 1) ^ (value >> 63)) as u64);
    }
}

/// Seven bits in a byte, the lowest first; the eighth says that more follow.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
