//! Appends the rows of one block to a table, one column after the other. This is faster than row by row: each column
//! grows once, and its type is known for all its values.

use std::slice::IterMut;

use alloy_primitives::U256;

use crate::tables::column::Column;
use crate::tables::table::{Table, decimal_text, float};

/// A writer that fills the columns of several rows from the first column to the last. A column that the caller of the
/// table did not request is skipped, and its values are not computed.
pub struct BlockRows<'a> {
    columns: IterMut<'a, Column>,
    count: usize,
}

impl Table {
    /// Start `count` rows; the values of their columns follow, in the order of the columns.
    pub fn block_rows(&mut self, count: usize) -> BlockRows<'_> {
        self.rows += count;
        BlockRows { columns: self.columns.iter_mut(), count }
    }
}

impl BlockRows<'_> {
    #[inline]
    fn with(&mut self, fill: impl FnOnce(&mut Column, usize)) {
        let column = self.columns.next().expect("no more values than columns");
        if column.is_wanted {
            fill(column, self.count);
        }
    }

    #[inline]
    pub fn u32s(&mut self, values: impl Iterator<Item = u32>) {
        self.with(|column, count| column.extend_arrays(count, values.map(u32::to_le_bytes)));
    }

    #[inline]
    pub fn u64s(&mut self, values: impl Iterator<Item = u64>) {
        self.with(|column, count| column.extend_arrays(count, values.map(u64::to_le_bytes)));
    }

    #[inline]
    pub fn maybe_u64s(&mut self, values: impl Iterator<Item = Option<u64>> + Clone) {
        self.with(|column, count| column.extend_maybe(count, values.map(|value| value.map(u64::to_le_bytes))));
    }

    /// Append the same number to all rows.
    pub fn all_u32(&mut self, value: u32) {
        self.u32s(std::iter::repeat(value));
    }

    /// Append the same number to all rows.
    pub fn all_u64(&mut self, value: u64) {
        self.u64s(std::iter::repeat(value));
    }

    /// Append the same number to all rows of a column of 32 bits; null if the number is larger.
    pub fn all_narrow(&mut self, value: u64) {
        let value = u32::try_from(value).ok().map(u32::to_le_bytes);
        self.with(|column, count| column.extend_maybe(count, std::iter::repeat(value)));
    }

    /// Append the same byte string of fixed length to all rows.
    pub fn all_arrays<const N: usize>(&mut self, value: [u8; N]) {
        self.arrays(std::iter::repeat(value));
    }

    /// Append byte strings of a fixed length.
    #[inline]
    pub fn arrays<const N: usize>(&mut self, values: impl Iterator<Item = [u8; N]>) {
        self.with(|column, count| column.extend_arrays(count, values));
    }

    #[inline]
    pub fn maybe_arrays<const N: usize>(&mut self, values: impl Iterator<Item = Option<[u8; N]>> + Clone) {
        self.with(|column, count| column.extend_maybe(count, values));
    }

    /// Append byte strings of varying length.
    #[inline]
    pub fn strings<'v>(&mut self, values: impl Iterator<Item = &'v [u8]>) {
        self.with(|column, count| values.take(count).for_each(|value| column.bytes(value)));
    }

    #[inline]
    pub fn maybe_strings<'v>(&mut self, values: impl Iterator<Item = Option<&'v [u8]>> + Clone) {
        self.with(|column, count| {
            if values.clone().take(count).all(|value| value.is_none()) {
                return column.extend_nulls(count);
            }
            values.take(count).for_each(|value| match value {
                Some(value) => column.bytes(value),
                None => column.null(),
            });
        });
    }

    pub fn bools(&mut self, values: impl Iterator<Item = Option<bool>>) {
        self.with(|column, count| {
            values.take(count).for_each(|value| match value {
                Some(value) => column.bool(value),
                None => column.null(),
            });
        });
    }

    /// Append 256-bit numbers to their four columns: bytes, decimal text, floating point and decimal(38).
    pub fn wides(&mut self, values: impl Iterator<Item = U256> + Clone) {
        self.arrays(values.clone().map(|value| value.to_be_bytes::<32>()));
        let texts = values.clone();
        self.with(|column, count| texts.take(count).for_each(|value| decimal_text(column, value)));
        let floats = values.clone();
        self.with(|column, count| column.extend_arrays(count, floats.map(|value| float(&value).to_le_bytes())));
        self.with(|column, count| values.take(count).for_each(|value| column.decimal(&value)));
    }

    /// End the rows, and check that every column has its values.
    pub fn end(mut self) {
        debug_assert!(self.columns.next().is_none(), "a column of the rows has no values");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::column::Kind;
    use crate::tables::table::wide;

    #[test]
    fn columns_hold_what_rows_would_append() {
        let [binary, text, float, decimal] = wide!("v_binary", "v_string", "v_f64", "v_decimal");
        let specs = [
            ("number", Kind::U32),
            ("gas", Kind::U64),
            ("price", Kind::U64),
            ("time", Kind::U32),
            ("hash", Kind::Fixed(32)),
            ("to", Kind::Fixed(20)),
            ("input", Kind::Binary),
            ("reason", Kind::Binary),
            ("success", Kind::Bool),
            binary,
            text,
            float,
            decimal,
        ];
        let wanted: Vec<String> = specs.iter().map(|(name, _)| (*name).into()).filter(|name| name != "gas").collect();
        let (mut by_row, mut by_column) = (Table::new(&specs, &wanted), Table::new(&specs, &wanted));
        let data = [7u8; 99];
        for (block, count) in [(1u64, 3usize), (2, 0), (3, 17), (4, 1), (5, 40)] {
            let to = |at: u64| (!(at + block).is_multiple_of(3) && block != 4).then_some([at as u8; 20]);
            let price = |at: u64| (block > 2 && !at.is_multiple_of(5)).then_some(at);
            let reason = |at: u64| (block == 3 && at == 9).then_some(&data[..5]);
            let success = |at: u64| (block != 1).then_some(at.is_multiple_of(2));
            let time = if block == 3 { u64::MAX } else { block };
            let value = |at: u64| U256::from(at) << ((at * 13 % 200) as usize);
            for at in 0..count as u64 {
                let mut row = by_row.row();
                row.u32(block as u32);
                row.u64(at);
                row.maybe_u64(price(at));
                row.narrow(time);
                row.bytes([at as u8; 32]);
                row.maybe_bytes(to(at));
                row.bytes(&data[at as usize..]);
                row.maybe_bytes(reason(at));
                row.bool(success(at));
                row.wide(value(at));
                row.end();
            }
            let all = 0..count as u64;
            let mut rows = by_column.block_rows(count);
            rows.all_u32(block as u32);
            rows.u64s(all.clone());
            rows.maybe_u64s(all.clone().map(price));
            rows.all_narrow(time);
            rows.arrays(all.clone().map(|at| [at as u8; 32]));
            rows.maybe_arrays(all.clone().map(to));
            rows.strings(all.clone().map(|at| &data[at as usize..]));
            rows.maybe_strings(all.clone().map(reason));
            rows.bools(all.clone().map(success));
            rows.wides(all.map(value));
            rows.end();
        }
        assert_eq!((by_row.rows, by_column.rows), (61, 61));
        for ((row, column), (name, _)) in by_row.columns.iter().zip(&by_column.columns).zip(&specs) {
            assert_eq!(row.values, column.values, "{name}");
            assert_eq!((&row.offsets, row.nulls, row.rows()), (&column.offsets, column.nulls, column.rows()), "{name}");
            assert_eq!(row.validity, column.validity, "{name}");
        }
    }
}
