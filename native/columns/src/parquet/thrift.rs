//! Thrift's compact protocol, as far as Parquet's metadata needs it.

/// Thrift's type numbers of struct fields and list items.
#[derive(Clone, Copy)]
pub enum Type {
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
/// Maximum number of items for which the first byte of a Thrift list also holds the length of the list.
const MAX_SHORT_LIST: usize = 14;

/// Writes Thrift structs, field by field in ascending order of field ids.
#[derive(Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
    /// Ids of the last written fields: one for the current struct, and one for each struct that encloses it.
    last: Vec<i16>,
}

impl Writer {
    /// Write a struct without a field header: the outermost struct, or a list item.
    pub fn item(&mut self, fill: impl FnOnce(&mut Self)) {
        self.last.push(0);
        fill(self);
        self.last.pop();
        self.bytes.push(0);
    }

    pub fn structure(&mut self, id: i16, fill: impl FnOnce(&mut Self)) {
        self.header(id, Type::Struct as u8);
        self.item(fill);
    }

    pub fn bool(&mut self, id: i16, value: bool) {
        self.header(id, if value { TRUE } else { FALSE });
    }

    /// Write a struct field that holds an 8-bit number.
    pub fn i8(&mut self, id: i16, value: i8) {
        self.header(id, 3);
        self.bytes.push(value as u8);
    }

    pub fn i32(&mut self, id: i16, value: i32) {
        self.header(id, Type::I32 as u8);
        self.zigzag(value.into());
    }

    pub fn i64(&mut self, id: i16, value: i64) {
        self.header(id, Type::I64 as u8);
        self.zigzag(value);
    }

    pub fn binary(&mut self, id: i16, value: &[u8]) {
        self.header(id, Type::Binary as u8);
        self.binary_item(value);
    }

    pub fn list<T>(
        &mut self,
        id: i16,
        kind: Type,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.header(id, Type::List as u8);
        let length = items.len();
        if length <= MAX_SHORT_LIST {
            self.bytes.push((length as u8) << 4 | kind as u8);
        } else {
            self.bytes.push(0xf0 | kind as u8);
            self.varint(length as u64);
        }
        items.for_each(|one| write(self, one));
    }

    pub fn i32_item(&mut self, value: i32) {
        self.zigzag(value.into());
    }

    pub fn binary_item(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    fn header(&mut self, id: i16, kind: u8) {
        let last = self.last.last_mut().expect("fields are written inside a struct");
        let step = id - *last;
        debug_assert!((1..=15).contains(&step), "fields ascend by 15 at most");
        *last = id;
        self.bytes.push((step as u8) << 4 | kind);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    fn varint(&mut self, value: u64) {
        varint(&mut self.bytes, value);
    }
}

/// Append a number as a varint: seven bits per byte, lowest bits first.
pub fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_step_from_the_last_one() {
        let mut out = Writer::default();
        out.item(|out| {
            out.i32(1, -1);
            out.bool(3, true);
            out.structure(4, |out| out.i64(1, 300));
            out.binary(5, b"ab");
        });
        assert_eq!(out.bytes, [0x15, 1, 0x21, 0x1c, 0x16, 0xd8, 4, 0, 0x18, 2, b'a', b'b', 0]);
    }

    #[test]
    fn a_long_list_has_its_length_after_the_type() {
        let mut out = Writer::default();
        out.item(|out| out.list(1, Type::I32, [0; 15].into_iter(), Writer::i32_item));
        assert_eq!(out.bytes[..3], [0x19, 0xf5, 15]);
        let mut out = Writer::default();
        out.item(|out| out.list(1, Type::I32, [0; 2].into_iter(), Writer::i32_item));
        assert_eq!(out.bytes, [0x19, 0x25, 0, 0, 0]);
    }
}
