//! Blocks whose headers are stored before their bodies and receipts.
//!
//! A node that fetches a state from peers stores the headers of all blocks first. Bodies and receipts follow later,
//! from the highest block down. The record `history` in `meta` is the number (8 bytes) of the lowest block from which
//! on all bodies and receipts are stored. The record is absent if no block lacks its body and receipts. The genesis
//! block always has both.
//!
//! `missing_bodies.rs` lets reads of missing bodies and receipts fail.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes, U256, keccak256};
use heed::RwTxn;
use ophion_primitives::errors::{Error, Result};

use super::database::Database;
use super::log_index::{self, folds};
use super::missing_bodies::{expect, history_start};
use super::preimage_runs;
use super::read_snapshot::Snapshot;
use super::records::{HEADER_AT, append_body_prefix, remove_above};
use super::state_download::Named;
use super::tables::{Tables, meta};
use super::tx_index::{self, KEY, packed};
use crate::chain::body::BodyData;
use crate::chain::receipts::{self, ReceiptData};

/// A verified header without body and receipts.
pub struct ReceivedHeader {
    pub hash: B256,
    pub number: u64,
    pub total_difficulty: U256,
    /// Blob gas price of the block; zero before Cancun.
    pub blob_price: u128,
    pub header: Bytes,
}

/// Verified body and receipts of a block whose header is stored.
pub struct ReceivedBlock<'a> {
    pub hash: B256,
    pub body: Arc<BodyData>,
    pub receipts: &'a [ReceiptData],
}

impl Snapshot {
    /// Return the number of the lowest block from which on bodies and receipts are stored; None if no block lacks them.
    pub fn history_start(&self) -> Result<Option<u64>> {
        history_start(self.tables(), self.txn())
    }

    /// Fail if bodies and receipts of the blocks from `first` to `last` are not all downloaded.
    pub fn expect_downloaded(&self, first: u64, last: u64) -> Result<()> {
        self.history_start()?.map_or(Ok(()), |from| expect(first, last, from))
    }
}

impl Database {
    /// Write the headers of consecutive canonical blocks, and named values. From the number of the first header on,
    /// blocks of another branch leave the canonical chain. The head of the chain does not move.
    pub fn put_headers(&self, headers: &[ReceivedHeader], named: &[Named]) -> Result<()> {
        self.write_alone(|txn, tables| {
            for one in headers {
                let mut record = Vec::with_capacity(HEADER_AT + one.header.len());
                record.extend_from_slice(&one.number.to_be_bytes());
                record.extend_from_slice(&one.total_difficulty.to_be_bytes::<32>());
                record.extend_from_slice(&one.blob_price.to_be_bytes());
                record.extend_from_slice(&one.header);
                tables.headers.put(txn, one.hash.as_slice(), &record)?;
                tables.canonical.put(txn, &one.number.to_be_bytes(), one.hash.as_slice())?;
            }
            if let Some(last) = headers.last() {
                remove_above(tables, txn, last.number)?;
            }
            named.iter().try_for_each(|(key, value)| tables.meta.put(txn, &meta::own(key), value))
        })
    }

    /// Replace the RLP of a stored header by another RLP with the same block hash. Such an RLP exists if the block hash
    /// does not cover the seals. The caller has checked the hash.
    pub fn replace_header(&self, hash: B256, header: &[u8]) -> Result<()> {
        self.write_alone(|txn, tables| {
            let known = || Error::Storage(format!("block {hash} is not in the database"));
            let before = tables.headers.get(txn, hash.as_slice())?.and_then(|record| record.get(..HEADER_AT));
            let record = [before.ok_or_else(known)?, header].concat();
            tables.headers.put(txn, hash.as_slice(), &record)
        })
    }

    /// Declare that the blocks up to `head` have no bodies and receipts.
    pub fn begin_history(&self, head: u64) -> Result<()> {
        self.write_alone(|txn, tables| set_start(tables, txn, head + 1))
    }

