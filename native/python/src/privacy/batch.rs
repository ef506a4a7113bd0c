//! Python binding of `Batch`: the private transactions of some blocks.

use std::sync::Mutex;

use alloy_primitives::Bytes;
use ophion_primitives::deadline;
use ophion_primitives::errors::{Error, Result};
use ophion_privacy::batch_execution::{self, Payload, Rules};
use ophion_privacy::flexible_groups::membership;
use ophion_privacy::trace::trace_flat;
use ophion_privacy::transaction::decode;
use ophion_storage::store::Marker;
use ophion_tracing::replay::block::Place;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::chain::state::State;
use crate::chain::store::Store;
use crate::execution::env::BlockEnv;
use crate::tracing::trace::TraceStream;
use crate::values::convert::Hash;
use crate::values::errors::Answer;

/// A payload as a tuple: marker hash, index, payload key, group, key of the sender, RLP, members, version of a flexible
/// group.
type PyPayload = (Hash, u32, Hash, Hash, PyBackedBytes, PyBackedBytes, Option<Vec<PyBackedBytes>>, Option<Hash>);

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

/// Executes the private transactions of consecutive blocks in memory, then writes all results.
#[pyclass(frozen, module = "ophion._native")]
pub struct PrivateBatch {
    batch: Mutex<Option<batch_execution::Batch>>,
    rules: Rules,
}

impl PrivateBatch {
    fn with<T>(&self, work: impl FnOnce(&mut batch_execution::Batch) -> Result<T>) -> Result<T> {
        let mut batch = self.batch.lock().expect("no panic while locked");
        work(batch.as_mut().ok_or_else(|| Error::Storage("the batch has been written".into()))?)
    }
}

#[pymethods]
impl PrivateBatch {
    #[new]
    #[pyo3(signature = (store, /, *, chain_id, always_increments=false))]
    fn new(store: &Bound<'_, Store>, chain_id: u64, always_increments: bool) -> Answer<Self> {
        let batch = batch_execution::Batch::new(store.get().inner()?);
        Ok(PrivateBatch { batch: Mutex::new(Some(batch)), rules: Rules { chain_id, always_increments } })
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

    /// Run private payloads of one block. `state` is the public state after the block.
    #[pyo3(signature = (state, env, block, payloads, /))]
    fn run_block(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        env: &Bound<'_, BlockEnv>,
        block: Hash,
        payloads: Vec<PyPayload>,
    ) -> Answer<()> {
        let (public, env) = (&state.get().data, &env.get().env);
        let payloads: Vec<Payload> = payloads.iter().map(payload_of).collect();
        Ok(py.detach(|| self.with(|batch| batch.run_block(public, env, block.0, self.rules, &payloads)))?)
    }

    /// Trace the last payload, after executing the payloads before it. All payloads belong to one group and block.
    /// Nothing is written to the database.
    #[pyo3(signature = (state, env, block, payloads, deadline_s, /))]
    fn trace(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        env: &Bound<'_, BlockEnv>,
        block: Hash,
        payloads: Vec<PyPayload>,
        deadline_s: f64,
    ) -> Answer<TraceStream> {
        let (public, env) = (&state.get().data, &env.get().env);
        let payloads: Vec<Payload> = payloads.iter().map(payload_of).collect();
        let Some((last, before)) = payloads.split_last() else {
            return Err(Error::Storage("there is nothing to trace".into()).into());
        };
        let stream = py.detach(|| {
            self.with(|batch| {
                batch.run_block(public, env, block.0, self.rules, before)?;
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

    /// Write all results. `followed` is hash and number of the last executed block. `settled` are keys of late payloads
    /// that are now processed.
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PrivateBatch>()
}
