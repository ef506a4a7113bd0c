//! Python bindings of in-memory tries, for tools and tests.

use alloy_primitives::Bytes;
use alloy_trie::root::ordered_trie_root_with_encoder;
use ophion_storage::trie::{plain_root, proven};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::values::convert::{Hash, to_bytes};
use crate::values::errors::Answer;

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
    Ok(to_bytes(py, py.detach(|| plain_root(&changes, secure))?))
}

#[pyfunction]
#[pyo3(signature = (root, key, nodes, /))]
fn verify_proof<'py>(
    py: Python<'py>,
    root: Hash,
    key: &[u8],
    nodes: Vec<PyBackedBytes>,
) -> Answer<Option<Bound<'py, PyBytes>>> {
    let nodes: Vec<Bytes> = nodes.iter().map(|node| Bytes::copy_from_slice(node)).collect();
    Ok(proven(root.0, key, &nodes)?.map(|value| to_bytes(py, value)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ordered_root, module)?)?;
    module.add_function(wrap_pyfunction!(trie_root, module)?)?;
    module.add_function(wrap_pyfunction!(verify_proof, module)?)
}
