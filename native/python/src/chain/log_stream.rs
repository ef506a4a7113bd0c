//! Python binding of log searches that produce their result in pieces.

use std::sync::{Mutex, PoisonError};

use ophion_primitives::deadline::bounded;
use ophion_rendering::chain::log_stream;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::store::{PyTopics, Store, log_filter};
use crate::values::convert::{Addr, to_bytes};
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct LogStream {
    search: Mutex<Option<log_stream::LogStream>>,
}

#[pymethods]
impl LogStream {
    #[new]
    #[pyo3(signature = (store, first, last, addresses, topics, max_results, deadline_s, /))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        store: &Bound<'_, Store>,
        first: u64,
        last: u64,
        addresses: Vec<Addr>,
        topics: PyTopics,
        max_results: usize,
        deadline_s: f64,
    ) -> Answer<Self> {
        let (database, filter) = (store.get().inner()?, log_filter(addresses, topics));
        let search = log_stream::LogStream::new(database, first, last, filter, max_results, bounded(deadline_s));
        Ok(LogStream { search: Mutex::new(Some(search)) })
    }

    fn next<'py>(&self, py: Python<'py>) -> Answer<Option<Bound<'py, PyBytes>>> {
        let piece = py.detach(|| {
            let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
            search.as_mut().map_or(Ok(None), log_stream::LogStream::next_piece)
        })?;
        Ok(piece.map(|piece| to_bytes(py, piece)))
    }

    fn close(&self) {
        // if the lock is taken, `next_piece` still runs, and the search stops after the current piece
        if let Ok(mut search) = self.search.try_lock() {
            *search = None;
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LogStream>()
}
