//! One column in Arrow's memory layout.

use alloy_primitives::{U256, hex};

/// Physical Arrow type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    U32,
    U64,
    F64,
    Bool,
    /// Arrow type decimal128(38, 0).
    Decimal,
    /// Arrow type fixed_size_binary: byte strings of this length.
    Fixed(usize),
    Binary,
    Text,
}

impl Kind {
    /// Return the name of this type in Python.
    pub fn name(self) -> String {
        match self {
            Kind::U32 => "u32".into(),
            Kind::U64 => "u64".into(),
            Kind::F64 => "f64".into(),
            Kind::Bool => "bool".into(),
            Kind::Decimal => "decimal".into(),
            Kind::Fixed(width) => format!("fixed{width}"),
            Kind::Binary => "binary".into(),
            Kind::Text => "text".into(),
        }
    }

    /// Return the type that the column has after its byte strings are converted to hexadecimal text.
    pub fn in_hex(self) -> Kind {
        if self.is_bytes() { Kind::Text } else { self }
    }

    fn is_bytes(self) -> bool {
        matches!(self, Kind::Fixed(_) | Kind::Binary)
    }

    fn has_offsets(self) -> bool {
        matches!(self, Kind::Binary | Kind::Text)
    }
}

/// First number that a decimal of 38 digits cannot hold.
const DECIMAL_END: u128 = 10u128.pow(38);

/// Maximum size of all byte strings or texts of one column. It keeps offsets below 2^31, even as hexadecimal text.
const MAX_VALUES_BYTES: usize = 1 << 29;

/// Maximum number of bytes or offsets for which `expect` reserves memory.
const MAX_EXPECTED: usize = 1 << 19;

/// A column that grows by one value per row. A column that the caller did not request stays empty.
pub struct Column {
    pub kind: Kind,
    pub is_wanted: bool,
    /// Values of the column: little-endian numbers, bits, or bytes.
    pub values: Vec<u8>,
    /// Offset of the end of each value, after a leading 0. Only types of varying length have offsets.
    pub offsets: Vec<i32>,
    /// Validity bitmap: bit 1 for a value, bit 0 for null. Empty while no value is null.
    pub validity: Vec<u8>,
    pub nulls: usize,
    /// Whether the column reached `MAX_VALUES_BYTES` and therefore lacks a value. The caller must not use such a
    /// column.
    pub is_full: bool,
    rows: usize,
}

impl Column {
    pub fn new(kind: Kind, is_wanted: bool) -> Self {
        let offsets = if is_wanted && kind.has_offsets() { vec![0] } else { Vec::new() };
        Column { kind, is_wanted, values: Vec::new(), offsets, validity: Vec::new(), nulls: 0, is_full: false, rows: 0 }
    }

    /// Reserve memory for the fixed parts of values.
    pub fn reserve(&mut self, rows: usize) {
        if self.is_wanted {
            self.values.reserve(self.width().unwrap_or(0) * rows);
            self.offsets.reserve(if self.kind.has_offsets() { rows } else { 0 });
        }
    }

    /// Reserve memory for `left` more parts of rows, such as blocks, if they are like the `done` parts so far.
    pub fn expect(&mut self, done: usize, left: usize) {
        let more = |held: usize| (held / done * left).min(MAX_EXPECTED);
        self.values.reserve(more(self.values.len()));
        self.offsets.reserve(more(self.offsets.len()));
        self.validity.reserve(more(self.validity.len()));
    }

    #[inline]
    pub fn u32(&mut self, value: u32) {
        debug_assert_eq!(self.kind, Kind::U32);
        self.put_array(value.to_le_bytes());
    }

    #[inline]
    pub fn u64(&mut self, value: u64) {
        debug_assert_eq!(self.kind, Kind::U64);
        self.put_array(value.to_le_bytes());
    }

    pub fn f64(&mut self, value: f64) {
        debug_assert_eq!(self.kind, Kind::F64);
        self.put_array(value.to_le_bytes());
    }

    /// Append a decimal; null if the value is 10^38 or more.
    pub fn decimal(&mut self, value: &U256) {
        debug_assert_eq!(self.kind, Kind::Decimal);
        match u128::try_from(*value) {
            Ok(small) if small < DECIMAL_END => self.put_array(small.to_le_bytes()),
            _ => self.null(),
        }
    }

