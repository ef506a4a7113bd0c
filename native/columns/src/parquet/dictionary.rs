//! The distinct values of a column, and the position of each value among them.

use std::hash::Hash;

use alloy_primitives::map::{Entry, HashMap};

/// Maximum size of a dictionary in bytes. A larger dictionary costs readers more than it saves.
const MAX_BYTES: usize = 1 << 20;
/// Number of values to read before a column with mostly distinct values is written without a dictionary.
const MIN_SAMPLE: usize = 4096;

/// Distinct values of a column, numbered in the order of their first occurrence. Numbers have keys of 64 bits, because
/// they hash faster than byte strings.
pub struct Dictionary<K> {
    pub values: Vec<K>,
    pub positions: Vec<u32>,
}

impl<K: Copy + Eq + Hash> Dictionary<K> {
    /// Build the dictionary of a column; None if a dictionary would not make the column smaller. `size` returns the
    /// length of a value in bytes.
    pub fn of(values: impl Iterator<Item = K>, rows: usize, size: impl Fn(&K) -> usize) -> Option<Self> {
        let mut known: HashMap<K, u32> = HashMap::default();
        let mut found = Dictionary { values: Vec::new(), positions: Vec::with_capacity(rows) };
        let mut bytes = 0;
        let mut last: Option<(K, u32)> = None;
        for value in values {
            // Compare with the previous value first, because most repetitions are in consecutive rows, such as a block
            // number.
            if let Some((known, position)) = last
                && known == value
            {
                found.positions.push(position);
                continue;
            }
            let position = match known.entry(value) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => {
                    found.values.push(value);
                    bytes += size(&value) + 4;
                    let position = *free.insert(found.values.len() as u32 - 1);
                    let (distinct, count) = (found.values.len(), found.positions.len() + 1);
                    if bytes > MAX_BYTES || (count >= MIN_SAMPLE && distinct > count / 2) {
                        return None;
                    }
                    position
                }
            };
            last = Some((value, position));
            found.positions.push(position);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_by_their_first_occurrence() {
        let found = Dictionary::of([&b"b"[..], b"b", b"a", b"b"].into_iter(), 4, |one| one.len()).unwrap();
        assert_eq!((found.values, found.positions), (vec![&b"b"[..], b"a"], vec![0, 0, 1, 0]));
    }

    #[test]
    fn distinct_values_have_no_dictionary() {
        let values: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_le_bytes).collect();
        let of = |values: &[[u8; 4]]| Dictionary::of(values.iter().copied(), values.len(), |_| 4).is_some();
        assert!(!of(&values));
        assert!(of(&values[..100]));
    }
}
