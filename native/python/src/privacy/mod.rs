//! Python bindings of private transactions.

pub mod batch;
pub mod ledger;
pub mod receipt;
pub mod transaction;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    transaction::register(module)?;
    batch::register(module)?;
    receipt::register(module)?;
    ledger::register(module)
}
