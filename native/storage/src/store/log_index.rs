//! Log index: blocks that may hold a log with an address or topic.
//!
//! A fold is an eight-byte hash of an address or topic. In a table ordered by fold, each new row changes another page.
//! The index is therefore divided into sections of consecutive blocks, and a block changes pages of the last section
//! only. A search looks up each section. Blocks that were written before layout 5 are in an index without sections
//! (table `logs`).

use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::{Error, Result};

use super::tables::Tables;
use crate::chain::receipts::ReceiptData;

/// Number of blocks in a section. Larger sections need fewer lookups, but a block then changes more pages.
const SECTION_BLOCKS: u64 = 64;

/// Key of an index row, with sizes in bytes: section (5), hash of an address or topic (8), position of the block in its
/// section (1).
type Key = [u8; 14];

fn key(fold: u64, number: u64) -> Key {
    let mut key = [0; 14];
    key[..5].copy_from_slice(&(number / SECTION_BLOCKS).to_be_bytes()[3..]);
    key[5..13].copy_from_slice(&fold.to_be_bytes());
    key[13] = (number % SECTION_BLOCKS) as u8;
    key
}

/// Return the address or topic hash and the block number in a key of the index.
fn parts(key: &[u8]) -> Result<(u64, u64)> {
    let key = Key::try_from(key).map_err(|_| Error::damaged("a key of the log index is too short"))?;
    let mut section = [0; 8];
    section[3..].copy_from_slice(&key[..5]);
    let fold = u64::from_be_bytes(*key[5..].first_chunk().expect("eight bytes"));
    Ok((fold, u64::from_be_bytes(section) * SECTION_BLOCKS + u64::from(key[13])))
}

/// Write the index entries of new blocks. An entry is a fold (the hash of an address or topic) and a block number.
pub fn write(tables: &Tables, txn: &mut RwTxn<'_>, entries: &[(u64, u64)]) -> Result<()> {
    let mut keys: Vec<Key> = entries.iter().map(|(fold, number)| key(*fold, *number)).collect();
    // writing sorted keys takes 15 to 50 percent less time
    keys.sort_unstable();
    keys.dedup();
    keys.iter().try_for_each(|key| tables.log_sections.put(txn, key, &[]))
}

pub fn contains(tables: &Tables, txn: &RoTxn<'_>, fold: u64, number: u64) -> Result<bool> {
    if tables.log_sections.get(txn, &key(fold, number))?.is_some() {
        return Ok(true);
    }
    Ok(tables.logs.get(txn, &[fold.to_be_bytes(), number.to_be_bytes()].concat())?.is_some())
}

/// Append the canonical blocks from `first` to `last` that may hold a log with this fold (the hash of an address or
/// topic).
pub fn search(tables: &Tables, txn: &RoTxn<'_>, fold: u64, first: u64, last: u64, blocks: &mut Vec<u64>) -> Result<()> {
    search_unsectioned(tables, txn, fold, first, last, blocks)?;
    let mut from = first;
    while from <= last {
        let end_of_section = (from / SECTION_BLOCKS + 1) * SECTION_BLOCKS;
        let mut next = None;
        for entry in tables.log_sections.from(txn, &key(fold, from))? {
            let (found, number) = parts(entry?.0)?;
            if found != fold || number >= end_of_section {
                // skip sections without entries
                next = Some(end_of_section.max(number / SECTION_BLOCKS * SECTION_BLOCKS));
                break;
            }
            if number > last {
                return Ok(());
            }
            blocks.push(number);
        }
        match next {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Search the index of databases before layout 5. The keys of this index are the hash of an address or topic (8 bytes)
/// and the block number (8 bytes).
fn search_unsectioned(
    tables: &Tables,
    txn: &RoTxn<'_>,
    fold: u64,
    first: u64,
    last: u64,
    blocks: &mut Vec<u64>,
) -> Result<()> {
    let start = [fold.to_be_bytes(), first.to_be_bytes()].concat();
    for entry in tables.logs.from(txn, &start)? {
        let Ok(key) = <[u8; 16]>::try_from(entry?.0) else {
            return Err(Error::damaged("a key of the log index is too short"));
        };
        let number = u64::from_be_bytes(key[8..].try_into().expect("eight bytes"));
        if key[..8] != fold.to_be_bytes() || number > last {
            break;
        }
        blocks.push(number);
    }
    Ok(())
}

/// Return an eight-byte hash of an address or topic, for the log index. Collisions are harmless: the index only finds
/// candidates, and the receipts decide.
pub fn fold(value: &[u8]) -> u64 {
    value.chunks(8).fold(0x9e37_79b9_7f4a_7c15, |state: u64, chunk| {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (state ^ u64::from_be_bytes(word)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

/// Return the index hashes of all addresses and topics in a block's receipts.
pub fn folds(receipts: &[ReceiptData]) -> Vec<u64> {
    let mut found = Vec::new();
    for log in receipts.iter().flat_map(|receipt| &receipt.logs) {
        found.push(fold(log.address.as_slice()));
        found.extend(log.data.topics().iter().map(|topic| fold(topic.as_slice())));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::opening;

    #[test]
    fn searches_find_the_blocks_of_a_fold_in_both_indexes() {
        let path = std::env::temp_dir().join(format!("ophion-log-index-{}", std::process::id()));
        let (env, tables, _) = opening::open(&path, true, false, false).unwrap();
        let mut txn = env.write_txn().unwrap();
        // each block has one fold of its bloom filter, by its number; blocks below 100 are in the index without sections
        let fold = |number: u64| [7, u64::MAX, 0, 12_345][(number % 4) as usize];
        let numbers: Vec<u64> = (0..300).chain([1_000, 1_001, 70_000, 1 << 39]).collect();
        for number in numbers.iter().filter(|number| **number < 100) {
            let key = [fold(*number).to_be_bytes(), number.to_be_bytes()].concat();
            tables.logs.put(&mut txn, &key, &[]).unwrap();
        }
        let entries: Vec<_> = numbers.iter().filter(|at| **at >= 100).map(|at| (fold(*at), *at)).collect();
        write(&tables, &mut txn, &entries).unwrap();
        for wanted in [7, u64::MAX, 0, 12_345, 8] {
            for (first, last) in
                [(0, u64::MAX >> 8), (0, 99), (50, 150), (127, 128), (128, 191), (500, 999), (1_000, 1_000)]
            {
                let mut found = Vec::new();
                search(&tables, &txn, wanted, first, last, &mut found).unwrap();
                let within = |at: &u64| fold(*at) == wanted && (first..=last).contains(at);
                let expected: Vec<u64> = numbers.iter().copied().filter(within).collect();
                assert_eq!(found, expected, "fold {wanted} from {first} to {last}");
            }
        }
        assert!(contains(&tables, &txn, fold(3), 3).unwrap());
        assert!(contains(&tables, &txn, fold(203), 203).unwrap());
        assert!(!contains(&tables, &txn, fold(203), 204).unwrap());
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }
}
