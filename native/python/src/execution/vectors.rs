//! Python bindings that run the public Ethereum tests.

use ophion_execution::vectors::{Verdict, state, transaction};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::values::errors::Answer;

#[pyfunction]
#[pyo3(signature = (text, /))]
fn state_test(py: Python<'_>, text: PyBackedBytes) -> Answer<Vec<Verdict>> {
    Ok(py.detach(|| state::run(&text))?)
}

#[pyfunction]
#[pyo3(signature = (text, /))]
fn transaction_test(py: Python<'_>, text: PyBackedBytes) -> Answer<Vec<Verdict>> {
    Ok(py.detach(|| transaction::run(&text))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(state_test, module)?)?;
    module.add_function(wrap_pyfunction!(transaction_test, module)?)
}
