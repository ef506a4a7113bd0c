//! Receipt and log objects.

use alloy_consensus::Header;
use alloy_consensus::transaction::Transaction as _;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::{B256, Log, TxKind, U256};
use ophion_primitives::json::{data, data_or_null, list, quantity, raw, wide};
use ophion_storage::chain::body::{Envelope, Known, Tx};
use ophion_storage::chain::receipts::{Outcome, ReceiptData, StoredLog};

use super::transactions::Place;

/// A receipt with its transaction, and the gas and log counts of the receipts before it.
#[derive(Clone, Copy)]
pub struct ReceiptParts<'a> {
    pub tx: &'a Envelope,
    pub known: &'a Known,
    pub receipt: &'a ReceiptData,
    /// Cumulative gas of the previous receipt in the block.
    pub gas_before: u64,
    /// Number of logs in the block before this receipt.
    pub logs_before: u64,
    /// Blob gas price of the block, from Cancun on.
    pub blob_price: Option<u128>,
}

/// Write a receipt. It contains the revert reason if the caller requests the reason and the node knows it.
pub fn write_receipt(out: &mut Vec<u8>, parts: &ReceiptParts<'_>, place: &Place, with_revert_reason: bool) {
    let ReceiptParts { tx, known, receipt, .. } = *parts;
    out.reserve(1400 + receipt.logs.len() * 700);
    data(out, r#"{"blockHash":"#, place.block_hash);
    quantity(out, r#","blockNumber":"#, place.number);
    let created = matches!(tx.kind(), TxKind::Create).then(|| known.sender.create(tx.nonce()));
    data_or_null(out, r#","contractAddress":"#, created);
    quantity(out, r#","cumulativeGasUsed":"#, receipt.cumulative_gas);
    wide(out, r#","effectiveGasPrice":"#, U256::from(tx.effective_gas_price(place.base_fee)));
    data(out, r#","from":"#, known.sender);
    quantity(out, r#","gasUsed":"#, receipt.cumulative_gas.saturating_sub(parts.gas_before));
    if let Some(hashes) = tx.blob_versioned_hashes() {
        quantity(out, r#","blobGasUsed":"#, hashes.len() as u64 * DATA_GAS_PER_BLOB);
        wide(out, r#","blobGasPrice":"#, U256::from(parts.blob_price.unwrap_or_default()));
    }
    list(out, r#","logs":"#, (parts.logs_before..).zip(&receipt.logs), |out, (log_index, log)| {
        write_receipt_log(out, log, log_index, &known.hash, place);
    });
    data(out, r#","logsBloom":"#, receipt.bloom());
    match receipt.outcome {
        Outcome::Succeeded => raw(out, r#","status":"0x1""#),
        Outcome::Failed => raw(out, r#","status":"0x0""#),
        Outcome::Root(root) => data(out, r#","root":"#, root),
    }
    data_or_null(out, r#","to":"#, tx.to());
    data(out, r#","transactionHash":"#, known.hash);
    quantity(out, r#","transactionIndex":"#, place.index);
    quantity(out, r#","type":"#, tx.tx_type() as u64);
    if with_revert_reason && !receipt.revert_data.is_empty() {
        data(out, r#","revertReason":"#, &receipt.revert_data);
    }
    out.push(b'}');
}

/// All receipts of a block, to be written as a JSON list.
pub struct BlockReceipts<'a> {
    pub header: &'a Header,
    pub hash: B256,
    pub txs: &'a [Tx],
    pub known: &'a [Known],
    pub receipts: &'a [ReceiptData],
    pub blob_price: Option<u128>,
}

impl BlockReceipts<'_> {
    pub fn write(&self, out: &mut Vec<u8>, with_revert_reason: bool) {
        let (mut gas_before, mut logs_before) = (0, 0);
        let rows = self.txs.iter().zip(self.known).zip(self.receipts).enumerate();
        list(out, "", rows, |out, (index, ((tx, known), receipt))| {
            let blob_price = self.blob_price;
            let parts = ReceiptParts { tx: &tx.envelope, known, receipt, gas_before, logs_before, blob_price };
            write_receipt(out, &parts, &Place::new(self.hash, self.header, index), with_revert_reason);
            gas_before = receipt.cumulative_gas;
            logs_before += receipt.logs.len() as u64;
        });
    }
}

/// Write a log inside a receipt, with the JSON keys of `write_log` in another order.
fn write_receipt_log(out: &mut Vec<u8>, log: &Log, log_index: u64, transaction: &B256, place: &Place) {
    data(out, r#"{"address":"#, log.address);
    list(out, r#","topics":"#, log.data.topics(), |out, topic| data(out, "", topic));
    data(out, r#","data":"#, &log.data.data);
    quantity(out, r#","blockNumber":"#, place.number);
    data(out, r#","transactionHash":"#, transaction);
    quantity(out, r#","transactionIndex":"#, place.index);
    data(out, r#","blockHash":"#, place.block_hash);
    quantity(out, r#","blockTimestamp":"#, place.timestamp);
    quantity(out, r#","logIndex":"#, log_index);
    raw(out, r#","removed":false}"#);
}

/// Where a log is: its block, its transaction, and its index in the block. `removed` means that the block is no longer
/// canonical.
#[derive(Clone, Copy)]
pub struct LogPlace<'a> {
    pub block: &'a Place,
    pub transaction: &'a B256,
    pub index: u64,
    pub removed: bool,
}

/// Write a log for filters and subscriptions.
pub fn write_log(out: &mut Vec<u8>, log: &Log, place: LogPlace<'_>) {
    let topics = log.data.topics().iter().map(B256::as_slice);
    write_log_parts(out, log.address.as_slice(), topics, &log.data.data, place);
}

/// Write a log of a stored record, with the text that `write_log` writes.
pub fn write_stored_log(out: &mut Vec<u8>, log: &StoredLog<'_>, place: LogPlace<'_>) {
    write_log_parts(out, log.address, log.topics.chunks_exact(B256::len_bytes()), log.data, place);
}

fn write_log_parts<'t>(
    out: &mut Vec<u8>,
    address: &[u8],
    topics: impl Iterator<Item = &'t [u8]>,
    bytes: &[u8],
    place: LogPlace<'_>,
) {
    out.reserve(512 + 4 * 70 + 2 * bytes.len());
    quantity(out, r#"{"logIndex":"#, place.index);
    raw(out, if place.removed { r#","removed":true"# } else { r#","removed":false"# });
    quantity(out, r#","blockNumber":"#, place.block.number);
    data(out, r#","blockHash":"#, place.block.block_hash);
    quantity(out, r#","blockTimestamp":"#, place.block.timestamp);
    data(out, r#","transactionHash":"#, place.transaction);
    quantity(out, r#","transactionIndex":"#, place.block.index);
    data(out, r#","address":"#, address);
    data(out, r#","data":"#, bytes);
    list(out, r#","topics":"#, topics, |out, topic| data(out, "", topic));
    out.push(b'}');
}