    pub fn bool(&mut self, value: bool) {
        debug_assert_eq!(self.kind, Kind::Bool);
        set_bit(&mut self.values, self.rows, value);
        self.finish_value(true);
    }

    /// Append a byte string. In a column of fixed width, the string must have this width.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        debug_assert!(match self.kind {
            Kind::Fixed(width) => width == value.len(),
            other => other.has_offsets(),
        });
        // use constant lengths, so that the compiler inlines the copy
        match value.len() {
            20 => self.put_array::<20>(value.try_into().expect("the length matches")),
            32 => self.put_array::<32>(value.try_into().expect("the length matches")),
            _ => self.put(value),
        }
    }

    #[inline]
    pub fn null(&mut self) {
        match self.kind {
            Kind::U32 => self.values.extend_from_slice(&[0; 4]),
            Kind::U64 | Kind::F64 => self.values.extend_from_slice(&[0; 8]),
            Kind::Decimal => self.values.extend_from_slice(&[0; 16]),
            Kind::Bool => set_bit(&mut self.values, self.rows, false),
            Kind::Fixed(width) => self.values.resize(self.values.len() + width, 0),
            Kind::Binary | Kind::Text => {}
        }
        self.finish_value(false);
    }

    /// Append values of fixed size, none of them null. `values` has at least `count` values.
    #[inline]
    pub fn extend_arrays<const N: usize>(&mut self, count: usize, values: impl Iterator<Item = [u8; N]>) {
        debug_assert!(self.width().is_none_or(|width| width == N) && !self.kind.has_offsets());
        if self.values.len() + N * count > MAX_VALUES_BYTES {
            self.is_full = true;
        } else {
            self.values.reserve(N * count);
            values.take(count).for_each(|value| self.values.extend_from_slice(&value));
        }
        if !self.validity.is_empty() {
            (self.rows..self.rows + count).for_each(|row| set_bit(&mut self.validity, row, true));
        }
        self.rows += count;
    }

    /// Append values of fixed size or nulls. `values` has at least `count` values.
    #[inline]
    pub fn extend_maybe<const N: usize>(
        &mut self,
        count: usize,
        values: impl Iterator<Item = Option<[u8; N]>> + Clone,
    ) {
        let nulls = values.clone().take(count).filter(Option::is_none).count();
        if nulls == 0 {
            self.extend_arrays(count, values.map(|value| value.expect("no value is null")));
        } else if nulls == count {
            self.extend_nulls(count);
        } else {
            values.take(count).for_each(|value| match value {
                Some(value) => self.put_array(value),
                None => self.null(),
            });
        }
    }

    /// Append nulls.
    pub fn extend_nulls(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        match self.width() {
            Some(width) if self.values.len() + width * count > MAX_VALUES_BYTES => self.is_full = true,
            Some(width) => self.values.resize(self.values.len() + width * count, 0),
            None => {
                (0..count).for_each(|_| self.null());
                return;
            }
        }
        self.start_validity();
        self.validity.resize((self.rows + count).div_ceil(8), 0);
        self.nulls += count;
        self.rows += count;
    }

    #[inline]
    fn put_array<const N: usize>(&mut self, bytes: [u8; N]) {
        if self.values.len() + N > MAX_VALUES_BYTES {
            self.is_full = true;
        } else {
            self.values.extend_from_slice(&bytes);
        }
        self.finish_value(true);
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.values.len() + bytes.len() > MAX_VALUES_BYTES {
            self.is_full = true;
        } else {
            self.values.extend_from_slice(bytes);
        }
        self.finish_value(true);
    }

    #[inline]
    fn finish_value(&mut self, is_valid: bool) {
        if self.kind.has_offsets() {
            self.offsets.push(self.values.len() as i32);
        }
        if !is_valid && self.validity.is_empty() {
            self.start_validity();
        }
        if !is_valid || !self.validity.is_empty() {
            set_bit(&mut self.validity, self.rows, is_valid);
        }
        self.nulls += usize::from(!is_valid);
        self.rows += 1;
    }

    /// Start the validity bitmap if the column had no null so far: mark all earlier rows as valid.
    #[cold]
    fn start_validity(&mut self) {
        if self.validity.is_empty() {
            self.validity = vec![0xff; self.rows / 8];
            if !self.rows.is_multiple_of(8) {
                self.validity.push((1 << (self.rows % 8)) - 1);
            }
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Return the number of bytes of each value; None if lengths vary or values are bits.
    pub fn width(&self) -> Option<usize> {
        match self.kind {
            Kind::U32 => Some(4),
            Kind::U64 | Kind::F64 => Some(8),
            Kind::Decimal => Some(16),
            Kind::Fixed(width) => Some(width),
            Kind::Bool | Kind::Binary | Kind::Text => None,
        }
    }

    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.nulls == 0 || bit(&self.validity, row)
    }

    /// Return the stored bytes of a value. For a column of bits, use `bit`.
    #[inline]
    pub fn value(&self, row: usize) -> &[u8] {
        match self.width() {
            Some(width) => &self.values[row * width..(row + 1) * width],
            None => &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize],
        }
    }

    /// Return the value of a row in a column of bits.
    pub fn bit(&self, row: usize) -> bool {
        bit(&self.values, row)
    }

    /// Return the number of bytes that the column holds.
    pub fn size(&self) -> usize {
        self.values.len() + 4 * self.offsets.len() + self.validity.len()
    }

    /// Convert byte strings to `0x…` text. Other columns stay unchanged.
    pub fn into_hex(self) -> Self {
        if !self.kind.is_bytes() {
            return self;
        }
        if !self.is_wanted {
            return Column::new(Kind::Text, false);
        }
        let mut text = Vec::with_capacity(2 * self.values.len() + 2 * self.rows);
        let mut offsets = Vec::with_capacity(self.rows + 1);
        offsets.push(0);
        for row in 0..self.rows {
            if self.is_valid(row) {
                text.extend_from_slice(hex::encode_prefixed(self.value(row)).as_bytes());
            }
            offsets.push(text.len() as i32);
        }
        Column { kind: Kind::Text, values: text, offsets, ..self }
    }
}

