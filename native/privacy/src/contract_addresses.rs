//! Addresses of contracts that private transactions create.

use alloy_primitives::{Address, B256, keccak256};
use alloy_rlp::{Encodable, Header};

/// Return the address of a contract that a private transaction creates. Unlike in the public state, the address depends
/// on the privacy group.
pub fn contract_address(sender: &Address, nonce: u64, group: &B256) -> Address {
    let mut payload = Vec::with_capacity(64);
    sender.encode(&mut payload);
    nonce.encode(&mut payload);
    group.encode(&mut payload);
    let mut out = Vec::with_capacity(66);
    Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend_from_slice(&payload);
    Address::from_slice(&keccak256(out)[12..])
}
