//! Python binding of blocks whose headers are stored before their bodies and receipts.

use std::sync::Arc;

use ophion_primitives::errors::Result;
use ophion_storage::store::{Database, Named, ReceivedBlock, ReceivedHeader};
use pyo3::prelude::*;

use super::body::Body;
use super::state_download::Receipts;
use super::store::Store;
use crate::values::convert::{Hash, Raw, Wide};
use crate::values::errors::Answer;

/// Hash, number, RLP, total difficulty and blob gas price of a header.
type PyHeader = (Hash, u64, Raw, Wide, u128);

#[pyclass(frozen, module = "ophion._native")]
pub struct BlockHistory {
    /// The store and not its database, which must close with the store.
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BlockHistory>()
}
