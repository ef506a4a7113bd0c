//! Python bindings of states and receipts that other nodes send.

use std::sync::{Arc, Mutex};

use alloy_primitives::{B256, KECCAK256_EMPTY};
use ophion_storage::chain::receipts::{self, ReceiptData};
use ophion_storage::chain::received_receipts::decode_receipts;
use ophion_storage::store::{self, Database, Named, following};
use ophion_storage::trie::{Difference, EMPTY_ROOT, FlatAccount, encoded_path};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::store::Store;
use crate::values::convert::{Hash, to_bytes};
use crate::values::errors::Answer;

type PyHash<'py> = Bound<'py, PyBytes>;

fn plain(hashes: Vec<Hash>) -> Vec<B256> {
    hashes.into_iter().map(|hash| hash.0).collect()
}

/// Receipts of one block that another node has sent.
#[pyclass(frozen, module = "ophion._native")]
pub struct Receipts {
    pub all: Vec<ReceiptData>,
}

#[pymethods]
impl Receipts {
    fn __len__(&self) -> usize {
        self.all.len()
    }

    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> PyHash<'py> {
        let root = py.detach(|| receipts::root(&self.all));
        to_bytes(py, root)
    }
}

#[pyfunction]
#[pyo3(signature = (rlp, has_blooms, max_blocks, /))]
fn split_receipts(py: Python<'_>, rlp: PyBackedBytes, has_blooms: bool, max_blocks: usize) -> Answer<Vec<Receipts>> {
    let found = py.detach(|| decode_receipts(&rlp, has_blooms, max_blocks))?;
    Ok(found.into_iter().map(|all| Receipts { all }).collect())
}

#[pyclass(frozen, module = "ophion._native")]
pub struct AccountBatch {
    batch: store::AccountBatch,
}

#[pymethods]
impl AccountBatch {
    fn __len__(&self) -> usize {
        self.batch.accounts.len()
    }

    /// The key from which to request the next accounts; None if the state has no further accounts.
    #[getter]
    fn next<'py>(&self, py: Python<'py>) -> Option<PyHash<'py>> {
        let last = self.batch.accounts.last().filter(|_| self.batch.has_more)?.0;
        Some(to_bytes(py, following(last)))
    }

    #[getter]
    fn storages<'py>(&self, py: Python<'py>) -> Vec<(PyHash<'py>, PyHash<'py>)> {
        let found = self.batch.accounts.iter().filter(|(_, account)| account.storage_root != EMPTY_ROOT);
        found.map(|(key, account)| (to_bytes(py, key), to_bytes(py, account.storage_root))).collect()
    }

    #[getter]
    fn codes<'py>(&self, py: Python<'py>) -> Vec<PyHash<'py>> {
        let mut found: Vec<B256> = self.batch.accounts.iter().map(|(_, account)| account.code_hash).collect();
        found.retain(|hash| *hash != KECCAK256_EMPTY);
        found.sort();
        found.dedup();
        found.iter().map(|hash| to_bytes(py, hash)).collect()
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct StateDifference {
    search: Mutex<Difference>,
}

#[pymethods]
impl StateDifference {
    #[new]
    #[pyo3(signature = (root, /))]
    fn new(root: Hash) -> Self {
        StateDifference { search: Mutex::new(Difference::to(root.0)) }
    }

    #[getter]
    fn is_complete(&self) -> bool {
        self.search.lock().expect("no panic while locked").is_complete()
    }

    #[getter]
    fn changes(&self) -> usize {
        let search = self.search.lock().expect("no panic while locked");
        search.changed.len() + search.removed.len()
    }

