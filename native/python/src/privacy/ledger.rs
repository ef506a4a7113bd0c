//! Python bindings to read private states and the results of private transactions.

use alloy_primitives::B256;
use ophion_primitives::errors::Result;
use ophion_privacy::flexible_groups::membership;
use ophion_privacy::marker_transaction::{hand_overs_in, markers_in};
use ophion_privacy::transaction_execution::private_nonce;
use ophion_storage::state::StateData;
use ophion_storage::store::{Marker, Snapshot};
use ophion_storage::trie::{Account, EMPTY_ROOT, Trie};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::chain::state::State;
use crate::chain::store::Store;
use crate::privacy::receipt::PrivateReceiptRecord;
use crate::values::convert::{Addr, Hash, to_bytes};
use crate::values::errors::Answer;

/// A marker on the chain: payload key, block number, transaction index, block hash, marker hash.
type PyMarker<'py> = (Bound<'py, PyBytes>, u64, u32, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn marker_row<'py>(py: Python<'py>, marker: &Marker) -> PyMarker<'py> {
    let Marker { payload_key, number, index, block, hash } = marker;
    (to_bytes(py, payload_key), *number, *index, to_bytes(py, block), to_bytes(py, hash))
}

/// Read access to private states and to the results of private transactions.
#[pyclass(frozen, module = "ophion._native")]
pub struct PrivateLedger {
    store: Py<Store>,
}

impl PrivateLedger {
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&Snapshot) -> Result<T> + Send) -> Answer<T> {
        self.store.get().read(py, read)
    }
}

fn at(snapshot: &Snapshot, group: &B256, number: u64) -> Result<(B256, Trie<Account>)> {
    let found = snapshot.group_state(group, number)?;
    Ok(found.map_or((EMPTY_ROOT, Trie::default()), |state| (state.root, state.trie)))
}

#[pymethods]
impl PrivateLedger {
    #[new]
    #[pyo3(signature = (store, /))]
    fn new(store: Py<Store>) -> Self {
        PrivateLedger { store }
    }

