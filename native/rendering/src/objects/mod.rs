//! Blocks, transactions, receipts and logs as the JSON text that JSON-RPC answers with.
//!
//! Written straight into the answer's buffer: a block of 4,000 transactions is 2.3 MB of text, and any value built
//! in between would cost more than the text itself. Members and their order follow json-rpc.md 4 and 7.2: a member
//! exists from the fork that defines it, and is missing before.

use alloy_consensus::Header;
use alloy_consensus::transaction::Transaction as _;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{B256, Log, TxKind, U256};
use ophion_primitives::json::{data, data_or_null, list, quantity, raw, wide};
use ophion_storage::chain::body::{Envelope, Known, Tx};
use ophion_storage::chain::receipts::{Outcome, ReceiptData};

/// Where a transaction stands.
#[derive(Clone, Copy)]
pub struct Place {
    pub block_hash: B256,
    pub number: u64,
    /// Position of the transaction in its block.
    pub index: u64,
    pub base_fee: Option<u64>,
    pub timestamp: u64,
}

impl Place {
    pub fn new(block_hash: B256, header: &Header, index: usize) -> Self {
        Place {
            block_hash,
            number: header.number,
            index: index as u64,
            base_fee: header.base_fee_per_gas,
            timestamp: header.timestamp,
        }
    }
}

// --- transactions -------------------------------------------------------------------------------

