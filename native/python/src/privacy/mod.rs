//! Private transactions as Python sees them.

pub mod ledger;
pub mod transaction;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    transaction::register(module)?;
    ledger::register(module)
}
