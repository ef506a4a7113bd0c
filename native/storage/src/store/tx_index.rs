//! Transaction index: position of a transaction on the canonical chain.
//!
//! ```text
//! first bytes (6) of the hash | block number (5) and index (3) of each transaction with this prefix
//! hash (32)                   | number (8), index (4)     older format
//! ```
//! Numbers in parentheses are sizes in bytes. The body of the block has the full hash and so decides between
//! candidates. A row takes a third of the space of the older format. Rows of the last blocks are in memory
//! (tx_index_buffer.rs).

use alloy_primitives::B256;
use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::{Error, Result};

use super::records::{number, stored_hash};
use super::tables::{Table, Tables};

pub const KEY: usize = 6;
/// Number of low bits that hold the index of the transaction. The bits above hold the block number.
const INDEX_BITS: u32 = 24;

/// Block number and index of a transaction.
pub type Place = (u64, u32);

/// Stored form of a transaction's position: block number and index in eight bytes.
pub type Packed = [u8; 8];

pub fn packed((block, index): Place) -> Packed {
    (block << INDEX_BITS | u64::from(index)).to_be_bytes()
}

pub fn restore(record: &[u8]) -> impl Iterator<Item = Place> + '_ {
    let places = record.chunks_exact(8).map(number);
    places.map(|place| (place >> INDEX_BITS, (place & ((1 << INDEX_BITS) - 1)) as u32))
}

/// Add the position of a transaction to the index.
pub fn put(table: Table, txn: &mut RwTxn<'_>, key: &[u8; KEY], place: &Packed) -> Result<()> {
    if table.put_new(txn, key, place)? {
        return Ok(());
    }
    let mut record = table.get(txn, key)?.unwrap_or_default().to_vec();
    if !record.chunks_exact(place.len()).any(|known| known == place) {
        record.extend_from_slice(place);
        table.put(txn, key, &record)?;
    }
    Ok(())
}

/// Delete the position of a transaction from the index.
pub fn delete(table: Table, txn: &mut RwTxn<'_>, transaction: &B256, place: Place) -> Result<()> {
    let key = &transaction[..KEY];
    let before = table.get(txn, key)?.unwrap_or_default();
    let after: Vec<u8> = restore(before).filter(|known| *known != place).flat_map(packed).collect();
    match (after.len() < before.len(), after.is_empty()) {
        (false, _) => table.delete(txn, transaction.as_slice()).map(drop),
        (true, true) => table.delete(txn, key).map(drop),
        (true, false) => table.put(txn, key, &after),
    }
}

/// Look up the position of a transaction on the canonical chain in the stored index; None if the index lacks it.
pub fn find(tables: &Tables, txn: &RoTxn<'_>, transaction: &B256) -> Result<Option<Place>> {
    if let Some(place) = confirmed(tables, txn, transaction, places(tables, txn, transaction)?)? {
        return Ok(Some(place));
    }
    let Some(place) = tables.positions.get(txn, transaction.as_slice())? else { return Ok(None) };
    let damaged = || Error::damaged(format!("the place of transaction {transaction} cannot be read"));
    let place: [u8; 12] = place.try_into().map_err(|_| damaged())?;
    Ok(Some((number(&place[..8]), u32::from_be_bytes(place[8..].try_into().expect("four bytes")))))
}

/// Return the candidate positions of a transaction, found by the first bytes of its hash.
pub fn places(tables: &Tables, txn: &RoTxn<'_>, transaction: &B256) -> Result<Vec<Place>> {
    Ok(restore(tables.positions.get(txn, &transaction[..KEY])?.unwrap_or_default()).collect())
}

/// Return the candidate position at which the block body contains this transaction; None if there is none.
pub fn confirmed(
    tables: &Tables,
    txn: &RoTxn<'_>,
    transaction: &B256,
    places: impl IntoIterator<Item = Place>,
) -> Result<Option<Place>> {
    for (block, index) in places {
        let Some(hash) = tables.canonical.get(txn, &block.to_be_bytes())? else { continue };
        let body = tables.bodies.get(txn, hash)?;
        if body.and_then(|record| stored_hash(record, index as usize)) == Some(transaction.as_slice()) {
            return Ok(Some((block, index)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::body::Known;
    use crate::store::opening;
    use crate::store::records::append_body_prefix;

    /// Return a hash whose first bytes equal those of the other hashes made here.
    fn alike(last: u8) -> B256 {
        let mut hash = [7; 32];
        hash[31] = last;
        hash.into()
    }

    #[test]
    fn transactions_whose_hashes_begin_alike_are_told_apart_and_older_rows_are_read() {
        let path = std::env::temp_dir().join(format!("ophion-positions-{}", std::process::id()));
        let (env, tables, _) = opening::open(&path, true, false, false).unwrap();
        let mut txn = env.write_txn().unwrap();
        let table = tables.positions;
        let known = |hash| Known { hash, sender: Default::default() };
        let blocks = [(1u64, vec![alike(1), B256::ZERO, alike(2)]), (1 << 33, vec![alike(3)])];
        for (block, hashes) in &blocks {
            let (hash, mut body) = (B256::left_padding_from(&block.to_be_bytes()), Vec::new());
            append_body_prefix(&hashes.iter().copied().map(known).collect::<Vec<_>>(), &mut body);
            tables.canonical.put(&mut txn, &block.to_be_bytes(), hash.as_slice()).unwrap();
            tables.bodies.put(&mut txn, hash.as_slice(), &body).unwrap();
            for (index, hash) in hashes.iter().enumerate() {
                let key = hash.first_chunk().unwrap();
                put(table, &mut txn, key, &packed((*block, index as u32))).unwrap();
                put(table, &mut txn, key, &packed((*block, index as u32))).unwrap();
            }
        }
        let found = |txn: &RoTxn<'_>, last| find(&tables, txn, &alike(last)).unwrap();
        assert_eq!([1, 2, 3, 4].map(|last| found(&txn, last)), [Some((1, 0)), Some((1, 2)), Some((1 << 33, 0)), None]);
        delete(table, &mut txn, &alike(1), (1, 0)).unwrap();
        delete(table, &mut txn, &alike(4), (1, 0)).unwrap();
        assert_eq!([1, 2, 3].map(|last| found(&txn, last)), [None, Some((1, 2)), Some((1 << 33, 0))]);
        let old = [9u64.to_be_bytes().as_slice(), &5u32.to_be_bytes()].concat();
        table.put(&mut txn, alike(4).as_slice(), &old).unwrap();
        assert_eq!(found(&txn, 4), Some((9, 5)));
        for (last, place) in [(2, (1, 2)), (3, (1 << 33, 0)), (4, (9, 5))] {
            delete(table, &mut txn, &alike(last), place).unwrap();
        }
        delete(table, &mut txn, &B256::ZERO, (1, 1)).unwrap();
        assert_eq!(table.usage(&txn).unwrap().0, 0);
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }
}