    fn followed<'py>(&self, py: Python<'py>) -> Answer<Option<(Bound<'py, PyBytes>, u64)>> {
        let found = self.read(py, Snapshot::followed)?;
        Ok(found.map(|(hash, number)| (to_bytes(py, hash), number)))
    }

    /// Return the markers of a block, including markers for other participants. With `is_flexible`, markers of flexible
    /// groups are included.
    #[pyo3(signature = (block, number, precompile, is_flexible=false, /))]
    fn markers_in<'py>(
        &self,
        py: Python<'py>,
        block: Hash,
        number: u64,
        precompile: Addr,
        is_flexible: bool,
    ) -> Answer<Vec<PyMarker<'py>>> {
        let found = self.read(py, |snapshot| markers_in(snapshot, &block.0, number, &precompile.0, is_flexible))?;
        Ok(found.iter().map(|marker| marker_row(py, marker)).collect())
    }

    /// Return payload key and handover key of each marker in a block that adds members to a flexible group.
    #[pyo3(signature = (block, /))]
    #[allow(clippy::type_complexity)]
    fn hand_overs_in<'py>(
        &self,
        py: Python<'py>,
        block: Hash,
    ) -> Answer<Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let found = self.read(py, |snapshot| hand_overs_in(snapshot, &block.0))?;
        Ok(found.iter().map(|(key, handed)| (to_bytes(py, key), to_bytes(py, handed))).collect())
    }

    /// Return the member list of a flexible group after a canonical block: whether the group is unlocked, the version
    /// of the list, and the keys. Returns None when the group does not exist.
    #[pyo3(signature = (group, number, /))]
    #[allow(clippy::type_complexity)]
    fn membership<'py>(
        &self,
        py: Python<'py>,
        group: Hash,
        number: u64,
    ) -> Answer<Option<(bool, Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)>> {
        let inner = self.store.get().inner()?;
        let (root, trie) = at(&inner.snapshot()?, &group.0, number)?;
        let view = StateData::private(StateData::empty(Some(inner)), root, trie).open()?;
        let found = membership(&view)?;
        Ok(found.map(|found| {
            let keys = found.keys.iter().map(|key| to_bytes(py, key)).collect();
            (found.is_open, to_bytes(py, found.version), keys)
        }))
    }

    #[pyo3(signature = (payload_key, /))]
    fn markers_of<'py>(&self, py: Python<'py>, payload_key: Hash) -> Answer<Vec<PyMarker<'py>>> {
        let found = self.read(py, |snapshot| snapshot.markers_of(&payload_key.0))?;
        Ok(found.iter().map(|marker| marker_row(py, marker)).collect())
    }

    /// Return up to `most` payload keys whose markers have no result yet, from key `start` on, and the key from which
    /// to continue; None at the end.
    #[pyo3(signature = (start, most, /))]
    #[allow(clippy::type_complexity)]
    fn unread<'py>(
        &self,
        py: Python<'py>,
        start: PyBackedBytes,
        most: usize,
    ) -> Answer<(Vec<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>)> {
        let (found, next) = self.read(py, |snapshot| snapshot.unread(&start, most))?;
        Ok((found.iter().map(|key| to_bytes(py, key)).collect(), next.map(|key| to_bytes(py, key))))
    }

    #[pyo3(signature = (keys, /))]
    fn note_late(&self, py: Python<'_>, keys: Vec<Hash>) -> Answer<()> {
        let inner = self.store.get().inner()?;
        let keys: Vec<B256> = keys.into_iter().map(|key| key.0).collect();
        Ok(py.detach(|| inner.note_late(&keys))?)
    }

    #[pyo3(signature = (start, most, /))]
    fn late<'py>(&self, py: Python<'py>, start: PyBackedBytes, most: usize) -> Answer<Vec<Bound<'py, PyBytes>>> {
        let found = self.read(py, |snapshot| snapshot.late(&start, most))?;
        Ok(found.iter().map(|key| to_bytes(py, key)).collect())
    }

    #[pyo3(signature = (block, marker, /))]
    fn receipt(&self, py: Python<'_>, block: Hash, marker: Hash) -> Answer<Option<PrivateReceiptRecord>> {
        let found = self.read(py, |snapshot| snapshot.private_receipt(&block.0, &marker.0))?;
        Ok(found.map(|receipt| PrivateReceiptRecord { receipt }))
    }

    /// Return the state root of a privacy group after the canonical block with this number.
    #[pyo3(signature = (group, number, /))]
    fn root<'py>(&self, py: Python<'py>, group: Hash, number: u64) -> Answer<Bound<'py, PyBytes>> {
        let (root, _) = self.read(py, |snapshot| at(snapshot, &group.0, number))?;
        Ok(to_bytes(py, root))
    }

    /// Return the nonce of an account in a privacy group after the canonical block with this number.
    #[pyo3(signature = (group, account, number, /))]
    fn nonce(&self, group: Hash, account: Addr, number: u64) -> Answer<u64> {
        let inner = self.store.get().inner()?;
        let (root, trie) = at(&inner.snapshot()?, &group.0, number)?;
        let view = StateData::private(StateData::empty(Some(inner)), root, trie).open()?;
        Ok(private_nonce(&view, &account.0)?)
    }

    /// Return the state of a group after a canonical block, on top of a public state.
    #[pyo3(signature = (group, number, public, /))]
    fn state(&self, py: Python<'_>, group: Hash, number: u64, public: &Bound<'_, State>) -> Answer<State> {
        let (root, trie) = self.read(py, |snapshot| at(snapshot, &group.0, number))?;
        Ok(State { data: StateData::private(public.get().data.clone(), root, trie) })
    }

    /// Return marker and state root of each transaction of a group in a block.
    #[pyo3(signature = (group, number, block, /))]
    fn roots<'py>(
        &self,
        py: Python<'py>,
        group: Hash,
        number: u64,
        block: Hash,
    ) -> Answer<Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let found = self.read(py, |snapshot| snapshot.group_roots(&group.0, number, &block.0))?;
        Ok(found.iter().map(|(marker, root)| (to_bytes(py, marker), to_bytes(py, root))).collect())
    }

    /// Return up to `most` canonical blocks, from number `first` on, in which a group has transactions.
    #[pyo3(signature = (group, first, most, /))]
    fn blocks<'py>(
        &self,
        py: Python<'py>,
        group: Hash,
        first: u64,
        most: usize,
    ) -> Answer<Vec<(u64, Bound<'py, PyBytes>)>> {
        let found = self.read(py, |snapshot| snapshot.group_blocks(&group.0, first, most))?;
        Ok(found.iter().map(|(number, block)| (*number, to_bytes(py, block))).collect())
    }

    #[pyo3(signature = (start, most, /))]
    fn groups<'py>(&self, py: Python<'py>, start: Hash, most: usize) -> Answer<Vec<Bound<'py, PyBytes>>> {
        let found = self.read(py, |snapshot| snapshot.groups_from(&start.0, most))?;
        Ok(found.iter().map(|group| to_bytes(py, group)).collect())
    }

    /// Delete all private states and results.
    fn clear(&self, py: Python<'_>) -> Answer<()> {
        let inner = self.store.get().inner()?;
        Ok(py.detach(|| inner.clear_private())?)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PrivateLedger>()
}
