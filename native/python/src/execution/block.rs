//! Python bindings of block execution, incremental building and the genesis state.

use std::sync::{Arc, Mutex};

use alloy_primitives::{Address, B256, U256};
use ophion_execution::block::block_execution;
use ophion_execution::block::empty_blocks::EmptyRun;
use ophion_execution::block::genesis::{GenesisAccount, genesis};
use ophion_execution::block::incremental_builder::{self, Candidate, IncrementalBuilder};
use ophion_execution::block::state_edits::edited;
use ophion_primitives::deadline;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::state::StateData;
use ophion_storage::store::decode_header;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::{AccountOverride, plain};
use super::env::BlockEnv;
use crate::chain::body::{Body, Transaction, Withdrawal, withdrawals_of};
use crate::chain::state::{Execution, State};
use crate::chain::store::Store;
use crate::values::convert::{Addr, Hash, Raw, Wide, to_bytes};
use crate::values::errors::Answer;

/// Result of `OpenBlock.take`. The lists refer to candidates by their index.
#[pyclass(frozen, get_all, module = "ophion._native")]
pub struct TakeResult {
    included: Vec<usize>,
    skipped: Vec<(usize, String)>,
    early: Vec<usize>,
    unfit: Vec<usize>,
    unfinished: Option<usize>,
    seen: usize,
    is_full: bool,
}

impl From<incremental_builder::TakeResult> for TakeResult {
    fn from(result: incremental_builder::TakeResult) -> Self {
        let incremental_builder::TakeResult { included, skipped, early, unfit, unfinished, seen, is_full } = result;
        TakeResult { included, skipped, early, unfit, unfinished, seen, is_full }
    }
}

/// An incremental block builder. Only one thread at a time may use it.
#[pyclass(frozen, module = "ophion._native")]
pub struct OpenBlock {
    builder: Mutex<Option<IncrementalBuilder>>,
}

impl OpenBlock {
    /// Run `work` with the builder. If `work` fails, the builder is dropped.
    fn with<T>(&self, work: impl FnOnce(IncrementalBuilder) -> Result<(Option<IncrementalBuilder>, T)>) -> Result<T> {
        let mut place = self.builder.lock().expect("no panic while locked");
        let builder = place.take().ok_or_else(|| Error::Refused("the block is sealed".into()))?;
        let (left, answer) = work(builder)?;
        *place = left;
        Ok(answer)
    }
}

#[pymethods]
impl OpenBlock {
    #[new]
    #[pyo3(signature = (state, env, keep_revert_data, /))]
    fn new(
        py: Python<'_>,
        state: &Bound<'_, State>,
        env: &Bound<'_, BlockEnv>,
        keep_revert_data: bool,
    ) -> Answer<Self> {
        let (state, env) = (&state.get().data, &env.get().env);
        let builder = py.detach(|| IncrementalBuilder::start(state, env, keep_revert_data))?;
        Ok(OpenBlock { builder: Mutex::new(Some(builder)) })
    }

    #[pyo3(signature = (candidates, deadline_s, /))]
    fn take(&self, py: Python<'_>, candidates: Vec<Py<Transaction>>, deadline_s: f64) -> Answer<TakeResult> {
        let candidates = candidates_of(&candidates);
        let deadline = deadline::after(deadline_s);
        let result = py.detach(|| {
            self.with(|builder| builder.take(&candidates, deadline).map(|(builder, result)| (Some(builder), result)))
        })?;
        Ok(result.into())
    }

    fn settle(&self, py: Python<'_>) -> Answer<()> {
        Ok(py.detach(|| self.with(|mut builder| builder.settle().map(|()| (Some(builder), ()))))?)
    }

    #[pyo3(signature = (withdrawals, rewards, /))]
    fn seal(
        &self,
        py: Python<'_>,
        withdrawals: Option<Vec<Py<Withdrawal>>>,
        rewards: Vec<(Addr, Wide)>,
    ) -> Answer<(Body, Execution)> {
        let (withdrawals, rewards) = (withdrawals_of(withdrawals), rewards_of(rewards));
        let (body, execution) =
            py.detach(|| self.with(|builder| builder.seal(withdrawals, &rewards).map(|sealed| (None, sealed))))?;
        Ok((Body { data: Arc::new(body) }, Execution { data: Arc::new(execution) }))
    }
}

