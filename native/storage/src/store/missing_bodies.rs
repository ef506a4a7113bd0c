//! Reads of bodies and receipts that may not be downloaded yet (`block_history.rs`).
//!
//! A read of a missing body or receipt fails with `Error::NotDownloaded`, so no reader takes the block for unknown.

use alloy_primitives::B256;
use heed::RoTxn;
use ophion_primitives::errors::{Error, Result};

use super::records::{number, read_header};
use super::tables::{Tables, meta};

/// Return the number of the lowest block from which on bodies and receipts are stored; None if no block lacks them.
pub(super) fn history_start(tables: &Tables, txn: &RoTxn<'_>) -> Result<Option<u64>> {
    Ok(tables.meta.get(txn, meta::HISTORY)?.map(number))
}

/// Return the stored body of a block; None if the block is unknown.
pub(super) fn body_row<'t>(tables: &Tables, txn: &'t RoTxn<'_>, hash: &B256) -> Result<Option<&'t [u8]>> {
    present(tables, txn, hash, tables.bodies.get(txn, hash.as_slice())?)
}

/// Return the stored receipts of a block; None if the block is unknown.
pub(super) fn receipts_row<'t>(tables: &Tables, txn: &'t RoTxn<'_>, hash: &B256) -> Result<Option<&'t [u8]>> {
    present(tables, txn, hash, tables.receipts.get(txn, hash.as_slice())?)
}

/// Return a row of a block. Fails if the row is absent because it is not downloaded yet.
fn present<'t>(tables: &Tables, txn: &RoTxn<'_>, hash: &B256, row: Option<&'t [u8]>) -> Result<Option<&'t [u8]>> {
    if row.is_none()
        && let Some(from) = history_start(tables, txn)?
        && let Some((number, _, _)) = read_header(tables, txn, hash)?
    {
        expect(number, number, from)?;
    }
    Ok(row)
}

/// Fail if one of the blocks from `first` to `last` is before the block `from`. The genesis block is always stored.
pub(super) fn expect(first: u64, last: u64, from: u64) -> Result<()> {
    let number = first.max(1);
    if number <= last && number < from { Err(Error::NotDownloaded { number, from }) } else { Ok(()) }
}
