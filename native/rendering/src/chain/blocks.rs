//! Stored blocks, transactions and receipts as JSON-RPC objects.

use alloy_consensus::Header;
use alloy_primitives::{B256, keccak256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::{self, BodyData, Known, Tx};
use ophion_storage::store::{BlockRecord, Snapshot, decode_header};

use crate::objects::{self, BlockParts, BlockReceipts, Place, ReceiptParts, Transactions};

/// A stored block with undecoded transactions. Most responses need no decoded transactions.
struct Stored<'t> {
    header: Header,
    header_length: usize,
    known: Vec<Known>,
    payload: &'t [u8],
}

fn stored<'t>(snapshot: &'t Snapshot, hash: &B256) -> Result<Option<Stored<'t>>> {
    let Some((_, _, rlp)) = snapshot.header(hash)? else { return Ok(None) };
    let body = snapshot.stored_body(hash)?;
    let (known, payload) = body.ok_or_else(|| Error::damaged(format!("block {hash} has no body")))?;
    Ok(Some(Stored { header: decode_header(rlp)?, header_length: rlp.len(), known, payload }))
}

/// Return one transaction of a stored block and the block's header. The other transactions are not decoded.
fn stored_transaction(snapshot: &Snapshot, block: &B256, index: usize) -> Result<Option<(Header, Known, Tx)>> {
    let Some((_, _, rlp)) = snapshot.header(block)? else { return Ok(None) };
    let Some((known, payload)) = snapshot.stored_transaction(block, index)? else { return Ok(None) };
    let Some(tx) = body::decode_transaction_at(payload, index)? else { return Ok(None) };
    Ok(Some((decode_header(rlp)?, known, tx)))
}

pub fn block_json(
    snapshot: &Snapshot,
    hash: &B256,
    full: bool,
    with_total_difficulty: bool,
) -> Result<Option<Vec<u8>>> {
    let Some(stored) = stored(snapshot, hash)? else { return Ok(None) };
    let (ommers, withdrawals) = body::decode_rest(stored.payload)?;
    let uncles: Vec<B256> = ommers.iter().map(keccak256).collect();
    let content = stored.header_length + stored.payload.len();
    let total = snapshot.header(hash)?.map(|(_, total, _)| total).filter(|_| with_total_difficulty);
    let parts = BlockParts {
        header: &stored.header,
        hash: *hash,
        size: (alloy_rlp::length_of_length(content) + content) as u64,
        total_difficulty: total,
        uncles: &uncles,
        withdrawals: withdrawals.as_deref(),
    };
    let mut out = Vec::new();
    if full {
        let body = body::decode_body(stored.payload)?;
        objects::write_block(&mut out, &parts, Transactions::Full { txs: &body.txs, known: &stored.known });
    } else {
        let hashes: Vec<B256> = stored.known.iter().map(|known| known.hash).collect();
        objects::write_block(&mut out, &parts, Transactions::Hashes(&hashes));
    }
    Ok(Some(out))
}

pub fn transaction_json(snapshot: &Snapshot, transaction: &B256) -> Result<Option<Vec<u8>>> {
    match whereabouts(snapshot, transaction)? {
        Some((block, index)) => transaction_at_json(snapshot, &block, index),
        None => Ok(None),
    }
}

pub fn transaction_at_json(snapshot: &Snapshot, block: &B256, index: usize) -> Result<Option<Vec<u8>>> {
    let Some((header, known, tx)) = stored_transaction(snapshot, block, index)? else { return Ok(None) };
    let mut out = Vec::new();
    objects::write_transaction(&mut out, &tx.envelope, &known, Some(&Place::new(*block, &header, index)));
    Ok(Some(out))
}

/// Return the receipt of a transaction as JSON. Fails if the stored receipt exceeds `max_bytes`.
pub fn receipt_json(
    snapshot: &Snapshot,
    transaction: &B256,
    with_revert_reason: bool,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>> {
    let Some((block, index)) = whereabouts(snapshot, transaction)? else { return Ok(None) };
    let receipt = receipt_of(snapshot, &block, index, with_revert_reason, max_bytes)?;
    receipt.ok_or_else(|| incomplete(&block)).map(Some)
}

pub fn receipt_at_json(
    snapshot: &Snapshot,
    block: &B256,
    index: usize,
    with_revert_reason: bool,
) -> Result<Option<Vec<u8>>> {
    receipt_of(snapshot, block, index, with_revert_reason, usize::MAX)
}

fn receipt_of(
    snapshot: &Snapshot,
    block: &B256,
    index: usize,
    with_revert_reason: bool,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>> {
    let Some(found) = snapshot.receipt(block, index, max_bytes)? else { return Ok(None) };
    let stored = stored_transaction(snapshot, block, index)?;
    let (header, known, tx) = stored.ok_or_else(|| incomplete(block))?;
    let parts = ReceiptParts {
        tx: &tx.envelope,
        known: &known,
        receipt: &found.receipt,
        gas_before: found.gas_before,
        logs_before: found.logs_before,
        blob_price: snapshot.blob_price(block)?,
    };
    let mut out = Vec::new();
    objects::write_receipt(&mut out, &parts, &Place::new(*block, &header, index), with_revert_reason);
    Ok(Some(out))
}

/// Return the receipt of a transaction in a block that is not written yet, as JSON; None if the index is out of range.
pub fn new_receipt_json(block: &BlockRecord, index: usize, with_revert_reason: bool) -> Result<Option<Vec<u8>>> {
    let receipts = &block.effects.receipts;
    let known = block.body.known()?;
    let (Some(tx), Some(known), Some(receipt)) = (block.body.txs.get(index), known.get(index), receipts.get(index))
    else {
        return Ok(None);
    };
    let header = decode_header(&block.header)?;
    let earlier = &receipts[..index];
    let parts = ReceiptParts {
        tx: &tx.envelope,
        known,
        receipt,
        gas_before: earlier.last().map_or(0, |before| before.cumulative_gas),
        logs_before: earlier.iter().map(|before| before.logs.len() as u64).sum(),
        blob_price: Some(block.effects.blob_price).filter(|price| *price > 0),
    };
    let mut out = Vec::new();
    objects::write_receipt(&mut out, &parts, &Place::new(block.hash, &header, index), with_revert_reason);
    Ok(Some(out))
}

pub fn block_receipts_json(snapshot: &Snapshot, block: &B256, with_revert_reason: bool) -> Result<Option<Vec<u8>>> {
    let Some(stored) = stored(snapshot, block)? else { return Ok(None) };
    let receipts = snapshot.receipts(block)?.ok_or_else(|| Error::damaged(format!("block {block} has no receipts")))?;
    let BodyData { txs, .. } = body::decode_body(stored.payload)?;
    let mut out = Vec::new();
    let blob_price = snapshot.blob_price(block)?;
    let all = BlockReceipts {
        header: &stored.header,
        hash: *block,
        txs: &txs,
        known: &stored.known,
        receipts: &receipts,
        blob_price,
    };
    all.write(&mut out, with_revert_reason);
    Ok(Some(out))
}

fn incomplete(block: &B256) -> Error {
    Error::damaged(format!("block {block} is incomplete"))
}

/// Return block hash and index of a canonical transaction.
fn whereabouts(snapshot: &Snapshot, transaction: &B256) -> Result<Option<(B256, usize)>> {
    let Some((number, index)) = snapshot.position(transaction)? else { return Ok(None) };
    Ok(snapshot.canonical_hash(number)?.map(|block| (block, index as usize)))
}
