//! Parts of a state, encoded as responses of the protocol snap/1.
//!
//! ```text
//! AccountRange   [id, [[hash, [nonce, balance, storage root, code hash]] ...], [proof node ...]]
//! StorageRanges  [id, [[[hash, value] ...] ...], [proof node ...]]
//! ByteCodes      [id, [code ...]]
//! TrieNodes      [id, [node ...]]
//! ```
//! A response ends at its byte limit or at its deadline, and then holds only the first items. A response is empty if
//! the state is not stored.

use std::time::Instant;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use alloy_rlp::{Encodable, Header};
use alloy_trie::Nibbles;
use ophion_primitives::deadline::is_over;
use ophion_primitives::errors::{Error, Result};

use crate::store::Snapshot;
use crate::trie::{Account, EMPTY_ROOT, FlatAccount, Slot, Trie, Value, node_at, proof};

/// Limits of one response.
#[derive(Clone, Copy)]
pub struct RangeLimits {
    /// Size of the entries in bytes at which a response ends. The last entry may exceed it.
    pub bytes: usize,
    pub deadline: Instant,
}

impl RangeLimits {
    fn are_reached(&self, bytes: usize) -> bool {
        bytes >= self.bytes || is_over(self.deadline)
    }
}

/// Paths of trie nodes: one path of a node of the state trie, or an account hash and paths in its storage trie.
pub type PathSet = Vec<Vec<u8>>;

/// Encode an AccountRange response: the accounts from `origin` up to the first account at or above `limit`, with proofs
/// of both ends.
pub fn account_range(
    snapshot: &Snapshot,
    id: u64,
    root: B256,
    origin: B256,
    limit: B256,
    limits: RangeLimits,
) -> Result<Vec<u8>> {
    let Some(trie) = snapshot.stored_state(root)? else { return Ok(response(id, &[&[], &[]])) };
    let nodes = snapshot.nodes();
    let (mut accounts, mut last) = (Vec::new(), None);
    trie.walk(&Nibbles::unpack(origin), &nodes, &mut |key, account| {
        let hash = B256::from_slice(&key.pack());
        let mut entry = Vec::with_capacity(128);
        hash.encode(&mut entry);
        put_slim(account, &mut entry);
        put_list(&entry, &mut accounts);
        last = Some(key);
        Ok(hash < limit && !limits.are_reached(accounts.len()))
    })?;
    let proof = boundary_proof(&trie, &Nibbles::unpack(origin), last.as_ref(), &nodes)?;
    Ok(response(id, &[&accounts, &proof]))
}

/// Encode a StorageRanges response. `origin` and `limit` apply to the first account. Proofs follow if the slots of the
/// last account are incomplete.
pub fn storage_ranges(
    snapshot: &Snapshot,
    id: u64,
    root: B256,
    accounts: &[B256],
    (origin, limit): (B256, B256),
    limits: RangeLimits,
) -> Result<Vec<u8>> {
    let Some(trie) = snapshot.stored_state(root)? else { return Ok(response(id, &[&[], &[]])) };
    let nodes = snapshot.nodes();
    let (mut slots, mut proof) = (Vec::new(), Vec::new());
    for (index, account) in accounts.iter().enumerate() {
        if limits.are_reached(slots.len()) {
            break;
        }
        let Some(account) = trie.get(&Nibbles::unpack(account), &nodes)? else { break };
        let (origin, limit) = if index == 0 { (origin, limit) } else { (B256::ZERO, MAX_KEY) };
        let origin_key = Nibbles::unpack(origin);
        let (mut entries, mut last, mut is_whole) = (Vec::new(), None, origin == B256::ZERO);
        account.storage.walk(&origin_key, &nodes, &mut |key, value: &Slot| {
            let hash = B256::from_slice(&key.pack());
            let is_over_limit = last.as_ref().is_some_and(|last: &Nibbles| B256::from_slice(&last.pack()) >= limit);
            if is_over_limit || (last.is_some() && limits.are_reached(slots.len() + entries.len())) {
                is_whole = false;
                return Ok(false);
            }
            let (mut entry, mut encoded) = (Vec::with_capacity(72), Vec::with_capacity(33));
            hash.encode(&mut entry);
            value.encode(&mut encoded);
            encoded.as_slice().encode(&mut entry);
            put_list(&entry, &mut entries);
            last = Some(key);
            Ok(true)
        })?;
        put_list(&entries, &mut slots);
        if !is_whole {
            proof = boundary_proof(&account.storage, &origin_key, last.as_ref(), &nodes)?;
            break;
        }
    }
    Ok(response(id, &[&slots, &proof]))
}

/// Encode a ByteCodes response: contract codes in the order of the requested hashes. Codes that are not stored are left
/// out.
pub fn byte_codes(snapshot: &Snapshot, id: u64, hashes: &[B256], limits: RangeLimits) -> Result<Vec<u8>> {
    let mut codes = Vec::new();
    for hash in hashes {
        if limits.are_reached(codes.len()) {
            break;
        }
        if *hash == KECCAK256_EMPTY {
            [].as_slice().encode(&mut codes);
        } else if let Some(code) = snapshot.stored_code(hash)? {
            code.encode(&mut codes);
        }
    }
    Ok(response(id, &[&codes]))
}

