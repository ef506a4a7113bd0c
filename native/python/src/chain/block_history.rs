//! Python binding of blocks whose headers are stored before their bodies and receipts.

use std::sync::Arc;

use alloy_primitives::U256;
use ophion_primitives::errors::Result;
use ophion_storage::chain::bft_header::{self, Field};
use ophion_storage::store::{Database, Named, ReceivedBlock, ReceivedHeader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::body::Body;
use super::state_download::Receipts;
use super::store::Store;
use crate::values::convert::{Hash, Raw, Wide, to_bytes, to_int};
use crate::values::errors::Answer;

/// Hash, number, RLP, total difficulty and blob gas price of a header.
type PyHeader = (Hash, u64, Raw, Wide, u128);

#[pyclass(frozen, module = "ophion._native")]
pub struct BlockHistory {
    /// The store. The database itself is not held here, because it must close with the store.
    store: Py<Store>,
}

impl BlockHistory {
    fn inner(&self) -> Result<Arc<Database>> {
        self.store.get().inner()
    }
}

#[pymethods]
impl BlockHistory {
    #[new]
    #[pyo3(signature = (store, /))]
    fn new(store: Py<Store>) -> Self {
        BlockHistory { store }
    }

    #[getter]
    fn start(&self) -> Answer<Option<u64>> {
        Ok(self.inner()?.snapshot()?.history_start()?)
    }

    #[pyo3(signature = (headers, named, /))]
    fn put_headers(&self, py: Python<'_>, headers: Vec<PyHeader>, named: Vec<Named>) -> Answer<()> {
        let received = |(hash, number, header, total_difficulty, blob_price): PyHeader| ReceivedHeader {
            hash: hash.0,
            number,
            total_difficulty: total_difficulty.0,
            blob_price,
            header: header.0,
        };
        let headers: Vec<ReceivedHeader> = headers.into_iter().map(received).collect();
        let inner = self.inner()?;
        Ok(py.detach(|| inner.put_headers(&headers, &named))?)
    }

    #[pyo3(signature = (hash, header, /))]
    fn replace_header(&self, py: Python<'_>, hash: Hash, header: Raw) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.replace_header(hash.0, &header.0))?)
    }

    #[pyo3(signature = (head, /))]
    fn begin(&self, py: Python<'_>, head: u64) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.begin_history(head))?)
    }

    #[pyo3(signature = (blocks, /))]
    fn put(&self, py: Python<'_>, blocks: Vec<(Hash, Bound<'_, Body>, Bound<'_, Receipts>)>) -> Answer<()> {
        let received = |(hash, body, receipts): &(Hash, Bound<'_, Body>, Bound<'_, Receipts>)| {
            (hash.0, body.get().data.clone(), receipts.clone().unbind())
        };
        let all: Vec<_> = blocks.iter().map(received).collect();
        let parts = all.iter().map(|(hash, body, receipts)| ReceivedBlock {
            hash: *hash,
            body: body.clone(),
            receipts: &receipts.get().all,
        });
        let parts: Vec<ReceivedBlock<'_>> = parts.collect();
        let inner = self.inner()?;
        Ok(py.detach(|| inner.put_history(&parts))?)
    }
}

/// Return the block hash of an IBFT 2.0 or QBFT header; None if the slow path must decide.
#[pyfunction]
#[pyo3(signature = (header, is_qbft, /))]
fn bft_block_hash<'py>(py: Python<'py>, header: &[u8], is_qbft: bool) -> Option<Bound<'py, PyBytes>> {
    bft_header::bft_block_hash(header, is_qbft).map(|hash| to_bytes(py, hash))
}

/// Return the fields of a header; None if the slow path must decide.
#[pyfunction]
#[pyo3(signature = (header, /))]
fn header_fields<'py>(py: Python<'py>, header: &[u8]) -> Answer<Option<Bound<'py, PyTuple>>> {
    let Some(fields) = bft_header::header_fields(header) else { return Ok(None) };
    let value = |field: Field<'_>| -> Answer<Bound<'py, PyAny>> {
        match field {
            Field::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
            Field::Number(bytes) => to_int(py, &U256::from_be_slice(bytes)),
        }
    };
    let values = fields.into_iter().map(value).collect::<Answer<Vec<_>>>()?;
    Ok(Some(PyTuple::new(py, values)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bft_block_hash, module)?)?;
    module.add_function(wrap_pyfunction!(header_fields, module)?)?;
    module.add_class::<BlockHistory>()
}
