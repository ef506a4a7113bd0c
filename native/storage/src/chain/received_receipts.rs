//! Receipts as other nodes send them.
//!
//! ```text
//! eth/66, eth/68   [[receipt ...] ...]     a receipt as in the receipts root; typed ones as byte strings
//! eth/69           [[[type, outcome, cumulative gas, logs] ...] ...]
//! ```

use alloy_consensus::{Eip658Value, ReceiptEnvelope, TxReceipt};
use alloy_eips::eip2718::Typed2718;
use alloy_primitives::{B256, Bytes, Log};
use alloy_rlp::Decodable;
use ophion_primitives::errors::{Error, Result};

use super::receipts::{Outcome, ReceiptData};
use crate::trie::{rlp_list, rlp_string};

/// Maximum number of receipts of one block.
const MAX_RECEIPTS: usize = 1 << 16;
/// Greatest known transaction type. A receipt of a higher type is rejected.
const MAX_TYPE: u8 = 4;

/// Decode the receipts of up to `max_blocks` blocks.
pub fn decode_receipts(encoded: &[u8], has_blooms: bool, max_blocks: usize) -> Result<Vec<Vec<ReceiptData>>> {
    let read = if has_blooms { with_bloom } else { without_bloom };
    let block = |encoded: &[u8]| rlp_list(encoded, MAX_RECEIPTS)?.into_iter().map(read).collect();
    rlp_list(encoded, max_blocks)?.into_iter().map(block).collect()
}

fn with_bloom(mut encoded: &[u8]) -> Result<ReceiptData> {
    let receipt = ReceiptEnvelope::decode(&mut encoded).map_err(|cause| Error::decode("receipt", cause))?;
    let outcome = match receipt.status_or_post_state() {
        Eip658Value::Eip658(true) => Outcome::Succeeded,
        Eip658Value::Eip658(false) => Outcome::Failed,
        Eip658Value::PostState(root) => Outcome::Root(root),
    };
    Ok(ReceiptData {
        tx_type: receipt.ty(),
        outcome,
        cumulative_gas: receipt.cumulative_gas_used(),
        logs: receipt.logs().to_vec(),
        revert_data: Bytes::new(),
    })
}

fn without_bloom(encoded: &[u8]) -> Result<ReceiptData> {
    let wrong = |what: &str| Error::Decode(format!("receipt: {what}"));
    let items = rlp_list(encoded, 4)?;
    let [kind, outcome, mut gas, mut logs] = items[..] else { return Err(wrong("not four items")) };
    let tx_type = match rlp_string(kind)? {
        [] => 0,
        [kind @ 1..=MAX_TYPE] => *kind,
        _ => return Err(wrong("an unknown type")),
    };
    let outcome = match rlp_string(outcome)? {
        [] => Outcome::Failed,
        [1] => Outcome::Succeeded,
        root => Outcome::Root(B256::try_from(root).map_err(|_| wrong("an unknown outcome"))?),
    };
    let cumulative_gas = u64::decode(&mut gas).map_err(|cause| Error::decode("receipt", cause))?;
    let logs = Vec::<Log>::decode(&mut logs).map_err(|cause| Error::decode("receipt", cause))?;
    Ok(ReceiptData { tx_type, outcome, cumulative_gas, logs, revert_data: Bytes::new() })
}
