//! Table of stored states: root node ids, and the last block of each state.
//!
//! ```text
//! number (8) of the last block with this root | id (8) of its root node | further ids (8 each)
//! id (8)                                        format of versions without pruning
//! ```
//! Numbers in parentheses are sizes in bytes. If two blocks have the same state (siblings with equal transactions), the
//! state is written twice. Both root nodes are listed, because later states may refer to nodes of either.

use alloy_primitives::B256;
use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::{Error, Result};

use super::tables::Tables;

/// The record of one stored state.
pub struct RootRecord {
    /// Number of the last block with this root; None in records of older versions.
    pub number: Option<u64>,
    pub ids: Vec<u64>,
}

impl RootRecord {
    pub fn restore(bytes: &[u8]) -> Result<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        if words.is_empty() || !rest.is_empty() {
            return Err(Error::damaged("a state root has no proper id"));
        }
        let mut words = words.iter().map(|word| u64::from_be_bytes(*word));
        let number = if bytes.len() == 8 { None } else { words.next() };
        Ok(RootRecord { number, ids: words.collect() })
    }

    fn store(&self) -> Vec<u8> {
        let words = self.number.iter().chain(&self.ids);
        words.flat_map(|word| word.to_be_bytes()).collect()
    }
}

/// Return the id of a state's root node; None if the state is not stored.
pub fn root_id(tables: &Tables, txn: &RoTxn<'_>, root: &B256) -> Result<Option<u64>> {
    let Some(record) = tables.roots.get(txn, root.as_slice())? else { return Ok(None) };
    Ok(RootRecord::restore(record)?.ids.first().copied())
}

/// Record that block `number` ends in the state with this root.
pub fn note_root(tables: &Tables, txn: &mut RwTxn<'_>, root: &B256, id: u64, number: u64) -> Result<()> {
    let mut record = match tables.roots.get(txn, root.as_slice())? {
        Some(bytes) => RootRecord::restore(bytes)?,
        None => RootRecord { number: None, ids: Vec::with_capacity(1) },
    };
    if record.ids.contains(&id) && record.number >= Some(number) {
        return Ok(());
    }
    if !record.ids.contains(&id) {
        record.ids.push(id);
    }
    record.number = record.number.max(Some(number));
    tables.roots.put(txn, root.as_slice(), &record.store())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_record_are_read() {
        let old = RootRecord::restore(&7u64.to_be_bytes()).unwrap();
        assert_eq!((old.number, old.ids), (None, vec![7]));
        let record = RootRecord { number: Some(9), ids: vec![7, 8] };
        let read = RootRecord::restore(&record.store()).unwrap();
        assert_eq!((read.number, read.ids), (Some(9), vec![7, 8]));
    }

    #[test]
    fn a_record_of_another_length_is_damage() {
        for length in [0, 1, 7, 9, 15, 17] {
            assert!(RootRecord::restore(&vec![0; length]).is_err());
        }
    }
}
