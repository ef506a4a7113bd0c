//! Blocks, transactions and receipts of the database as JSON-RPC objects.

use alloy_consensus::Header;
use alloy_primitives::{B256, keccak256};

use crate::body::{self, BodyData, Known};
use crate::errors::{Error, Result};
use crate::render::{self, BlockParts, BlockReceipts, Place, ReceiptParts, Transactions};
use crate::store::{Snapshot, decode_header, split_body};

/// A stored block before its transactions are decoded, which most answers never need.
struct Stored<'t> {
    header: Header,
    header_length: usize,
    known: Vec<Known>,
    payload: &'t [u8],
}

impl Snapshot {
    fn stored(&self, hash: &B256) -> Result<Option<Stored<'_>>> {
        let Some((_, _, rlp)) = self.header(hash)? else { return Ok(None) };
        let record = self.tables().bodies.get(self.txn(), hash.as_slice())?;
        let record = record.ok_or_else(|| Error::damaged(format!("block {hash} has no body")))?;
        let (known, payload) = split_body(record, hash)?;
        Ok(Some(Stored { header: decode_header(rlp)?, header_length: rlp.len(), known, payload }))
    }

    pub fn block_json(&self, hash: &B256, full: bool, with_total_difficulty: bool) -> Result<Option<Vec<u8>>> {
        let Some(stored) = self.stored(hash)? else { return Ok(None) };
        let (ommers, withdrawals) = body::decode_rest(stored.payload)?;
        let uncles: Vec<B256> = ommers.iter().map(keccak256).collect();
        let content = stored.header_length + stored.payload.len();
        let total = self.header(hash)?.map(|(_, total, _)| total).filter(|_| with_total_difficulty);
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
            render::write_block(&mut out, &parts, Transactions::Full { txs: &body.txs, known: &stored.known });
        } else {
            let hashes: Vec<B256> = stored.known.iter().map(|known| known.hash).collect();
            render::write_block(&mut out, &parts, Transactions::Hashes(&hashes));
        }
        Ok(Some(out))
    }

    pub fn transaction_json(&self, transaction: &B256) -> Result<Option<Vec<u8>>> {
        match self.whereabouts(transaction)? {
            Some((block, index)) => self.transaction_at_json(&block, index),
            None => Ok(None),
        }
    }

    pub fn transaction_at_json(&self, block: &B256, index: usize) -> Result<Option<Vec<u8>>> {
        let Some(stored) = self.stored(block)? else { return Ok(None) };
        let Some(tx) = body::decode_transaction_at(stored.payload, index)? else { return Ok(None) };
        let mut out = Vec::new();
        let place = Place::new(*block, &stored.header, index);
        render::write_transaction(&mut out, &tx.envelope, &stored.known[index], Some(&place));
        Ok(Some(out))
    }

    pub fn receipt_json(&self, transaction: &B256, with_revert_reason: bool) -> Result<Option<Vec<u8>>> {
        let Some((block, index)) = self.whereabouts(transaction)? else { return Ok(None) };
        let incomplete = || Error::damaged(format!("block {block} is incomplete"));
        let stored = self.stored(&block)?.ok_or_else(incomplete)?;
        let receipts = self.receipts(&block)?.ok_or_else(incomplete)?;
        let tx = body::decode_transaction_at(stored.payload, index)?.ok_or_else(incomplete)?;
        let before = &receipts[..index.min(receipts.len())];
        let parts = ReceiptParts {
            tx: &tx.envelope,
            known: &stored.known[index],
            receipt: receipts.get(index).ok_or_else(incomplete)?,
            gas_before: before.last().map_or(0, |receipt| receipt.cumulative_gas),
            logs_before: before.iter().map(|receipt| receipt.logs.len() as u64).sum(),
            blob_price: self.blob_price(&block)?,
        };
        let mut out = Vec::new();
        render::write_receipt(&mut out, &parts, &Place::new(block, &stored.header, index), with_revert_reason);
        Ok(Some(out))
    }

    pub fn block_receipts_json(&self, block: &B256, with_revert_reason: bool) -> Result<Option<Vec<u8>>> {
        let Some(stored) = self.stored(block)? else { return Ok(None) };
        let receipts = self.receipts(block)?.ok_or_else(|| Error::damaged(format!("block {block} has no receipts")))?;
        let BodyData { txs, .. } = body::decode_body(stored.payload)?;
        let mut out = Vec::new();
        let blob_price = self.blob_price(block)?;
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

    /// Block and index of a transaction on the canonical chain.
    fn whereabouts(&self, transaction: &B256) -> Result<Option<(B256, usize)>> {
        let Some((number, index)) = self.position(transaction)? else { return Ok(None) };
        Ok(self.canonical_hash(number)?.map(|block| (block, index as usize)))
    }
}
