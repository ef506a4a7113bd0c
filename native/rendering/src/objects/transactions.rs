//! Transaction objects.

use alloy_consensus::Header;
use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::{B256, U256};
use ophion_primitives::json::{data, data_or_null, list, quantity, raw, wide};
use ophion_storage::chain::body::{Envelope, Known};

/// Position of a transaction in the chain: its block and its index.
#[derive(Clone, Copy)]
pub struct Place {
    pub block_hash: B256,
    pub number: u64,
    /// Index of the transaction in the block.
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

/// Write a mined or pending transaction.
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
    // a pending transaction has no base fee, so its effective price is its maximum price
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

/// Write the JSON keys of the signature. `v` of a legacy transaction includes the chain id (EIP-155); `v` of other
/// types is the parity.
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
