//! Buffered rows of the transaction index.
//!
//! Transaction hashes are spread over the whole index: 8,000 rows touch nearly as many pages. So the node buffers rows
//! in memory and divides the index into partitions. Each block writes one partition, with the rows of all blocks since
//! the last write of that partition. The block number selects the partition. After a restart, the number of the head
//! determines which rows the index lacks. The node reads these rows from the bodies of the last blocks. A process that
//! only reads fills its buffer in the same way, and then follows the node block by block.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::Result;

use super::records::{head, visit_known};
use super::tables::Tables;
use super::tx_index::{self, KEY, Packed, Place, packed, restore};

const PARTS: u64 = 64;

type Row = ([u8; KEY], Packed);

/// Buffered rows of the transaction index, with one lock per partition. So lookups do not wait while rows of a block
/// are added to other partitions.
pub struct TxIndexBuffer {
    parts: [Mutex<BTreeSet<Row>>; PARTS as usize],
    /// The head up to which `follow` has read.
    followed: Mutex<Option<(B256, u64)>>,
}

fn row(transaction: &[u8], place: Place) -> Row {
    (*transaction.first_chunk().expect("a hash is longer"), packed(place))
}

fn part(transaction: &[u8]) -> u64 {
    u64::from(transaction[0]) * PARTS / 256
}

/// Return the last block, up to `head`, whose commit wrote this partition; None if there is none.
fn written(part: u64, head: u64) -> Option<u64> {
    head.checked_sub((head + PARTS - part) % PARTS)
}

impl TxIndexBuffer {
    /// Rebuild the buffered rows of an existing database. Unreadable blocks are skipped; `ophion storage check` reports
    /// them.
    pub fn rebuild(tables: &Tables, txn: &RoTxn<'_>) -> Result<Self> {
        let tx_index_buffer =
            TxIndexBuffer { parts: std::array::from_fn(|_| Mutex::default()), followed: Mutex::default() };
        if let Some(head) = head(tables, txn)? {
            tx_index_buffer.fill(tables, txn, head.1)?;
            *locked(&tx_index_buffer.followed) = Some(head);
        }
        Ok(tx_index_buffer)
    }

    /// Replace the buffered rows by the rows of recent blocks that are not in the index of the database yet. `head` is
    /// the number of the head.
    fn fill(&self, tables: &Tables, txn: &RoTxn<'_>, head: u64) -> Result<()> {
        let mut rows: [Vec<Row>; PARTS as usize] = std::array::from_fn(|_| Vec::new());
        for number in head.saturating_sub(PARTS - 2)..=head {
            let Some(hash) = tables.canonical.get(txn, &number.to_be_bytes())? else { continue };
            let Some(body) = tables.bodies.get(txn, hash)? else { continue };
            let _ = visit_known(body, |index, transaction, _| {
                let part = part(transaction);
                if written(part, head).is_none_or(|written| number > written) {
                    rows[part as usize].push(row(transaction, (number, index as u32)));
                }
            });
        }
        for (part, rows) in self.parts.iter().zip(rows) {
            *locked(part) = rows.into_iter().collect();
        }
        Ok(())
    }

    /// Buffer the rows of blocks that another process has committed since the last call. The rows of a block are added
    /// before the rows that its commit has written are dropped. So a lookup finds each row in the buffer or in the
    /// newest snapshot. Rows of blocks that have left the chain may stay, because lookups check each candidate.
    pub fn follow(&self, tables: &Tables, txn: &RoTxn<'_>) -> Result<()> {
        let Some((hash, number)) = head(tables, txn)? else { return Ok(()) };
        let mut followed = locked(&self.followed);
        let from = match *followed {
            Some(known) if known == (hash, number) => return Ok(()),
            Some((known, at)) if at < number && number - at < PARTS => {
                tables.canonical.get(txn, &at.to_be_bytes())?.filter(|found| *found == known.as_slice()).map(|_| at + 1)
            }
            _ => None,
        };
        match from {
            None => self.fill(tables, txn, number)?,
            Some(from) => {
                for at in from..=number {
                    let hash = tables.canonical.get(txn, &at.to_be_bytes())?;
                    let body = hash.map(|hash| tables.bodies.get(txn, hash)).transpose()?.flatten();
                    let _ = visit_known(body.unwrap_or_default(), |index, transaction, _| {
                        self.of(transaction).insert(row(transaction, (at, index as u32)));
                    });
                    locked(&self.parts[(at % PARTS) as usize]).clear();
                }
            }
        }
        *followed = Some((hash, number));
        Ok(())
    }

    fn of(&self, transaction: &[u8]) -> MutexGuard<'_, BTreeSet<Row>> {
        locked(&self.parts[part(transaction) as usize])
    }

    /// Return the candidate positions of a transaction. The buffer stores only the first bytes of each hash.
    pub fn places(&self, transaction: &B256) -> Vec<Place> {
        let key = row(&transaction[..], (0, 0)).0;
        let rows = (key, [0; 8])..=(key, [255; 8]);
        self.of(&transaction[..]).range(rows).flat_map(|(_, place)| restore(place)).collect()
    }

    pub fn add(&self, transaction: &B256, place: Place) {
        self.of(&transaction[..]).insert(row(&transaction[..], place));
    }

    pub fn remove(&self, transaction: &B256, place: Place) {
        self.of(&transaction[..]).remove(&row(&transaction[..], place));
    }

    /// Write the partitions that are due with these blocks. The caller calls `settle` once the rows are on disk.
    pub fn write(&self, tables: &Tables, txn: &mut RwTxn<'_>, blocks: impl IntoIterator<Item = u64>) -> Result<Parts> {
        let parts: BTreeSet<u64> = blocks.into_iter().map(|number| number % PARTS).collect();
        for part in &parts {
            let rows: Vec<Row> = locked(&self.parts[*part as usize]).iter().copied().collect();
            for (key, place) in rows {
                tx_index::put(tables.positions, txn, &key, &place)?;
            }
        }
        Ok(Parts(parts))
    }

    /// Drop the buffered rows of partitions that are on disk.
    pub fn settle(&self, written: Parts) {
        written.0.into_iter().for_each(|part| locked(&self.parts[part as usize]).clear());
    }
}

