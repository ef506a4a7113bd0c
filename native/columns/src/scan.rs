//! Converts stored blocks to rows.

use alloy_primitives::B256;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::store::Snapshot;

use crate::datasets::{Dataset, blocks, logs, transactions};
use crate::tables::filter::Filter;
use crate::tables::table::Table;

/// Append the rows of canonical blocks `first` to `last`. The scan stops after the block with which the table reaches
/// `max_bytes`. Returns the number of the next block to scan.
pub fn scan(
    table: &mut Table,
    dataset: Dataset,
    snapshot: &Snapshot,
    (first, last): (u64, u64),
    filter: &Filter,
    chain_id: u64,
    max_bytes: usize,
) -> Result<u64> {
    let is_of_logs = matches!(dataset, Dataset::Logs | Dataset::Erc20Transfers | Dataset::Erc721Transfers);
    let listed = if is_of_logs { filter.log_blocks(snapshot, first, last)? } else { None };
    let mut append = |number: u64| -> Result<bool> {
        let hash = canonical(snapshot, number)?;
        match dataset {
            Dataset::Blocks => blocks::append(table, snapshot, &hash, chain_id)?,
            Dataset::Transactions => transactions::append(table, snapshot, &hash, filter, chain_id)?,
            _ if is_of_logs => logs::append(table, dataset, snapshot, &hash, filter, chain_id)?,
            _ => return Err(Error::Storage("the dataset needs execution".into())),
        }
        table.check_fit(number)?;
        if listed.is_none() {
            table.expect((number - first + 1) as usize, (last - number) as usize);
        }
        Ok(table.size() >= max_bytes)
    };
    match &listed {
        Some(numbers) => {
            for &number in numbers {
                if append(number)? {
                    return Ok(number + 1);
                }
            }
        }
        None => {
            for number in first..=last {
                if append(number)? {
                    return Ok(number + 1);
                }
            }
        }
    }
    Ok(last + 1)
}

fn canonical(snapshot: &Snapshot, number: u64) -> Result<B256> {
    let found = snapshot.canonical_hash(number)?;
    found.ok_or_else(|| Error::Storage(format!("block {number} is not part of the chain")))
}

/// Size in bytes of all mapped files above which the pages of the database are unmapped.
pub const MAX_MAPPED_BYTES: usize = 96 << 20;

/// Number of blocks whose sizes are read before the mapped pages are counted.
const BLOCKS_PER_CHECK: u64 = 64;

/// Maximum size in bytes of the transactions in a range of several blocks.
const MAX_RANGE_BYTES: usize = 4 << 20;

/// Split blocks into ranges, because the rows of several ranges are in memory at a time. A range has at most
/// `max_transactions` transactions and blocks, and at most `MAX_RANGE_BYTES`. A larger block is a range of its own.
/// Returns the last block of each range.
pub fn range_ends(snapshot: &Snapshot, first: u64, last: u64, max_transactions: usize) -> Result<Vec<u64>> {
    let (mut ends, mut count, mut bytes) = (Vec::new(), 0, 0);
    for number in first..=last {
        let hash = canonical(snapshot, number)?;
        let (transactions, size) =
            snapshot.body_size(&hash)?.ok_or_else(|| Error::damaged(format!("block {hash} has no body")))?;
        if number.is_multiple_of(BLOCKS_PER_CHECK) {
            snapshot.inner.limit_mapped_pages(MAX_MAPPED_BYTES);
        }
        // Count each block as one more transaction, because an empty block costs about as much as a transaction.
        let is_full = count + transactions + 1 > max_transactions || bytes + size > MAX_RANGE_BYTES;
        if number > first && is_full {
            ends.push(number - 1);
            (count, bytes) = (0, 0);
        }
        count += transactions + 1;
        bytes += size;
    }
    if first <= last {
        ends.push(last);
    }
    Ok(ends)
}