    #[pyo3(signature = (max, /))]
    fn next_paths<'py>(&self, py: Python<'py>, max: usize) -> Vec<Bound<'py, PyBytes>> {
        let paths = self.search.lock().expect("no panic while locked").next_paths(max);
        paths.iter().map(|path| to_bytes(py, encoded_path(path))).collect()
    }

    fn take<'py>(&self, py: Python<'py>) -> Answer<(AccountBatch, Vec<PyHash<'py>>)> {
        let mut search = self.search.lock().expect("no panic while locked");
        let changed = std::mem::take(&mut search.changed);
        let removed = std::mem::take(&mut search.removed);
        drop(search);
        let account = |(key, rlp): (B256, Vec<u8>)| Ok((key, store::account_of(&rlp)?));
        let accounts: Vec<(B256, FlatAccount)> =
            changed.into_iter().map(account).collect::<ophion_primitives::errors::Result<_>>()?;
        let batch = AccountBatch { batch: store::AccountBatch { accounts, has_more: false } };
        Ok((batch, removed.iter().map(|key| to_bytes(py, key)).collect()))
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct StateDownload {
    inner: Arc<Database>,
}

#[pymethods]
impl StateDownload {
    #[new]
    #[pyo3(signature = (store, /))]
    fn new(store: &Bound<'_, Store>) -> Answer<Self> {
        Ok(StateDownload { inner: store.get().inner()? })
    }

    #[staticmethod]
    #[pyo3(signature = (response, root, origin, /))]
    fn verify_accounts(
        py: Python<'_>,
        response: PyBackedBytes,
        root: Hash,
        origin: Hash,
    ) -> Answer<Option<AccountBatch>> {
        let found = py.detach(|| store::AccountBatch::verified(&response, root.0, origin.0))?;
        Ok(found.map(|batch| AccountBatch { batch }))
    }

    #[pyo3(signature = (response, roots, origin, /))]
    fn put_storages(
        &self,
        py: Python<'_>,
        response: PyBackedBytes,
        roots: Vec<Hash>,
        origin: Hash,
    ) -> Answer<Option<usize>> {
        let roots = plain(roots);
        Ok(py.detach(|| self.inner.put_storages(&response, &roots, origin.0))?)
    }

    #[pyo3(signature = (roots, /))]
    fn missing_storages<'py>(&self, py: Python<'py>, roots: Vec<Hash>) -> Answer<Vec<(PyHash<'py>, PyHash<'py>)>> {
        let roots = plain(roots);
        let found = py.detach(|| self.inner.missing_storages(&roots))?;
        Ok(found.into_iter().map(|(root, next)| (to_bytes(py, root), to_bytes(py, next))).collect())
    }

    #[pyo3(signature = (hashes, /))]
    fn missing_codes<'py>(&self, py: Python<'py>, hashes: Vec<Hash>) -> Answer<Vec<PyHash<'py>>> {
        let hashes = plain(hashes);
        let found = py.detach(|| self.inner.missing_codes(&hashes))?;
        Ok(found.into_iter().map(|hash| to_bytes(py, hash)).collect())
    }

    #[pyo3(signature = (response, hashes, /))]
    fn put_codes(&self, py: Python<'_>, response: PyBackedBytes, hashes: Vec<Hash>) -> Answer<usize> {
        let hashes = plain(hashes);
        Ok(py.detach(|| self.inner.put_codes(&response, &hashes))?)
    }

    #[pyo3(signature = (batch, removed, named, /))]
    fn put_accounts(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, AccountBatch>,
        removed: Vec<Hash>,
        named: Vec<Named>,
    ) -> Answer<()> {
        let (accounts, removed) = (&batch.get().batch.accounts, plain(removed));
        Ok(py.detach(|| self.inner.put_accounts(accounts, &removed, &named))?)
    }

    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> Answer<PyHash<'py>> {
        Ok(to_bytes(py, py.detach(|| self.inner.downloaded_root())?))
    }

    #[pyo3(signature = (difference, response, /))]
    fn receive_nodes(
        &self,
        py: Python<'_>,
        difference: &Bound<'_, StateDifference>,
        response: PyBackedBytes,
    ) -> Answer<usize> {
        let difference = difference.get();
        Ok(py.detach(|| {
            self.inner.receive_nodes(&mut difference.search.lock().expect("no panic while locked"), &response)
        })?)
    }

    #[pyo3(signature = (root, hash, number, named, /))]
    fn finish(&self, py: Python<'_>, root: Hash, hash: Hash, number: u64, named: Vec<Named>) -> Answer<()> {
        Ok(py.detach(|| self.inner.finish_state(root.0, hash.0, number, &named))?)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Receipts>()?;
    module.add_class::<AccountBatch>()?;
    module.add_class::<StateDifference>()?;
    module.add_class::<StateDownload>()?;
    module.add_function(wrap_pyfunction!(split_receipts, module)?)
}
