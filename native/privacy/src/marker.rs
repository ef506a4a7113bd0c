//! The marker: what stands for a private transaction on the public chain.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, TxKind, U256, keccak256};
use alloy_rlp::{Encodable, Header};
use ophion_primitives::errors::{Error, Result};
use ophion_primitives::keys;
use ophion_storage::store::{Marker, Snapshot};

/// A legacy transaction without a chain id, whose data is the key of the payload.
pub fn signed_marker(
    secret: &[u8],
    nonce: u64,
    gas_price: u128,
    gas_limit: u64,
    precompile: &Address,
    payload_key: &B256,
) -> Result<Vec<u8>> {
    let key = keys::secret_key(secret)?;
    let mut payload = Vec::with_capacity(160);
    nonce.encode(&mut payload);
    gas_price.encode(&mut payload);
    gas_limit.encode(&mut payload);
    precompile.encode(&mut payload);
    payload.push(0x80);
    payload_key.encode(&mut payload);
    let signature = keys::sign(&key, keccak256(listed(&payload)).0);
    (27 + u64::from(signature[64])).encode(&mut payload);
    U256::from_be_slice(&signature[..32]).encode(&mut payload);
    U256::from_be_slice(&signature[32..64]).encode(&mut payload);
    Ok(listed(&payload))
}

fn listed(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 4);
    Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend_from_slice(payload);
    out
}

/// The markers of a block: transactions sent directly to the precompiled contract, with a key as their data.
pub fn markers_in(snapshot: &Snapshot, block: &B256, number: u64, precompile: &Address) -> Result<Vec<Marker>> {
    let missing = || Error::Storage(format!("block {block} is not in the database"));
    let body = snapshot.body(block)?.ok_or_else(missing)?;
    let hashes = body.hashes();
    let mut found = Vec::new();
    for (index, tx) in body.txs.iter().enumerate() {
        let TxKind::Call(to) = tx.envelope.kind() else { continue };
        if to != *precompile {
            continue;
        }
        if let Ok(payload_key) = B256::try_from(&tx.envelope.input()[..]) {
            let (index, hash) = (index as u32, hashes[index]);
            found.push(Marker { payload_key, number, index, block: *block, hash });
        }
    }
    Ok(found)
}