/// Build a whole block in one call, which takes less time than an `OpenBlock` for a few transactions.
#[pyfunction]
#[pyo3(signature = (state, env, candidates, keep_revert_data, withdrawals, rewards, deadline_s, /))]
#[allow(clippy::too_many_arguments)]
fn build_block(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    candidates: Vec<Py<Transaction>>,
    keep_revert_data: bool,
    withdrawals: Option<Vec<Py<Withdrawal>>>,
    rewards: Vec<(Addr, Wide)>,
    deadline_s: f64,
) -> Answer<(TakeResult, Body, Execution)> {
    let (state, env) = (&state.get().data, &env.get().env);
    let candidates = candidates_of(&candidates);
    let (withdrawals, rewards) = (withdrawals_of(withdrawals), rewards_of(rewards));
    let deadline = deadline::after(deadline_s);
    let (result, body, execution) = py.detach(|| {
        incremental_builder::build(state, env, &candidates, keep_revert_data, withdrawals, &rewards, deadline)
    })?;
    Ok((result.into(), Body { data: Arc::new(body) }, Execution { data: Arc::new(execution) }))
}

fn candidates_of(transactions: &[Py<Transaction>]) -> Vec<Candidate> {
    transactions.iter().map(|one| Candidate { tx: one.get().tx.clone(), known: one.get().known }).collect()
}

pub fn rewards_of(rewards: Vec<(Addr, Wide)>) -> Vec<(Address, U256)> {
    rewards.into_iter().map(|(address, amount)| (address.0, amount.0)).collect()
}

#[pyfunction]
#[pyo3(signature = (state, env, body, rewards, keep_revert_data, limit_s=None, /))]
fn execute(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    body: &Bound<'_, Body>,
    rewards: Vec<(Addr, Wide)>,
    keep_revert_data: bool,
    limit_s: Option<f64>,
) -> Answer<Execution> {
    let (state, env, body, rewards) = (&state.get().data, &env.get().env, &body.get().data, rewards_of(rewards));
    let data = py.detach(|| {
        block_execution::execute(state, env, body, &rewards, keep_revert_data, limit_s.map(deadline::after))
    })?;
    Ok(Execution { data: Arc::new(data) })
}

type AllocAccount = (Addr, u64, Wide, Raw, Vec<(Hash, Hash)>);

#[pyfunction]
#[pyo3(signature = (store, alloc, /))]
fn genesis_state(py: Python<'_>, store: &Bound<'_, Store>, alloc: Vec<AllocAccount>) -> Answer<Execution> {
    let empty = StateData::empty(Some(store.get().inner()?));
    let accounts = alloc.into_iter().map(|(address, nonce, balance, code, storage)| GenesisAccount {
        address: address.0,
        nonce,
        balance: balance.0,
        code: code.0,
        storage: storage.into_iter().map(|(slot, value)| (slot.0.into(), value.0.into())).collect(),
    });
    let data = py.detach(|| genesis(&empty, accounts))?;
    Ok(Execution { data: Arc::new(data) })
}

#[pyfunction]
#[pyo3(signature = (store, state, env, body, rewards, first, count, step, randomness, total_difficulty, /))]
#[expect(clippy::too_many_arguments, reason = "one call for thousands of blocks")]
fn append_empty<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    state: &Bound<'py, State>,
    env: &Bound<'py, BlockEnv>,
    body: &Bound<'py, Body>,
    rewards: Vec<(Addr, Wide)>,
    first: &[u8],
    count: usize,
    step: u64,
    randomness: Option<u32>,
    total_difficulty: Wide,
) -> Answer<Bound<'py, PyBytes>> {
    let (inner, state, env, body) = (store.get().inner()?, &state.get().data, &env.get().env, &body.get().data);
    let (first, rewards) = (decode_header(first)?, rewards_of(rewards));
    let run = EmptyRun { first, count, step, randomness, total_difficulty: total_difficulty.0, rewards };
    let rows = py.detach(|| {
        let records = run.execute(state, env, body)?;
        let hashes: Vec<B256> = records.iter().map(|record| record.hash).collect();
        if !records.is_empty() {
            inner.commit(&records, &[], &hashes, &[])?;
        }
        Ok::<_, Error>(
            records.iter().flat_map(|one| [one.hash.0, one.effects.state_root.0]).flatten().collect::<Vec<u8>>(),
        )
    })?;
    Ok(to_bytes(py, rows))
}

#[pyfunction]
#[pyo3(signature = (store, state, changes, number, /))]
fn edit_state(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    state: &Bound<'_, State>,
    changes: Vec<Py<AccountOverride>>,
    number: u64,
) -> Answer<State> {
    let (inner, state, changes) = (store.get().inner()?, &state.get().data, plain(&changes));
    let data = py.detach(|| {
        let (effects, after) = edited(state, &changes)?;
        inner.commit_state(&effects, number)?;
        StateData::at(&inner.snapshot()?, after.root)
    })?;
    Ok(State { data })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TakeResult>()?;
    module.add_class::<OpenBlock>()?;
    module.add_function(wrap_pyfunction!(build_block, module)?)?;
    module.add_function(wrap_pyfunction!(execute, module)?)?;
    module.add_function(wrap_pyfunction!(append_empty, module)?)?;
    module.add_function(wrap_pyfunction!(edit_state, module)?)?;
    module.add_function(wrap_pyfunction!(genesis_state, module)?)
}
