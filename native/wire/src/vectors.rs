//! Test vectors of the specifications, shared with the Python tests.

use alloy_primitives::hex;

/// Return the bytes of a named test vector.
pub fn vector(name: &str) -> Vec<u8> {
    let lines = include_str!("../../../tests/data/wire/vectors.txt").lines();
    let mut pairs = lines.filter_map(|line| line.split_once(' ').or(Some((line, ""))));
    let (_, digits) = pairs.find(|(found, _)| *found == name).unwrap_or_else(|| panic!("no vector {name}"));
    hex::decode(digits).unwrap()
}

pub fn array<const N: usize>(name: &str) -> [u8; N] {
    vector(name).try_into().unwrap()
}

/// A deterministic pseudo-random generator.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }

    pub fn bytes(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| self.below(256) as u8).collect()
    }

    /// Return a copy of the sample with a few random mutations.
    pub fn spoiled(&mut self, sample: &[u8]) -> Vec<u8> {
        let mut data = sample.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(data.len());
            match self.below(4) {
                0 => data.truncate(at),
                1 => data.insert(at, self.below(256) as u8),
                2 if !data.is_empty() => drop(data.remove(at)),
                _ if !data.is_empty() => data[at] ^= 1 << self.below(8),
                _ => {}
            }
        }
        data
    }
}
