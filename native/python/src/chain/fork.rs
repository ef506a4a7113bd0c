//! Python binding of the state of a forked chain.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use ophion_primitives::errors::Error;
use ophion_storage::store::forked_state::{self, Fork, Missing};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::store::Store;
use crate::values::convert::{Addr, Hash, Raw, Wide, to_bytes};
use crate::values::errors::Answer;

/// A key that the local copy of the forked state lacks: address, slot and block number. Each is None if it is not part
/// of the key.
type PyMissing<'py> = (Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>, Option<u64>);
/// Nonce, balance and code hash of an account.
type PyInfo = (u64, Wide, Hash);

fn to_missing<'py>(py: Python<'py>, key: &Missing) -> PyMissing<'py> {
    match key {
        Missing::Account(address) => (Some(to_bytes(py, address)), None, None),
        Missing::Slot(address, slot) => {
            (Some(to_bytes(py, address)), Some(to_bytes(py, slot.to_be_bytes::<32>())), None)
        }
        Missing::BlockHash(number) => (None, None, Some(*number)),
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct ForkState {
    inner: Arc<Fork>,
}

#[pymethods]
impl ForkState {
    /// Create the state of a forked chain. `fetch(address, slot, number)` adds the value of a missing key and returns
    /// true. If `fetch` returns false, the read fails with `NotFetched`.
    #[new]
    #[pyo3(signature = (number, fetch, /))]
    fn new(number: u64, fetch: Py<PyAny>) -> Self {
        let fetch = move |key: Missing| {
            Python::attach(|py| {
                let asked = fetch.call1(py, to_missing(py, &key)).and_then(|done| done.extract::<bool>(py));
                match asked {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(Error::NotFetched),
                    Err(cause) => Err(Error::Source(cause.value(py).to_string())),
                }
            })
        };
        ForkState { inner: Arc::new(Fork::new(number, Box::new(fetch))) }
    }

    /// Let the database read keys from this forked state if the local state lacks them.
    #[pyo3(signature = (store, /))]
    fn attach(&self, store: &Bound<'_, Store>) -> Answer<()> {
        store.get().inner()?.set_fork(Some(self.inner.clone()));
        Ok(())
    }

    #[pyo3(signature = (address, account, /))]
    fn add_account(&self, address: Addr, account: Option<PyInfo>) {
        let account = account.map(|(nonce, balance, code_hash)| (nonce, balance.0, code_hash.0));
        self.inner.add_account(address.0, account);
    }

    #[pyo3(signature = (address, slot, value, /))]
    fn add_slot(&self, address: Addr, slot: Hash, value: Hash) {
        self.inner.add_slot(address.0, slot.0.into(), value.0.into());
    }

    #[pyo3(signature = (code, /))]
    fn add_code<'py>(&self, py: Python<'py>, code: Raw) -> Bound<'py, PyBytes> {
        to_bytes(py, self.inner.add_code(code.0))
    }

    #[pyo3(signature = (number, hash, /))]
    fn add_block_hash(&self, number: u64, hash: Hash) {
        self.inner.add_block_hash(number, hash.0);
    }

    #[pyo3(signature = (address, slot=None, number=None, /))]
    fn knows(&self, address: Option<Addr>, slot: Option<Hash>, number: Option<u64>) -> bool {
        let address = address.map_or(Address::ZERO, |address| address.0);
        self.inner.knows(&match (slot, number) {
            (_, Some(number)) => Missing::BlockHash(number),
            (Some(slot), _) => Missing::Slot(address, U256::from_be_bytes(slot.0.0)),
            (None, None) => Missing::Account(address),
        })
    }

    #[pyo3(signature = (hash, /))]
    fn knows_code(&self, hash: Hash) -> bool {
        self.inner.knows_code(&hash.0)
    }

    /// Call `work`, and return the keys that the local copy lacked. During the call, missing keys have the value zero.
    /// The result and the errors of `work` are ignored.
    #[pyo3(signature = (work, /))]
    fn collect<'py>(&self, py: Python<'py>, work: &Bound<'py, PyAny>) -> Vec<PyMissing<'py>> {
        let (_, keys) = forked_state::collecting(|| work.call0());
        keys.iter().map(|key| to_missing(py, key)).collect()
    }
}

/// Slot that marks an account's storage as local: the other slots of this account are not read from the forked chain.
pub const MARKER: B256 = B256::new(forked_state::LOCAL_STORAGE.to_be_bytes::<32>());

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("FORK_MARKER_SLOT", to_bytes(module.py(), MARKER))?;
    module.add_class::<ForkState>()
}
