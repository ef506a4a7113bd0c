//! The marker: the public transaction that refers to a private transaction.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, TxKind, U256, keccak256};
use alloy_rlp::{Encodable, Header};
use ophion_primitives::errors::{Error, Result};
use ophion_primitives::keys;
use ophion_storage::chain::sender_cache;
use ophion_storage::store::{Marker, Snapshot};

use crate::flexible_groups;

/// Sign a marker: a legacy transaction without a chain id. The data of the marker is the payload key, followed by the
/// handover key if there is one.
pub fn signed_marker(
    secret: &[u8],
    nonce: u64,
    gas_price: u128,
    gas_limit: u64,
    precompile: &Address,
    data: &[u8],
) -> Result<Vec<u8>> {
    let key = keys::secret_key(secret)?;
    let mut payload = Vec::with_capacity(160);
    nonce.encode(&mut payload);
    gas_price.encode(&mut payload);
    gas_limit.encode(&mut payload);
    precompile.encode(&mut payload);
    payload.push(0x80);
    data.encode(&mut payload);
    let signature = keys::sign(&key, keccak256(listed(&payload)).0);
    (27 + u64::from(signature[64])).encode(&mut payload);
    U256::from_be_slice(&signature[..32]).encode(&mut payload);
    U256::from_be_slice(&signature[32..64]).encode(&mut payload);
    let raw = listed(&payload);
    // cache the known sender, so that no later code recovers it from the signature
    sender_cache::sender_of(keccak256(&raw), || Ok(Address::from_raw_public_key(&keys::public_key(&key))))?;
    Ok(raw)
}

fn listed(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 4);
    Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend_from_slice(payload);
    out
}

/// Read the data of a flexible group's marker: the payload key, and the handover key if members are added. None for
/// data of another length.
fn flexible_keys(data: &[u8]) -> Option<(B256, Option<B256>)> {
    match data.len() {
        32 => Some((B256::from_slice(data), None)),
        64 => Some((B256::from_slice(&data[..32]), Some(B256::from_slice(&data[32..])))),
        _ => None,
    }
}

/// Return the markers of a block: transactions to the privacy precompile whose data is a payload key. If flexible
/// groups are enabled, their markers are included.
pub fn markers_in(
    snapshot: &Snapshot,
    block: &B256,
    number: u64,
    precompile: &Address,
    is_flexible: bool,
) -> Result<Vec<Marker>> {
    let missing = || Error::Storage(format!("block {block} is not in the database"));
    let body = snapshot.body(block)?.ok_or_else(missing)?;
    let hashes = body.hashes();
    let mut found = Vec::new();
    for (index, tx) in body.txs.iter().enumerate() {
        let TxKind::Call(to) = tx.envelope.kind() else { continue };
        let payload_key = if to == *precompile {
            B256::try_from(&tx.envelope.input()[..]).ok()
        } else if is_flexible && to == flexible_groups::PRECOMPILE {
            flexible_keys(tx.envelope.input()).map(|(key, _)| key)
        } else {
            None
        };
        if let Some(payload_key) = payload_key {
            let (index, hash) = (index as u32, hashes[index]);
            found.push(Marker { payload_key, number, index, block: *block, hash });
        }
    }
    Ok(found)
}

/// Return payload key and handover key of each marker in a block that adds members to a flexible group.
pub fn hand_overs_in(snapshot: &Snapshot, block: &B256) -> Result<Vec<(B256, B256)>> {
    let missing = || Error::Storage(format!("block {block} is not in the database"));
    let body = snapshot.body(block)?.ok_or_else(missing)?;
    let calls = body.txs.iter().filter(|tx| tx.envelope.kind() == TxKind::Call(flexible_groups::PRECOMPILE));
    let keys = calls.filter_map(|tx| flexible_keys(tx.envelope.input()));
    Ok(keys.filter_map(|(key, handed)| Some((key, handed?))).collect())
}
