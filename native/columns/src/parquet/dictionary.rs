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

/// A value with a quick hash for `Recent`.
pub trait Key: Copy + Eq + Hash {
    /// Return a number that differs for most different values.
    fn quick_hash(&self) -> u64;

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Key for u64 {
    #[inline]
    fn quick_hash(&self) -> u64 {
        *self
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn quick_hash(&self) -> u64 {
        self.as_slice().quick_hash()
    }
}

impl Key for &[u8] {
    #[inline]
    fn quick_hash(&self) -> u64 {
        match self.last_chunk::<8>() {
            Some(end) => u64::from_le_bytes(*end),
            None => self.iter().fold(self.len() as u64, |hash, byte| hash << 8 | u64::from(*byte)),
        }
    }

    /// Compare without a look at the bytes of empty strings. A column of only empty strings has no memory, and a
    /// comparison of no bytes at an invalid address takes more than 100 ns on some processors.
    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.is_empty() || self == other)
    }
}

/// Some of the values seen, with their positions. Most repeated values are found here, without the hash table.
struct Recent<K>([Option<(K, u32)>; RECENT]);

const RECENT: usize = 256;

impl<K: Key> Recent<K> {
    #[inline]
    fn slot(&mut self, value: &K) -> &mut Option<(K, u32)> {
        // Fibonacci hashing: the upper bits depend on all bits of the value
        let hash = value.quick_hash().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.0[(hash >> (u64::BITS - RECENT.ilog2())) as usize]
    }
}

impl<K: Key> Dictionary<K> {
    /// Build the dictionary of a column; None if a dictionary would not make the column smaller. `size` returns the
    /// length of a value in bytes.
    pub fn of(values: impl Iterator<Item = K>, rows: usize, size: impl Fn(&K) -> usize) -> Option<Self> {
        let mut known: HashMap<K, u32> = HashMap::default();
        let mut recent = Recent([const { None }; RECENT]);
        let mut found = Dictionary { values: Vec::new(), positions: Vec::with_capacity(rows) };
        let mut bytes = 0;
        for value in values {
            let slot = recent.slot(&value);
            if let Some((known, position)) = slot
                && known.is_same(&value)
            {
                found.positions.push(*position);
                continue;
            }
            let position = match known.entry(value) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => {
                    found.values.push(value);
                    bytes += size(&value) + 4;
                    let position = *free.insert(found.values.len() as u32 - 1);
                    if !is_smaller(bytes, found.values.len(), found.positions.len() + 1) {
                        return None;
                    }
                    position
                }
            };
            *slot = Some((value, position));
            found.positions.push(position);
        }
        Some(found)
    }
}

impl Dictionary<u64> {
    /// Build the dictionary of numbers of `width` bytes. `low` and `high` are the least and the greatest number. If
    /// they are close to each other, an array replaces the hash table.
    pub fn of_numbers(numbers: &[u64], (low, high): (u64, u64), width: usize) -> Option<Self> {
        if high - low > MAX_DIRECT_SPAN.min(4 * numbers.len() as u64) {
            return Self::of(numbers.iter().copied(), numbers.len(), |_| width);
        }
        let mut known = vec![u32::MAX; (high - low) as usize + 1];
        let mut found = Dictionary { values: Vec::new(), positions: Vec::with_capacity(numbers.len()) };
        for number in numbers {
            let position = &mut known[(number - low) as usize];
            if *position == u32::MAX {
                *position = found.values.len() as u32;
                found.values.push(*number);
                if !is_smaller(found.values.len() * (width + 4), found.values.len(), found.positions.len() + 1) {
                    return None;
                }
            }
            found.positions.push(*position);
        }
        Some(found)
    }
}

/// Maximum difference between the least and the greatest number for which an array replaces the hash table.
const MAX_DIRECT_SPAN: u64 = 1 << 16;

/// Return whether a dictionary of this size makes a column smaller. `count` is the number of values read so far.
fn is_smaller(bytes: usize, distinct: usize, count: usize) -> bool {
    bytes <= MAX_BYTES && (count < MIN_SAMPLE || distinct <= count / 2)
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
    fn numbers_that_are_close_have_the_same_dictionary_as_others() {
        for span in [1u64, 50, 3000, 60_000, 1 << 40] {
            let numbers: Vec<u64> = (0..20_000u64).map(|at| 7 + at.wrapping_mul(at * 31 + 5) % span).collect();
            let ends = (*numbers.iter().min().unwrap(), *numbers.iter().max().unwrap());
            let slow = Dictionary::of(numbers.iter().copied(), numbers.len(), |_| 8);
            let fast = Dictionary::of_numbers(&numbers, ends, 8);
            assert_eq!(fast.is_some(), slow.is_some(), "{span}");
            let (Some(fast), Some(slow)) = (fast, slow) else { continue };
            assert_eq!((fast.values, fast.positions), (slow.values, slow.positions), "{span}");
        }
        assert_eq!(Dictionary::of_numbers(&[0, u64::MAX], (0, u64::MAX), 8).unwrap().positions, [0, 1]);
        assert!(Dictionary::of_numbers(&[], (0, 0), 8).unwrap().values.is_empty());
    }

    #[test]
    fn a_value_keeps_its_position_after_many_others() {
        let values: Vec<[u8; 4]> = (0..9000u32).map(|at| (at * 7 % 1000).to_be_bytes()).collect();
        let found = Dictionary::of(values.iter().copied(), values.len(), |_| 4).unwrap();
        assert_eq!(found.values.len(), 1000);
        let read: Vec<[u8; 4]> = found.positions.iter().map(|at| found.values[*at as usize]).collect();
        assert_eq!(read, values);
    }

    #[test]
    fn distinct_values_have_no_dictionary() {
        let values: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_le_bytes).collect();
        let of = |values: &[[u8; 4]]| Dictionary::of(values.iter().copied(), values.len(), |_| 4).is_some();
        assert!(!of(&values));
        assert!(of(&values[..100]));
    }
}
