//! Small tries for tools and tests.

use alloy_primitives::{B256, Bytes, keccak256};
use alloy_trie::Nibbles;
use alloy_trie::root::ordered_trie_root_with_encoder;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::trie::{NoSource, Saver, Trie, Value};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::values::convert::{Hash, to_bytes};
use crate::values::errors::Answer;

/// A value that is hashed as it stands.
#[derive(Clone)]
struct Plain(Vec<u8>);

impl Value for Plain {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn restore(bytes: &[u8]) -> Result<Self> {
        Ok(Plain(bytes.to_vec()))
    }

    fn save(&self, _: &mut dyn Saver) -> Result<()> {
        Ok(())
    }
}

#[pyfunction]
#[pyo3(signature = (items, /))]
fn ordered_root<'py>(py: Python<'py>, items: Vec<PyBackedBytes>) -> Bound<'py, PyBytes> {
    let root = py.detach(|| ordered_trie_root_with_encoder(&items, |item, out| out.extend_from_slice(item)));
    to_bytes(py, root)
}

#[pyfunction]
#[pyo3(signature = (changes, secure, /))]
fn trie_root<'py>(
    py: Python<'py>,
    changes: Vec<(PyBackedBytes, Option<PyBackedBytes>)>,
    secure: bool,
) -> Answer<Bound<'py, PyBytes>> {
    let root = py.detach(|| -> Result<B256> {
        let mut trie: Trie<Plain> = Trie::default();
        for (key, value) in &changes {
            let key = if secure { keccak256(key).to_vec() } else { key.to_vec() };
            if key.len() > 32 {
                return Err(Error::Decode(format!("trie key: at most 32 bytes, got {}", key.len())));
            }
            let path = Nibbles::unpack(&key);
            match value {
                Some(value) if !value.is_empty() => trie.insert(path, Plain(value.to_vec()), &NoSource)?,
                _ => drop(trie.remove(&path, &NoSource)?),
            }
        }
        Ok(trie.hash())
    })?;
    Ok(to_bytes(py, root))
}

#[pyfunction]
#[pyo3(signature = (root, key, nodes, /))]
fn verify_proof<'py>(
    py: Python<'py>,
    root: Hash,
    key: &[u8],
    nodes: Vec<PyBackedBytes>,
) -> Answer<Option<Bound<'py, PyBytes>>> {
    let path = Nibbles::unpack(keccak256(key));
    let nodes: Vec<Bytes> = nodes.iter().map(|node| Bytes::copy_from_slice(node)).collect();
    let absent = alloy_trie::proof::verify_proof(root.0, path, None, &nodes);
    match absent {
        Ok(()) => Ok(None),
        Err(alloy_trie::proof::ProofVerificationError::ValueMismatch { got: Some(value), .. }) => {
            alloy_trie::proof::verify_proof(root.0, path, Some(value.to_vec()), &nodes)
                .map_err(|cause| Error::Decode(format!("proof: {cause}")))?;
            Ok(Some(to_bytes(py, value)))
        }
        Err(cause) => Err(Error::Decode(format!("proof: {cause}")).into()),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ordered_root, module)?)?;
    module.add_function(wrap_pyfunction!(trie_root, module)?)?;
    module.add_function(wrap_pyfunction!(verify_proof, module)?)
}