#[inline]
fn bit(bits: &[u8], at: usize) -> bool {
    bits[at / 8] & (1 << (at % 8)) != 0
}

#[inline]
fn set_bit(bits: &mut Vec<u8>, at: usize, value: bool) {
    if at.is_multiple_of(8) {
        bits.push(0);
    }
    bits[at / 8] |= u8::from(value) << (at % 8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_have_a_bit_from_the_first_one_on() {
        let mut column = Column::new(Kind::U32, true);
        (0..9).for_each(|number| column.u32(number));
        assert!(column.validity.is_empty());
        column.null();
        column.u32(7);
        assert_eq!((column.validity.as_slice(), column.nulls), (&[0xff, 0b101][..], 1));
        assert_eq!(column.values.len(), 4 * 11);
    }

    #[test]
    fn hexadecimal_text_keeps_nulls() {
        let mut column = Column::new(Kind::Fixed(2), true);
        column.bytes(&[1, 0xab]);
        column.null();
        let text = column.into_hex();
        assert_eq!((text.values.as_slice(), text.offsets.as_slice()), (&b"0x01ab"[..], &[0, 6, 6][..]));
        assert_eq!((text.validity.as_slice(), text.kind), (&[1][..], Kind::Text));
        let mut column = Column::new(Kind::Binary, true);
        column.bytes(&[]);
        column.bytes(&[9]);
        let text = column.into_hex();
        assert_eq!((text.values.as_slice(), text.offsets.as_slice()), (&b"0x0x09"[..], &[0, 2, 6][..]));
    }

    #[test]
    fn a_column_has_an_upper_limit() {
        let mut column = Column::new(Kind::Binary, true);
        let value = vec![1; MAX_VALUES_BYTES / 2];
        (0..2).for_each(|_| column.bytes(&value));
        assert!(!column.is_full);
        (0..4).for_each(|_| column.bytes(&value));
        assert!(column.is_full);
        assert_eq!((column.rows(), column.values.len()), (6, MAX_VALUES_BYTES));
        assert_eq!(column.value(5), b"");
    }

    #[test]
    fn a_decimal_ends_at_38_digits() {
        let mut column = Column::new(Kind::Decimal, true);
        column.decimal(&U256::from(DECIMAL_END - 1));
        column.decimal(&U256::from(DECIMAL_END));
        column.decimal(&U256::MAX);
        assert_eq!((column.nulls, column.values.len()), (2, 48));
        assert_eq!(column.values[..16], (DECIMAL_END - 1).to_le_bytes());
    }
}
