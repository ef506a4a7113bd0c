//! Private states and results, written by the follower and read by everybody.

use std::sync::Mutex;

use alloy_primitives::{B256, Bytes};
use ophion_primitives::deadline;
use ophion_primitives::errors::{Error, Result};
use ophion_privacy::batch::{self, Payload, Rules};
use ophion_privacy::flexible::membership;
use ophion_privacy::marker::{hand_overs_in, markers_in};
use ophion_privacy::run::private_nonce;
use ophion_privacy::trace::trace_flat;
use ophion_privacy::transaction::decode;
use ophion_storage::state::StateData;
use ophion_storage::store::{Marker, PrivateReceipt, Snapshot};
use ophion_storage::trie::{EMPTY_ROOT, Trie};
use ophion_tracing::replay::block::Place;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::chain::state::State;
use crate::chain::store::Store;
use crate::execution::env::BlockEnv;
use crate::tracing::trace::TraceStream;
use crate::values::convert::{Addr, Hash, to_bytes};
use crate::values::errors::Answer;

/// Marker hash, index, payload key, group, key of the sender, RLP, members, version of a flexible group.
type PyPayload = (Hash, u32, Hash, Hash, PyBackedBytes, PyBackedBytes, Option<Vec<PyBackedBytes>>, Option<Hash>);
/// Payload key, number, index, block, marker hash.
type PyMarker<'py> = (Bound<'py, PyBytes>, u64, u32, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn payload_of(given: &PyPayload) -> Payload {
    let (marker, index, key, group, sender, rlp, members, version) = given;
    Payload {
        marker: marker.0,
        index: *index,
        key: key.0,
        group: group.0,
        sender: Bytes::copy_from_slice(sender),
        rlp: Bytes::copy_from_slice(rlp),
        members: members.as_ref().map(|all| all.iter().map(|key| Bytes::copy_from_slice(key)).collect()),
        version: version.as_ref().map(|version| version.0),
    }
}

fn marker_row<'py>(py: Python<'py>, marker: &Marker) -> PyMarker<'py> {
    let Marker { payload_key, number, index, block, hash } = marker;
    (to_bytes(py, payload_key), *number, *index, to_bytes(py, block), to_bytes(py, hash))
}

/// The private transactions of some blocks while they are run.
#[pyclass(frozen, module = "ophion._native")]
pub struct PrivateBatch {
    batch: Mutex<Option<batch::Batch>>,
}

impl PrivateBatch {
    fn with<T>(&self, work: impl FnOnce(&mut batch::Batch) -> Result<T>) -> Result<T> {
        let mut batch = self.batch.lock().expect("no panic while locked");
        work(batch.as_mut().ok_or_else(|| Error::Storage("the batch has been written".into()))?)
    }
}

#[pymethods]
impl PrivateBatch {
    #[new]
    #[pyo3(signature = (store, /))]
    fn new(store: &Bound<'_, Store>) -> Answer<Self> {
        let batch = batch::Batch::new(store.get().inner()?);
        Ok(PrivateBatch { batch: Mutex::new(Some(batch)) })
    }

    #[pyo3(signature = (group, before, /))]
    fn rewind(&self, group: Hash, before: u64) -> Answer<()> {
        Ok(self.with(|batch| batch.rewind(group.0, before))?)
    }

    #[pyo3(signature = (markers, /))]
    fn note_markers(&self, markers: Vec<(Hash, u64, u32, Hash, Hash)>) -> Answer<()> {
        let one = |(key, number, index, block, hash): (Hash, u64, u32, Hash, Hash)| Marker {
            payload_key: key.0,
            number,
            index,
            block: block.0,
            hash: hash.0,
        };
        let markers = markers.into_iter().map(one).collect();
        Ok(self.with(|batch| {
            batch.note_markers(markers);
            Ok(())
        })?)
    }

