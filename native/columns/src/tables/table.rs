//! The columns of one dataset, filled row by row.

use alloy_primitives::{Address, B256, U256};
use ophion_primitives::errors::{Error, Result};

use crate::tables::column::{Column, Kind};

/// Name and type of a column.
pub type Spec = (&'static str, Kind);

/// Declares four columns for a 256-bit number: bytes, decimal text, floating point, decimal(38).
macro_rules! wide {
    ($binary:literal, $text:literal, $float:literal, $decimal:literal) => {
        [
            ($binary, $crate::tables::column::Kind::Fixed(32)),
            ($text, $crate::tables::column::Kind::Text),
            ($float, $crate::tables::column::Kind::F64),
            ($decimal, $crate::tables::column::Kind::Decimal),
        ]
    };
}
pub(crate) use wide;

pub struct Table {
    pub columns: Vec<Column>,
    pub rows: usize,
}

impl Table {
    /// Create a table. Only the columns named in `wanted` are filled.
    pub fn new(specs: &[Spec], wanted: &[String]) -> Self {
        let is_wanted = |name: &str| wanted.iter().any(|one| one == name);
        Table { columns: specs.iter().map(|(name, kind)| Column::new(*kind, is_wanted(name))).collect(), rows: 0 }
    }

    /// Reserve memory for rows that are about to be appended, so that columns need not move while they grow.
    pub fn reserve(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.reserve(rows));
    }

    /// Reserve memory for `left` more blocks, if they are like the `done` blocks so far. Does so when `done` is a power of
    /// two, because a reservation by few blocks may be wrong.
    pub fn expect(&mut self, done: usize, left: usize) {
        if left > 0 && done.is_power_of_two() {
            self.columns.iter_mut().for_each(|column| column.expect(done, left));
        }
    }

    /// Start a table row; its values follow in the order of the columns.
    #[inline]
    pub fn row(&mut self) -> Row<'_> {
        self.rows += 1;
        Row { columns: self.columns.iter_mut() }
    }

    /// Return an error if a column has reached its size limit in the rows of block `number`.
    pub fn check_fit(&self, number: u64) -> Result<()> {
        if self.columns.iter().any(|column| column.is_full) {
            return Err(Error::Storage(format!("the rows of block {number} have more than 512 MiB in one column")));
        }
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.columns.iter().map(Column::size).sum()
    }
}

/// A writer that fills one row from the first column to the last.
pub struct Row<'a> {
    columns: std::slice::IterMut<'a, Column>,
}

impl Row<'_> {
    /// Append a value to the row's next column, if the caller has requested this column.
    #[inline]
    pub fn with(&mut self, fill: impl FnOnce(&mut Column)) {
        let column = self.columns.next().expect("no more values than columns");
        if column.is_wanted {
            fill(column);
        }
    }

    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.with(|column| column.u32(value));
    }

    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.with(|column| column.u64(value));
    }

    pub fn bool(&mut self, value: Option<bool>) {
        self.with(|column| match value {
            Some(value) => column.bool(value),
            None => column.null(),
        });
    }

    /// Append a number to a column of 32 bits; null if the number is larger.
    #[inline]
    pub fn narrow(&mut self, value: u64) {
        self.maybe_u32(u32::try_from(value).ok());
    }

    #[inline]
    pub fn maybe_u32(&mut self, value: Option<u32>) {
        self.with(|column| match value {
            Some(value) => column.u32(value),
            None => column.null(),
        });
    }

    #[inline]
    pub fn maybe_u64(&mut self, value: Option<u64>) {
        self.with(|column| match value {
            Some(value) => column.u64(value),
            None => column.null(),
        });
    }

    #[inline]
    pub fn bytes(&mut self, value: impl AsRef<[u8]>) {
        self.with(|column| column.bytes(value.as_ref()));
    }

    #[inline]
    pub fn maybe_bytes(&mut self, value: Option<impl AsRef<[u8]>>) {
        self.with(|column| match value {
            Some(value) => column.bytes(value.as_ref()),
            None => column.null(),
        });
    }

    #[inline]
    pub fn address(&mut self, value: Option<Address>) {
        self.maybe_bytes(value);
    }

    #[inline]
    pub fn hash(&mut self, value: Option<B256>) {
        self.maybe_bytes(value);
    }

    /// Append a 256-bit number to its four columns: bytes, decimal text, floating point and decimal(38).
    pub fn wide(&mut self, value: U256) {
        self.with(|column| column.bytes(&value.to_be_bytes::<32>()));
        self.decimal_text(value);
        self.with(|column| column.f64(float(&value)));
        self.with(|column| column.decimal(&value));
    }

    /// Append a number as decimal digits.
    pub fn decimal_text(&mut self, value: U256) {
        self.with(|column| decimal_text(column, value));
    }

    /// End the table row, and check that every column has a value.
    pub fn end(mut self) {
        debug_assert!(self.columns.next().is_none(), "a column of the row has no value");
    }
}

/// Append a number as decimal digits.
pub fn decimal_text(column: &mut Column, value: U256) {
    match u128::try_from(value) {
        Ok(small) => {
            let mut digits = [0; MAX_DIGITS];
            column.bytes(digits_of(small, &mut digits));
        }
        Err(_) => column.bytes(value.to_string().as_bytes()),
    }
}

