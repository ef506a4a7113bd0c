//! In-memory tries of bytes, and proof verification, for tools and tests.

use alloy_primitives::{B256, Bytes, keccak256};
use alloy_trie::Nibbles;
use alloy_trie::proof::{ProofVerificationError, verify_proof};
use ophion_primitives::errors::{Error, Result};

use super::node::{Trie, Value};
use super::node_storage::{NoSource, Saver};

/// A trie value whose RLP and stored form are the same bytes.
#[derive(Clone)]
pub(super) struct Plain(pub(super) Vec<u8>);

impl Value for Plain {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn stored_length(&self) -> usize {
        self.0.len()
    }

    fn restore(bytes: &[u8]) -> Result<Self> {
        Ok(Plain(bytes.to_vec()))
    }

    fn save(&self, _: Option<u64>, _: &mut dyn Saver) -> Result<()> {
        Ok(())
    }
}

/// Apply changes to an empty trie, in order, and return its root. A change without a value, or with an empty value,
/// removes the key. A secure trie hashes its keys.
pub fn plain_root<B: AsRef<[u8]>>(changes: &[(B, Option<B>)], is_secure: bool) -> Result<B256> {
    let mut trie: Trie<Plain> = Trie::default();
    for (key, value) in changes {
        let key = if is_secure { keccak256(key).to_vec() } else { key.as_ref().to_vec() };
        if key.len() > 32 {
            return Err(Error::Decode(format!("trie key: at most 32 bytes, got {}", key.len())));
        }
        let path = Nibbles::unpack(&key);
        match value.as_ref().map(AsRef::as_ref) {
            Some(value) if !value.is_empty() => trie.insert(path, Plain(value.to_vec()), &NoSource)?,
            _ => drop(trie.remove(&path, &NoSource)?),
        }
    }
    Ok(trie.hash())
}

/// Verify a Merkle proof of a key. Returns the value; None if the proof shows that the key is absent.
pub fn proven(root: B256, key: &[u8], nodes: &[Bytes]) -> Result<Option<Vec<u8>>> {
    let path = Nibbles::unpack(keccak256(key));
    let wrong = |cause: ProofVerificationError| Error::Decode(format!("proof: {cause}"));
    match verify_proof(root, path, None, nodes) {
        Ok(()) => Ok(None),
        Err(ProofVerificationError::ValueMismatch { got: Some(value), .. }) => {
            verify_proof(root, path, Some(value.to_vec()), nodes).map_err(wrong)?;
            Ok(Some(value.to_vec()))
        }
        Err(cause) => Err(wrong(cause)),
    }
}