    /// `state` is the public one after the block.
    #[pyo3(signature = (state, env, block, payloads, /, *, chain_id, always_increments=false))]
    #[allow(clippy::too_many_arguments)]
    fn run_block(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        env: &Bound<'_, BlockEnv>,
        block: Hash,
        payloads: Vec<PyPayload>,
        chain_id: u64,
        always_increments: bool,
    ) -> Answer<()> {
        let (public, env) = (&state.get().data, &env.get().env);
        let payloads: Vec<Payload> = payloads.iter().map(payload_of).collect();
        let rules = Rules { chain_id, always_increments };
        Ok(py.detach(|| self.with(|batch| batch.run_block(public, env, block.0, rules, &payloads)))?)
    }

    /// Trace the last of these payloads, which are of one group and one block, in their order; nothing is kept.
    #[pyo3(signature = (state, env, block, payloads, deadline_s, /, *, chain_id, always_increments=false))]
    #[allow(clippy::too_many_arguments)]
    fn trace(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        env: &Bound<'_, BlockEnv>,
        block: Hash,
        payloads: Vec<PyPayload>,
        deadline_s: f64,
        chain_id: u64,
        always_increments: bool,
    ) -> Answer<TraceStream> {
        let (public, env) = (&state.get().data, &env.get().env);
        let payloads: Vec<Payload> = payloads.iter().map(payload_of).collect();
        let rules = Rules { chain_id, always_increments };
        let Some((last, before)) = payloads.split_last() else {
            return Err(Error::Storage("there is nothing to trace".into()).into());
        };
        let stream = py.detach(|| {
            self.with(|batch| {
                batch.run_block(public, env, block.0, rules, before)?;
                let decoded = decode(&last.rlp)?;
                let sender = decoded.sender.ok_or_else(|| Error::Decode("its signature gives no sender".into()))?;
                let state = batch.state(last.group, env.number, public)?;
                let index = last.index as usize;
                let place = Place { block_hash: block.0, block_number: env.number, hash: last.marker, index };
                let founds = last.version.is_some() && membership(&state.open()?)?.is_none();
                let deadline = deadline::after(deadline_s);
                trace_flat(state, env.clone(), decoded.tx.fields, sender, last.group, place, founds, deadline)
            })
        })?;
        Ok(TraceStream { stream })
    }

    /// Write everything; `followed` is hash and number of the block that has been reached.
    #[pyo3(signature = (store, followed, settled=Vec::new(), /))]
    fn commit(
        &self,
        py: Python<'_>,
        store: &Bound<'_, Store>,
        followed: Option<(Hash, u64)>,
        settled: Vec<Hash>,
    ) -> Answer<()> {
        let inner = store.get().inner()?;
        let mut batch = self.batch.lock().expect("no panic while locked");
        let Some(mut batch) = batch.take() else {
            return Err(Error::Storage("the batch has been written".into()).into());
        };
        batch.writes.followed = followed.map(|(hash, number)| (hash.0, number));
        batch.writes.settled = settled.into_iter().map(|key| key.0).collect();
        Ok(py.detach(|| inner.commit_private(&batch.writes))?)
    }
}

/// What became of a private transaction.
#[pyclass(frozen, module = "ophion._native")]
pub struct PrivateReceiptRecord {
    receipt: PrivateReceipt,
}

type PyLog<'py> = (Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);

#[pymethods]
impl PrivateReceiptRecord {
    /// 0 failed, 1 succeeded, 2 invalid.
    #[getter]
    fn status(&self) -> u8 {
        self.receipt.status as u8
    }

    #[getter]
    fn group<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.receipt.group)
    }

    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.receipt.root)
    }

    #[getter]
    fn payload_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.receipt.payload_key)
    }

    #[getter]
    fn index(&self) -> u32 {
        self.receipt.index
    }

    #[getter]
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.receipt.hash)
    }

    #[getter]
    fn sender<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.receipt.sender)
    }

    #[getter]
    fn to<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.receipt.to.map(|to| to_bytes(py, to))
    }

    #[getter]
    fn created<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.receipt.created.map(|created| to_bytes(py, created))
    }

    #[getter]
    fn private_from<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.receipt.private_from)
    }

    #[getter]
    fn private_for<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        self.receipt.private_for.as_ref().map(|keys| keys.iter().map(|key| to_bytes(py, key)).collect())
    }

    #[getter]
    fn output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.receipt.output)
    }

    #[getter]
    fn revert_data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.receipt.revert_data)
    }

    #[getter]
    fn reason(&self) -> &str {
        &self.receipt.reason
    }

    /// Address, topics and data of each.
    #[getter]
    fn logs<'py>(&self, py: Python<'py>) -> Vec<PyLog<'py>> {
        let one = |log: &alloy_primitives::Log| {
            let topics = log.data.topics().iter().map(|topic| to_bytes(py, topic)).collect();
            (to_bytes(py, log.address), topics, to_bytes(py, &log.data.data))
        };
        self.receipt.logs.iter().map(one).collect()
    }

    #[getter]
    fn logs_bloom<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bloom = alloy_primitives::Bloom::ZERO;
        self.receipt.logs.iter().for_each(|log| bloom.accrue_log(log));
        to_bytes(py, bloom)
    }
}