/// Number of decimal digits of the greatest 128-bit number.
const MAX_DIGITS: usize = 39;
/// Number of decimal digits that fit into 64 bits.
const DIGITS_PER_WORD: usize = 19;
const WORD_END: u128 = 10u128.pow(DIGITS_PER_WORD as u32);

/// The numbers from 00 to 99, as text.
const PAIRS: [u8; 200] = {
    let (mut pairs, mut at) = ([0; 200], 0);
    while at < 100 {
        pairs[2 * at] = b'0' + (at / 10) as u8;
        pairs[2 * at + 1] = b'0' + (at % 10) as u8;
        at += 1;
    }
    pairs
};

/// Write the decimal digits of a number to the end of the buffer and return them. The standard library converts numbers
/// of more than 64 bits several times slower.
fn digits_of(mut number: u128, buffer: &mut [u8; MAX_DIGITS]) -> &[u8] {
    let mut end = MAX_DIGITS;
    while number >= WORD_END {
        let rest = number / WORD_END;
        let start = word_digits((number - rest * WORD_END) as u64, &mut buffer[..end]);
        end -= DIGITS_PER_WORD;
        buffer[end..start].fill(b'0');
        number = rest;
    }
    let start = word_digits(number as u64, &mut buffer[..end]);
    &buffer[start..]
}

/// Write the decimal digits of a number to the end of the buffer. Returns the position of the first digit.
fn word_digits(mut number: u64, buffer: &mut [u8]) -> usize {
    let mut at = buffer.len();
    while number >= 10 {
        let pair = 2 * (number % 100) as usize;
        number /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if number > 0 || at == buffer.len() {
        at -= 1;
        buffer[at] = b'0' + number as u8;
    }
    at
}

/// Convert a number to floating point.
pub fn float(value: &U256) -> f64 {
    u128::try_from(*value).map_or_else(|_| f64::from(*value), |small| small as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_conversions_agree_with_those_of_wide_numbers() {
        let mut number = U256::from(3);
        for step in 0..260u64 {
            for value in [number, number - U256::ONE, number >> 3] {
                assert_eq!(float(&value).to_bits(), f64::from(value).to_bits(), "{value}");
                if let Ok(small) = u128::try_from(value) {
                    assert_eq!(digits_of(small, &mut [0; MAX_DIGITS]), value.to_string().as_bytes());
                }
            }
            number = number.wrapping_mul(U256::from(2 + step % 3)).wrapping_add(U256::from(step)) | U256::ONE;
        }
        let powers = (0..39).map(|digits| 10u128.pow(digits)).flat_map(|power| [power - 1, power, power + 1]);
        for small in powers.chain([u64::MAX.into(), u128::MAX, u128::MAX - 1, 5 * WORD_END, 5 * WORD_END + 7]) {
            let value = U256::from(small);
            assert_eq!(digits_of(small, &mut [0; MAX_DIGITS]), value.to_string().as_bytes());
            assert_eq!(float(&value).to_bits(), f64::from(value).to_bits(), "{value}");
        }
        // numbers in the middle between two numbers of floating point
        for shift in 1..74u32 {
            let middle = ((1u128 << 53) + 5) << shift | 1 << (shift - 1);
            for value in [middle - 1, middle, middle + 1].map(U256::from) {
                assert_eq!(float(&value).to_bits(), f64::from(value).to_bits(), "{value}");
            }
        }
    }

    #[test]
    fn a_number_above_32_bits_is_null() {
        let mut table = Table::new(&[("timestamp", Kind::U32)], &["timestamp".into()]);
        for value in [u64::from(u32::MAX), 1 << 32] {
            let mut row = table.row();
            row.narrow(value);
            row.end();
        }
        assert_eq!(
            (table.columns[0].values.as_slice(), table.columns[0].nulls),
            (&[255, 255, 255, 255, 0, 0, 0, 0][..], 1)
        );
    }

    #[test]
    fn expected_rows_need_no_further_memory() {
        let [_, text, ..] = wide!("v_binary", "v_string", "v_f64", "v_decimal");
        let mut table = Table::new(&[("number", Kind::U32), text], &["number".into(), "v_string".into()]);
        let fill = |table: &mut Table, at: u32| {
            let mut row = table.row();
            row.maybe_u32(at.is_multiple_of(2).then_some(at));
            row.decimal_text(U256::from(1000));
            row.end();
        };
        for done in 1..=32 {
            fill(&mut table, done);
            table.expect(done as usize, 64 - done as usize);
        }
        let held = |table: &Table| -> Vec<_> {
            table.columns.iter().map(|column| (column.values.as_ptr(), column.offsets.as_ptr())).collect()
        };
        let before = held(&table);
        (33..=64).for_each(|at| fill(&mut table, at));
        assert_eq!(held(&table), before);
    }

    #[test]
    fn only_wanted_columns_are_filled() {
        let [binary, text, float, decimal] = wide!("v_binary", "v_string", "v_f64", "v_decimal");
        let specs = [("number", Kind::U32), binary, text, float, decimal];
        let mut table = Table::new(&specs, &["v_string".into(), "number".into()]);
        let mut row = table.row();
        row.u32(3);
        row.wide(U256::from(1000));
        row.end();
        let filled: Vec<usize> = table.columns.iter().map(|column| column.values.len()).collect();
        assert_eq!((filled, table.rows), (vec![4, 0, 4, 0, 0], 1));
        assert_eq!(table.columns[2].values, b"1000");
    }
}