    /// Write bodies and receipts of canonical blocks in descending order, directly below the blocks that have both.
    pub fn put_history(&self, blocks: &[ReceivedBlock<'_>]) -> Result<()> {
        // recover senders and encode rows before the write transaction begins, because a block import may wait for the
        // end of the transaction
        let rows = blocks.iter().map(Rows::of).collect::<Result<Vec<_>>>()?;
        self.write_alone(|txn, tables| {
            let Some(mut start) = history_start(tables, txn)? else {
                return Err(Error::Storage("no block lacks its body".into()));
            };
            let (mut positions, mut logs) = (Vec::new(), Vec::new());
            for rows in &rows {
                start -= 1;
                if start == 0 || tables.canonical.get(txn, &start.to_be_bytes())? != Some(rows.hash.as_slice()) {
                    return Err(Error::Storage(format!("block {} is not the next block to write", rows.hash)));
                }
                tables.bodies.put(txn, rows.hash.as_slice(), &rows.body)?;
                tables.receipts.put(txn, rows.hash.as_slice(), &rows.receipts)?;
                let places = rows.transactions.iter().enumerate();
                positions.extend(places.map(|(index, hash)| (*hash, packed((start, index as u32)))));
                logs.extend(rows.folds.iter().map(|fold| (*fold, start)));
            }
            // write rows in the order of their keys, so that each page of the index is changed once
            positions.sort_unstable();
            for (hash, place) in &positions {
                tx_index::put(tables.positions, txn, hash.first_chunk::<KEY>().expect("a hash is longer"), place)?;
            }
            log_index::write(tables, txn, &logs)?;
            preimage_runs::add(tables.preimage_runs, txn, rows.iter().flat_map(|rows| &rows.addresses))?;
            set_start(tables, txn, start)
        })
    }
}

/// Store the number of the lowest block with a body. While a block lacks its body, the database has a separate layout
/// version, because older programs would treat the block as unknown.
fn set_start(tables: &Tables, txn: &mut RwTxn<'_>, start: u64) -> Result<()> {
    if start > 1 {
        tables.meta.put(txn, meta::LAYOUT, meta::LAYOUT_WITHOUT_BODIES)?;
        tables.meta.put(txn, meta::HISTORY, &start.to_be_bytes())
    } else {
        tables.meta.put(txn, meta::LAYOUT, meta::LAYOUT_VERSION)?;
        tables.meta.delete(txn, meta::HISTORY).map(drop)
    }
}

/// The rows of one block.
struct Rows {
    hash: B256,
    body: Vec<u8>,
    receipts: Vec<u8>,
    transactions: Vec<B256>,
    addresses: Vec<(B256, Vec<u8>)>,
    folds: Vec<u64>,
}

impl Rows {
    fn of(block: &ReceivedBlock<'_>) -> Result<Self> {
        let mut body = Vec::new();
        append_body_prefix(block.body.known()?, &mut body);
        body.extend_from_slice(&block.body.encode());
        Ok(Rows {
            hash: block.hash,
            body,
            receipts: receipts::store(block.receipts),
            transactions: block.body.hashes(),
            addresses: addresses_in(&block.body)?,
            folds: folds(block.receipts),
        })
    }
}

/// Return addresses by hash for a block that is not executed: senders, recipients and contracts created by
/// transactions. Execution would have stored these preimages.
pub fn addresses_in(body: &BodyData) -> Result<Vec<(B256, Vec<u8>)>> {
    use alloy_consensus::Transaction as _;
    let mut found = Vec::new();
    for (tx, known) in body.txs.iter().zip(body.known()?) {
        let other = tx.envelope.to().unwrap_or_else(|| known.sender.create(tx.envelope.nonce()));
        found.extend([known.sender, other].map(|address| (keccak256(address), address.to_vec())));
    }
    Ok(found)
}
