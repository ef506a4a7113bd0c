//! Python bindings of light ethash.

use ophion_execution::ethash::light::{compute, search, seed};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::values::convert::{Hash, Wide, to_bytes};
use crate::values::errors::Answer;

#[pyfunction]
#[pyo3(signature = (epoch, /))]
fn ethash_seed<'py>(py: Python<'py>, epoch: u64) -> Answer<Bound<'py, PyBytes>> {
    Ok(to_bytes(py, seed(epoch)?))
}

#[pyfunction]
#[pyo3(signature = (seal_hash, nonce, number, /))]
fn ethash_compute<'py>(
    py: Python<'py>,
    seal_hash: Hash,
    nonce: u64,
    number: u64,
) -> Answer<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let work = py.detach(|| compute(&seal_hash.0, nonce, number))?;
    Ok((to_bytes(py, work.mix), to_bytes(py, work.result)))
}

#[pyfunction]
#[pyo3(signature = (seal_hash, number, difficulty, start_nonce, attempts, threads, /))]
fn ethash_search<'py>(
    py: Python<'py>,
    seal_hash: Hash,
    number: u64,
    difficulty: Wide,
    start_nonce: u64,
    attempts: u64,
    threads: usize,
) -> Answer<Option<(u64, Bound<'py, PyBytes>)>> {
    let found = py.detach(|| search(&seal_hash.0, number, difficulty.0, start_nonce, attempts, threads))?;
    Ok(found.map(|(nonce, mix)| (nonce, to_bytes(py, mix))))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ethash_seed, module)?)?;
    module.add_function(wrap_pyfunction!(ethash_compute, module)?)?;
    module.add_function(wrap_pyfunction!(ethash_search, module)?)
}