/// Partitions whose rows were written to the database.
pub struct Parts(BTreeSet<u64>);

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use alloy_primitives::{U256, keccak256};

    use super::*;
    use crate::chain::body::{BodyData, Known};
    use crate::store::{BlockRecord, Database, Effects};
    use crate::trie::{EMPTY_ROOT, Trie};

    fn hash_of(number: u64, index: u64) -> B256 {
        keccak256([number.to_be_bytes(), index.to_be_bytes()].concat())
    }

    /// Return a block record that has only transaction hashes.
    fn block(number: u64, transactions: u64) -> Arc<BlockRecord> {
        let known = (0..transactions).map(|index| Known { hash: hash_of(number, index), sender: Default::default() });
        let effects = Effects {
            parent_root: EMPTY_ROOT,
            state_root: EMPTY_ROOT,
            receipts: Vec::new(),
            blob_price: 0,
            trie: Trie::default(),
            weight: 0,
            preimages: Vec::new(),
            codes: Vec::new(),
        };
        Arc::new(BlockRecord {
            hash: B256::left_padding_from(&(number + 1).to_be_bytes()),
            number,
            header: vec![0xc0].into(),
            body: Arc::new(BodyData::new(Vec::new(), Vec::new(), None).with_known(known.collect())),
            effects: Arc::new(effects),
            total_difficulty: U256::ZERO,
        })
    }

    fn open(path: &Path, read_only: bool) -> Arc<Database> {
        Database::open(path, !read_only, read_only, false).unwrap()
    }

    #[test]
    fn a_transaction_is_found_while_it_waits_and_when_it_is_written() {
        let path = std::env::temp_dir().join(format!("ophion-tx_index_buffer-{}", std::process::id()));
        let mut db = open(&path, false);
        let mut all = Vec::new();
        for number in 0..300 {
            let transactions = if number < 200 { number % 9 } else { 0 };
            let earlier = db.snapshot().unwrap();
            let new = block(number, transactions);
            db.commit(std::slice::from_ref(&new), &[], &[new.hash], &[]).unwrap();
            // the rows left the buffer after the snapshot was opened, so the index in the snapshot lacks these rows
            for (hash, place) in &all {
                assert_eq!(earlier.position(hash).unwrap(), Some(*place), "at {number}");
            }
            assert_eq!(earlier.position(&hash_of(number, 0)).unwrap(), None, "the block is not there yet");
            all.extend((0..transactions).map(|index| (hash_of(number, index), (number, index as u32))));
            drop(earlier);
            if number % 41 == 7 {
                db.close();
                drop(db);
                db = open(&path, number % 2 == 0);
                for (hash, place) in &all {
                    assert_eq!(db.snapshot().unwrap().position(hash).unwrap(), Some(*place), "anew at {number}");
                }
                drop(db);
                db = open(&path, false);
            }
        }
        let snapshot = db.snapshot().unwrap();
        assert_eq!(
            snapshot.tables().positions.usage(snapshot.txn()).unwrap().0,
            all.len() as u64,
            "nothing waits any more"
        );
        for (hash, _) in &all {
            assert!(snapshot.inner.tx_index_buffer.places(hash).is_empty());
        }
        drop(snapshot);
        drop(db);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_reader_that_follows_finds_what_the_index_lacks() {
        let path = std::env::temp_dir().join(format!("ophion-tx_index-follow-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let db = open(&path, false);
        let commit = |blocks: &[Arc<BlockRecord>]| {
            let added: Vec<B256> = blocks.iter().map(|block| block.hash).collect();
            db.commit(blocks, &[], &added, &[]).unwrap();
        };
        commit(&[block(0, 0)]);
        let follower = TxIndexBuffer::rebuild(&db.tables, &db.read_txn().unwrap()).unwrap();
        let mut all = Vec::new();
        let mut number = 1;
        while number < 400 {
            // some commits write many blocks, and some follow late
            let count = if number % 50 == 3 { 70 } else { 1 + number % 3 };
            let blocks: Vec<_> = (number..number + count).map(|number| block(number, number % 9)).collect();
            commit(&blocks);
            for at in number..number + count {
                all.extend((0..at % 9).map(|index| (hash_of(at, index), (at, index as u32))));
            }
            number += count;
            if number % 4 == 0 {
                continue;
            }
            let txn = db.read_txn().unwrap();
            follower.follow(&db.tables, &txn).unwrap();
            for (hash, place) in &all {
                let found = tx_index::confirmed(&db.tables, &txn, hash, follower.places(hash)).unwrap();
                let found = found.or(tx_index::find(&db.tables, &txn, hash).unwrap());
                assert_eq!(found, Some(*place), "at {number}");
            }
        }
        drop(db);
        std::fs::remove_dir_all(&path).unwrap();
    }
}