/// What can be read of private states.
#[pyclass(frozen, module = "ophion._native")]
pub struct PrivateLedger {
    store: Py<Store>,
}

impl PrivateLedger {
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&Snapshot) -> Result<T> + Send) -> Answer<T> {
        self.store.get().read(py, read)
    }
}

fn at(snapshot: &Snapshot, group: &B256, number: u64) -> Result<(B256, Trie<ophion_storage::trie::Account>)> {
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

    /// Markers of a block, whoever they are for; those of flexible groups too where they are wanted.
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

    /// Keys of payloads that add members to flexible groups in a block, and of what is handed over with them.
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

    /// Members of a flexible group after a canonical block: whether it is open, its version, their keys. None where there
    /// is no such group.
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

    /// Payload keys of markers without a result, from a key on; and the key to go on from.
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

    #[pyo3(signature = (most, /))]
    fn late<'py>(&self, py: Python<'py>, most: usize) -> Answer<Vec<Bound<'py, PyBytes>>> {
        let found = self.read(py, |snapshot| snapshot.late(most))?;
        Ok(found.iter().map(|key| to_bytes(py, key)).collect())
    }

    #[pyo3(signature = (block, marker, /))]
    fn receipt(&self, py: Python<'_>, block: Hash, marker: Hash) -> Answer<Option<PrivateReceiptRecord>> {
        let found = self.read(py, |snapshot| snapshot.private_receipt(&block.0, &marker.0))?;
        Ok(found.map(|receipt| PrivateReceiptRecord { receipt }))
    }

    /// Root of a group after the canonical block with this number.
    #[pyo3(signature = (group, number, /))]
    fn root<'py>(&self, py: Python<'py>, group: Hash, number: u64) -> Answer<Bound<'py, PyBytes>> {
        let (root, _) = self.read(py, |snapshot| at(snapshot, &group.0, number))?;
        Ok(to_bytes(py, root))
    }

    /// Nonce of an account in a group, in the state that was written last.
    #[pyo3(signature = (group, account, number, /))]
    fn nonce(&self, group: Hash, account: Addr, number: u64) -> Answer<u64> {
        let inner = self.store.get().inner()?;
        let (root, trie) = at(&inner.snapshot()?, &group.0, number)?;
        let view = StateData::private(StateData::empty(Some(inner)), root, trie).open()?;
        Ok(private_nonce(&view, &account.0)?)
    }

    /// The state of a group after a canonical block, upon the public state after it.
    #[pyo3(signature = (group, number, public, /))]
    fn state(&self, py: Python<'_>, group: Hash, number: u64, public: &Bound<'_, State>) -> Answer<State> {
        let (root, trie) = self.read(py, |snapshot| at(snapshot, &group.0, number))?;
        Ok(State { data: StateData::private(public.get().data.clone(), root, trie) })
    }

    /// Marker and root of each transaction of a group in a block.
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

    /// Canonical blocks from a number on in which a group has transactions.
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

    /// Forget all private states and results.
    fn clear(&self, py: Python<'_>) -> Answer<()> {
        let inner = self.store.get().inner()?;
        Ok(py.detach(|| inner.clear_private())?)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PrivateBatch>()?;
    module.add_class::<PrivateReceiptRecord>()?;
    module.add_class::<PrivateLedger>()
}