/// A transaction at its place, or pending.
pub fn write_transaction(out: &mut Vec<u8>, tx: &Envelope, known: &Known, at: Option<&Place>) {
    match at {
        Some(place) => {
            data(out, r#"{"blockHash":"#, place.block_hash);
            quantity(out, r#","blockNumber":"#, place.number);
            quantity(out, r#","blockTimestamp":"#, place.timestamp);
        }
        None => raw(out, r#"{"blockHash":null,"blockNumber":null,"blockTimestamp":null"#),
    }
    data(out, r#","from":"#, known.sender);
    quantity(out, r#","gas":"#, tx.gas_limit());
    // Without a base fee this is the most the sender would pay, which is what a pending one shows.
    let price = tx.effective_gas_price(at.and_then(|place| place.base_fee));
    wide(out, r#","gasPrice":"#, U256::from(price));
    if tx.is_dynamic_fee() {
        wide(out, r#","maxFeePerGas":"#, U256::from(tx.max_fee_per_gas()));
        wide(out, r#","maxPriorityFeePerGas":"#, U256::from(tx.max_priority_fee_per_gas().unwrap_or_default()));
    }
    if let Some(fee) = tx.max_fee_per_blob_gas() {
        wide(out, r#","maxFeePerBlobGas":"#, U256::from(fee));
    }
    data(out, r#","hash":"#, known.hash);
    data(out, r#","input":"#, tx.input());
    quantity(out, r#","nonce":"#, tx.nonce());
    data_or_null(out, r#","to":"#, tx.to());
    match at {
        Some(place) => quantity(out, r#","transactionIndex":"#, place.index),
        None => raw(out, r#","transactionIndex":null"#),
    }
    wide(out, r#","value":"#, tx.value());
    quantity(out, r#","type":"#, tx.tx_type() as u64);
    write_typed_members(out, tx);
    write_signature(out, tx);
    out.push(b'}');
}

fn write_typed_members(out: &mut Vec<u8>, tx: &Envelope) {
    if let Some(access_list) = tx.access_list() {
        list(out, r#","accessList":"#, access_list.iter(), |out, entry| {
            data(out, r#"{"address":"#, entry.address);
            list(out, r#","storageKeys":"#, &entry.storage_keys, |out, key| data(out, "", key));
            out.push(b'}');
        });
    }
    if let Some(chain_id) = tx.chain_id() {
        quantity(out, r#","chainId":"#, chain_id);
    }
    if let Some(hashes) = tx.blob_versioned_hashes() {
        list(out, r#","blobVersionedHashes":"#, hashes, |out, hash| data(out, "", hash));
    }
    if let Some(authorizations) = tx.authorization_list() {
        list(out, r#","authorizationList":"#, authorizations, |out, one| {
            wide(out, r#"{"chainId":"#, one.chain_id);
            data(out, r#","address":"#, one.address);
            quantity(out, r#","nonce":"#, one.nonce);
            quantity(out, r#","yParity":"#, u64::from(one.y_parity()));
            wide(out, r#","r":"#, one.r());
            wide(out, r#","s":"#, one.s());
            out.push(b'}');
        });
    }
}

/// `v` of a legacy transaction carries its chain id (EIP-155); of the others it repeats the parity.
fn write_signature(out: &mut Vec<u8>, tx: &Envelope) {
    let signature = tx.signature();
    let parity = u64::from(signature.v());
    match (tx.is_legacy(), tx.chain_id()) {
        (true, Some(chain_id)) => wide(out, r#","v":"#, U256::from(u128::from(chain_id) * 2 + 35 + u128::from(parity))),
        (true, None) => quantity(out, r#","v":"#, 27 + parity),
        (false, _) => quantity(out, r#","v":"#, parity),
    }
    wide(out, r#","r":"#, signature.r());
    wide(out, r#","s":"#, signature.s());
    if !tx.is_legacy() {
        quantity(out, r#","yParity":"#, parity);
    }
}

// --- blocks -------------------------------------------------------------------------------------

/// What a block object shows of its transactions.
pub enum Transactions<'a> {
    Hashes(&'a [B256]),
    Full { txs: &'a [Tx], known: &'a [Known] },
}

/// Everything of a block object besides the transactions. An uncle has neither uncles nor transactions.
pub struct BlockParts<'a> {
    pub header: &'a Header,
    pub hash: B256,
    /// Length of the whole block's RLP.
    pub size: u64,
    /// Left out on chains that have or expect a merge.
    pub total_difficulty: Option<U256>,
    pub uncles: &'a [B256],
    pub withdrawals: Option<&'a [Withdrawal]>,
}

pub fn write_block(out: &mut Vec<u8>, block: &BlockParts<'_>, transactions: Transactions<'_>) {
    out.reserve(2048);
    write_header(out, block);
    list(out, r#","uncles":"#, block.uncles, |out, hash| data(out, "", hash));
    match transactions {
        Transactions::Hashes(hashes) => {
            out.reserve(hashes.len() * 70);
            list(out, r#","transactions":"#, hashes, |out, hash| data(out, "", hash));
        }
        Transactions::Full { txs, known } => {
            out.reserve(txs.iter().map(|tx| 600 + 2 * tx.raw.len()).sum());
            list(out, r#","transactions":"#, txs.iter().zip(known).enumerate(), |out, (index, (tx, known))| {
                let place = Place::new(block.hash, block.header, index);
                write_transaction(out, &tx.envelope, known, Some(&place));
            });
        }
    }
    if let Some(withdrawals) = block.withdrawals {
        list(out, r#","withdrawals":"#, withdrawals, |out, one| {
            quantity(out, r#"{"index":"#, one.index);
            quantity(out, r#","validatorIndex":"#, one.validator_index);
            data(out, r#","address":"#, one.address);
            quantity(out, r#","amount":"#, one.amount);
            out.push(b'}');
        });
    }
    out.push(b'}');
}

/// The object's opening and the members that come from the header.
fn write_header(out: &mut Vec<u8>, block: &BlockParts<'_>) {
    let header = block.header;
    quantity(out, r#"{"number":"#, header.number);
    data(out, r#","hash":"#, block.hash);
    data(out, r#","mixHash":"#, header.mix_hash);
    data(out, r#","parentHash":"#, header.parent_hash);
    data(out, r#","nonce":"#, header.nonce);
    data(out, r#","sha3Uncles":"#, header.ommers_hash);
    data(out, r#","logsBloom":"#, header.logs_bloom);
    data(out, r#","transactionsRoot":"#, header.transactions_root);
    data(out, r#","stateRoot":"#, header.state_root);
    data(out, r#","receiptsRoot":"#, header.receipts_root);
    data(out, r#","miner":"#, header.beneficiary);
    wide(out, r#","difficulty":"#, header.difficulty);
    if let Some(total) = block.total_difficulty {
        wide(out, r#","totalDifficulty":"#, total);
    }
    data(out, r#","extraData":"#, &header.extra_data);
    quantity(out, r#","size":"#, block.size);
    quantity(out, r#","gasLimit":"#, header.gas_limit);
    quantity(out, r#","gasUsed":"#, header.gas_used);
    quantity(out, r#","timestamp":"#, header.timestamp);
    if let Some(fee) = header.base_fee_per_gas {
        quantity(out, r#","baseFeePerGas":"#, fee);
    }
    if let Some(root) = header.withdrawals_root {
        data(out, r#","withdrawalsRoot":"#, root);
    }
    if let Some(gas) = header.blob_gas_used {
        quantity(out, r#","blobGasUsed":"#, gas);
    }
    if let Some(gas) = header.excess_blob_gas {
        quantity(out, r#","excessBlobGas":"#, gas);
    }
    if let Some(root) = header.parent_beacon_block_root {
        data(out, r#","parentBeaconBlockRoot":"#, root);
    }
    if let Some(hash) = header.requests_hash {
        data(out, r#","requestsHash":"#, hash);
    }
}

// --- receipts and logs --------------------------------------------------------------------------

/// A receipt with what is not its own: the transaction, and the receipts before it in the block.
#[derive(Clone, Copy)]
pub struct ReceiptParts<'a> {
    pub tx: &'a Envelope,
    pub known: &'a Known,
    pub receipt: &'a ReceiptData,
    /// Cumulative gas of the receipt before this one.
    pub gas_before: u64,
    /// Number of logs in the block before this receipt's.
    pub logs_before: u64,
    /// Price of blob gas in this block, from Cancun on.
    pub blob_price: Option<u128>,
}

/// The receipt object; the revert reason is shown when asked for and known.
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

/// All receipts of a block, as a list.
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

/// A log inside a receipt: the same members as outside, in the order of receipts.
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

/// A log as filters and subscriptions show it; `log_index` counts within the block, `removed` says that the block
/// has left the canonical chain.
pub fn write_log(out: &mut Vec<u8>, log: &Log, log_index: u64, transaction: &B256, place: &Place, removed: bool) {
    out.reserve(512 + 70 * log.data.topics().len() + 2 * log.data.data.len());
    quantity(out, r#"{"logIndex":"#, log_index);
    raw(out, if removed { r#","removed":true"# } else { r#","removed":false"# });
    quantity(out, r#","blockNumber":"#, place.number);
    data(out, r#","blockHash":"#, place.block_hash);
    quantity(out, r#","blockTimestamp":"#, place.timestamp);
    data(out, r#","transactionHash":"#, transaction);
    quantity(out, r#","transactionIndex":"#, place.index);
    data(out, r#","address":"#, log.address);
    data(out, r#","data":"#, &log.data.data);
    list(out, r#","topics":"#, log.data.topics(), |out, topic| data(out, "", topic));
    out.push(b'}');
}

#[cfg(test)]
mod public_cases;
#[cfg(test)]
mod tests;
