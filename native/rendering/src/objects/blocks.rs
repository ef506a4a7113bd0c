//! Block and uncle objects.

use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{B256, U256};
use ophion_primitives::json::{data, list, quantity, wide};
use ophion_storage::chain::body::{Known, Tx};

use super::transactions::{Place, write_transaction};

/// How a block object shows its transactions.
pub enum Transactions<'a> {
    Hashes(&'a [B256]),
    Full { txs: &'a [Tx], known: &'a [Known] },
}

/// The values of a block object except transactions. An uncle has neither uncles nor transactions.
pub struct BlockParts<'a> {
    pub header: &'a Header,
    pub hash: B256,
    /// Length of the block's RLP in bytes.
    pub size: u64,
    /// Total difficulty; None on chains with a merge.
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

/// Write the start of the block object and the JSON keys of the header.
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
