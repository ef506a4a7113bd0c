//! The distinct values of a column, and the position of each value among them.

use alloy_primitives::map::{Entry, HashMap};

/// Maximum size of a dictionary in bytes. A larger dictionary costs readers more than it saves.
const MAX_BYTES: usize = 1 << 20;
/// Number of values to read before a column with mostly distinct values is written without a dictionary.
const MIN_SAMPLE: usize = 4096;

/// Distinct values of a column, numbered in the order of their first occurrence.
#[derive(Default)]
pub struct Dictionary<'a> {
    known: HashMap<&'a [u8], u32>,
    pub values: Vec<&'a [u8]>,
    pub positions: Vec<u32>,
    bytes: usize,
    last: Option<(&'a [u8], u32)>,
}

impl<'a> Dictionary<'a> {
    /// Build the dictionary of a column; None if a dictionary would not make the column smaller.
    pub fn of(values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut found = Dictionary::default();
        for value in values {
            found.add(value);
            let (distinct, count) = (found.values.len(), found.positions.len());
            if found.bytes > MAX_BYTES || (count >= MIN_SAMPLE && distinct > count / 2) {
                return None;
            }
        }
        Some(found)
    }

    fn add(&mut self, value: &'a [u8]) {
        // Compare with the previous value first, because most repetitions are in consecutive rows, such as a block
        // number.
        if let Some((last, position)) = self.last
            && last == value
        {
            self.positions.push(position);
            return;
        }
        let position = match self.known.entry(value) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                self.values.push(value);
                self.bytes += value.len() + 4;
                *free.insert(self.values.len() as u32 - 1)
            }
        };
        self.last = Some((value, position));
        self.positions.push(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_by_their_first_occurrence() {
        let found = Dictionary::of([&b"b"[..], b"b", b"a", b"b"].into_iter()).unwrap();
        assert_eq!((found.values, found.positions), (vec![&b"b"[..], b"a"], vec![0, 0, 1, 0]));
    }

    #[test]
    fn distinct_values_have_no_dictionary() {
        let values: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_le_bytes).collect();
        assert!(Dictionary::of(values.iter().map(|one| one.as_slice())).is_none());
        assert!(Dictionary::of(values[..100].iter().map(|one| one.as_slice())).is_some());
    }
}
