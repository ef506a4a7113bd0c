//! Blocks: run, built, begun at genesis.

use std::sync::Arc;

use alloy_primitives::{Address, U256};
use ophion_execution::block::genesis::{GenesisAccount, genesis};
use ophion_execution::block::run::{self, Candidate};
use ophion_primitives::deadline;
use ophion_storage::state::StateData;
use pyo3::prelude::*;

use super::env::BlockEnv;
use crate::chain::body::{Body, Transaction, Withdrawal, withdrawals_of};
use crate::chain::state::{Execution, State};
use crate::chain::store::Store;
use crate::values::convert::{Addr, Hash, Raw, Wide};
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct Built {
    execution: Py<Execution>,
    body: Py<Body>,
    #[pyo3(get)]
    included: Vec<usize>,
    #[pyo3(get)]
    skipped: Vec<(usize, String)>,
}

#[pymethods]
impl Built {
    #[getter]
    fn execution(&self, py: Python<'_>) -> Py<Execution> {
        self.execution.clone_ref(py)
    }

    #[getter]
    fn body(&self, py: Python<'_>) -> Py<Body> {
        self.body.clone_ref(py)
    }
}

pub fn rewards_of(rewards: Vec<(Addr, Wide)>) -> Vec<(Address, U256)> {
    rewards.into_iter().map(|(address, amount)| (address.0, amount.0)).collect()
}

#[pyfunction]
#[pyo3(signature = (state, env, body, rewards, keep_revert_data, /))]
fn execute(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    body: &Bound<'_, Body>,
    rewards: Vec<(Addr, Wide)>,
    keep_revert_data: bool,
) -> Answer<Execution> {
    let (state, env, body, rewards) = (&state.get().data, &env.get().env, &body.get().data, rewards_of(rewards));
    let data = py.detach(|| run::execute(state, env, body, &rewards, keep_revert_data))?;
    Ok(Execution { data: Arc::new(data) })
}

#[pyfunction]
#[pyo3(signature = (state, env, candidates, withdrawals, rewards, keep_revert_data, deadline_s, /))]
#[allow(clippy::too_many_arguments)]
fn build(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    candidates: Vec<Py<Transaction>>,
    withdrawals: Option<Vec<Py<Withdrawal>>>,
    rewards: Vec<(Addr, Wide)>,
    keep_revert_data: bool,
    deadline_s: f64,
) -> Answer<Built> {
    let (state, env, rewards) = (&state.get().data, &env.get().env, rewards_of(rewards));
    let candidates: Vec<Candidate> =
        candidates.iter().map(|one| Candidate { tx: one.get().tx.clone(), known: one.get().known }).collect();
    let withdrawals = withdrawals_of(withdrawals);
    let deadline = deadline::after(deadline_s);
    let built = py.detach(|| run::build(state, env, &candidates, withdrawals, &rewards, keep_revert_data, deadline))?;
    Ok(Built {
        execution: Py::new(py, Execution { data: Arc::new(built.execution) })?,
        body: Py::new(py, Body { data: Arc::new(built.body) })?,
        included: built.included,
        skipped: built.skipped,
    })
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Built>()?;
    module.add_function(wrap_pyfunction!(execute, module)?)?;
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(genesis_state, module)?)
}