/// Encode a TrieNodes response: trie nodes in the order of the requested paths. A missing node is an empty string. The
/// response ends before a missing account.
pub fn trie_nodes(snapshot: &Snapshot, id: u64, root: B256, sets: &[PathSet], limits: RangeLimits) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    let Some(trie) = snapshot.stored_state(root)? else { return Ok(response(id, &[&found])) };
    let nodes = snapshot.nodes();
    'sets: for set in sets {
        let (storage, paths) = match set.as_slice() {
            [] => continue,
            [path] => (None, std::slice::from_ref(path)),
            [account, paths @ ..] => {
                let hash = B256::try_from(account.as_slice())
                    .map_err(|_| Error::Decode("trie nodes: an account hash has not 32 bytes".into()))?;
                match trie.get(&Nibbles::unpack(hash), &nodes)? {
                    Some(account) => (Some(account.storage), paths),
                    None => break,
                }
            }
        };
        for path in paths {
            if limits.are_reached(found.len()) {
                break 'sets;
            }
            let path = from_hex_prefix(path)?;
            let node = match &storage {
                Some(storage) => node_at(storage, &path, &nodes)?,
                None => node_at(&trie, &path, &nodes)?,
            };
            node.unwrap_or_default().as_slice().encode(&mut found);
        }
    }
    Ok(response(id, &[&found]))
}

/// Greatest key of a trie with hashed keys.
const MAX_KEY: B256 = B256::repeat_byte(0xff);

/// Return the nodes of the proofs of two keys, each node once. Each node is encoded as a list item.
fn boundary_proof<V: Value>(
    trie: &Trie<V>,
    first: &Nibbles,
    last: Option<&Nibbles>,
    nodes: &impl crate::trie::Source,
) -> Result<Vec<u8>> {
    let mut found = proof(trie, first, nodes)?;
    if let Some(last) = last {
        for node in proof(trie, last, nodes)? {
            if !found.contains(&node) {
                found.push(node);
            }
        }
    }
    let mut out = Vec::new();
    found.iter().for_each(|node| node.as_slice().encode(&mut out));
    Ok(out)
}

/// Append an account in slim format: an empty string replaces an empty storage root or an empty code hash.
fn put_slim(account: &Account, out: &mut Vec<u8>) {
    let FlatAccount { nonce, balance, code_hash, storage_root } = FlatAccount::from(account);
    let mut payload = Vec::with_capacity(80);
    nonce.encode(&mut payload);
    balance.encode(&mut payload);
    for (hash, empty) in [(storage_root, EMPTY_ROOT), (code_hash, KECCAK256_EMPTY)] {
        if hash == empty {
            [].as_slice().encode(&mut payload);
        } else {
            hash.encode(&mut payload);
        }
    }
    put_list(&payload, out);
}

fn put_list(payload: &[u8], out: &mut Vec<u8>) {
    Header { list: true, payload_length: payload.len() }.encode(out);
    out.extend_from_slice(payload);
}

fn response(id: u64, lists: &[&[u8]]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(32 + lists.iter().map(|list| list.len()).sum::<usize>());
    id.encode(&mut payload);
    lists.iter().for_each(|list| put_list(list, &mut payload));
    let mut out = Vec::with_capacity(payload.len() + 9);
    put_list(&payload, &mut out);
    out
}

/// Decode the hex-prefix encoding of a path. The leaf flag is ignored, as in geth.
fn from_hex_prefix(encoded: &[u8]) -> Result<Nibbles> {
    let wrong = || Error::Decode("trie nodes: a path is not in hex-prefix encoding".into());
    // an empty string also stands for the path of the root
    let Some((first, rest)) = encoded.split_first() else { return Ok(Nibbles::new()) };
    if first & 0xc0 != 0 || rest.len() > 32 {
        return Err(wrong());
    }
    let mut path = Nibbles::new();
    match (first & 0x10 != 0, rest.len()) {
        (true, 32) => return Err(wrong()),
        (true, _) => path.push(first & 0x0f),
        (false, _) if first & 0x0f != 0 => return Err(wrong()),
        (false, _) => {}
    }
    rest.iter().for_each(|byte| {
        path.push(byte >> 4);
        path.push(byte & 0x0f);
    });
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_their_hex_prefix_form() {
        let cases: [(&[u8], &[u8]); 5] =
            [(&[], &[]), (&[0x00], &[]), (&[0x1a], &[10]), (&[0x00, 0x12], &[1, 2]), (&[0x31, 0x23], &[1, 2, 3])];
        for (encoded, path) in cases {
            assert_eq!(from_hex_prefix(encoded).unwrap(), Nibbles::from_nibbles(path), "{encoded:?}");
        }
    }

    #[test]
    fn malformed_paths_are_rejected() {
        for encoded in [vec![0x40], vec![0x05], vec![0x80, 1], vec![0; 34], [vec![0x11], vec![0; 32]].concat()] {
            assert!(from_hex_prefix(&encoded).is_err(), "{encoded:?}");
        }
    }
}
