//! Ids of groups, computed from their members by the rules that all enclaves share (privacy.md 4.1-4.3).

use std::collections::HashSet;

use alloy_primitives::keccak256;
use alloy_rlp::{Encodable, Header};

use crate::sealed_payload::Key;

/// Return the id of a group: the Keccak hash of an RLP list with the distinct, sorted members and the optional seed.
pub fn group_id<M: AsRef<[u8]>>(members: &[M], seed: Option<&[u8]>) -> Key {
    let mut seen: HashSet<&[u8]> = HashSet::with_capacity(members.len());
    let mut items: Vec<&[u8]> = members.iter().map(AsRef::as_ref).filter(|member| seen.insert(*member)).collect();
    // the sort is stable, so members with equal hashes keep their order
    items.sort_by_key(|member| java_hash(member));
    items.extend(seed);
    let payload_length = items.iter().map(|item| item.length()).sum();
    let mut out = Vec::with_capacity(9 + payload_length);
    Header { list: true, payload_length }.encode(&mut out);
    for item in items {
        item.encode(&mut out);
    }
    keccak256(out).0
}

/// Compute Java's `Arrays.hashCode` of a byte array.
fn java_hash(key: &[u8]) -> i32 {
    key.iter().fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8)))
}
