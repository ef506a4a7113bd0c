//! Python bindings of Keccak-256 and secp256k1.

use alloy_primitives::{Address, B256, keccak256};
use ophion_primitives::keys::{self, Signed};
use ophion_primitives::signers::{TASK, recover_signers};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rayon::prelude::*;

use crate::values::convert::to_bytes;
use crate::values::errors::Answer;

/// Minimum input size for releasing the GIL. Hashing this many bytes takes more than 30 microseconds.
const LONG: usize = 16 << 10;

#[pyfunction(name = "keccak256")]
#[pyo3(signature = (data, /))]
fn py_keccak256<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    let hash = if data.len() < LONG { keccak256(data) } else { py.detach(|| keccak256(data)) };
    to_bytes(py, hash)
}

#[pyfunction]
#[pyo3(signature = (secret, /))]
fn public_key<'py>(py: Python<'py>, secret: &[u8]) -> Answer<Bound<'py, PyBytes>> {
    Ok(to_bytes(py, keys::public_key(&keys::secret_key(secret)?)))
}

#[pyfunction]
#[pyo3(signature = (public_key, /))]
fn address_of<'py>(py: Python<'py>, public_key: &[u8]) -> Answer<Bound<'py, PyBytes>> {
    let key: [u8; 64] = keys::fixed("public key", public_key)?;
    Ok(to_bytes(py, Address::from_raw_public_key(&key)))
}

#[pyfunction]
#[pyo3(signature = (secret, digest, /))]
fn sign<'py>(py: Python<'py>, secret: &[u8], digest: &[u8]) -> Answer<Bound<'py, PyBytes>> {
    let key = keys::secret_key(secret)?;
    let digest: [u8; 32] = keys::fixed("digest", digest)?;
    Ok(to_bytes(py, py.detach(|| keys::sign(&key, digest))))
}

#[pyfunction]
#[pyo3(signature = (digest, signature, /))]
fn recover<'py>(py: Python<'py>, digest: &[u8], signature: &[u8]) -> Answer<Bound<'py, PyBytes>> {
    let digest = B256::from(keys::fixed::<32>("digest", digest)?);
    let (r_s, parity) = keys::split_signature(signature)?;
    let key = py.detach(|| keys::recover_key(&digest, &r_s, parity))?;
    Ok(to_bytes(py, key))
}

#[pyfunction]
#[pyo3(signature = (digest, signature, /))]
fn recover_address<'py>(py: Python<'py>, digest: &[u8], signature: &[u8]) -> Answer<Bound<'py, PyBytes>> {
    let digest = B256::from(keys::fixed::<32>("digest", digest)?);
    let (r_s, parity) = keys::split_signature(signature)?;
    let address = py.detach(|| keys::recover_signer(&digest, &r_s, parity))?;
    Ok(to_bytes(py, address))
}

/// Recover the signers of many signatures on all cores. None stands for an invalid signature.
#[pyfunction]
#[pyo3(signature = (pairs, /))]
fn recover_addresses<'py>(
    py: Python<'py>,
    pairs: Vec<(PyBackedBytes, PyBackedBytes)>,
) -> Vec<Option<Bound<'py, PyBytes>>> {
    let signed = |(digest, signature): &(PyBackedBytes, PyBackedBytes)| -> Option<Signed> {
        let digest = B256::from(keys::fixed::<32>("digest", digest).ok()?);
        let (r_s, parity) = keys::split_signature(signature).ok()?;
        Some(Signed { digest, r_s, parity })
    };
    let some = |pairs: &[(PyBackedBytes, PyBackedBytes)]| -> Vec<Option<Address>> {
        let all: Vec<Option<Signed>> = pairs.iter().map(signed).collect();
        let mut found = recover_signers(&all.iter().flatten().copied().collect::<Vec<_>>()).into_iter();
        all.iter().map(|one| one.and_then(|_| found.next()?.ok())).collect()
    };
    let found: Vec<Option<Address>> = py.detach(|| pairs.par_chunks(TASK).flat_map_iter(some).collect());
    found.into_iter().map(|address| address.map(|address| to_bytes(py, address))).collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(py_keccak256, module)?)?;
    module.add_function(wrap_pyfunction!(public_key, module)?)?;
    module.add_function(wrap_pyfunction!(address_of, module)?)?;
    module.add_function(wrap_pyfunction!(sign, module)?)?;
    module.add_function(wrap_pyfunction!(recover, module)?)?;
    module.add_function(wrap_pyfunction!(recover_address, module)?)?;
    module.add_function(wrap_pyfunction!(recover_addresses, module)?)
}
