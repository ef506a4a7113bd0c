//! Python binding of simulated blocks (eth_simulateV1).

use std::sync::Arc;

use ophion_execution::call::outcome::summary;
use ophion_execution::call::simulate::{CallResult, Rules, SimulatedCall, is_precompile, simulate};
use ophion_primitives::deadline;
use ophion_primitives::json::list;
use ophion_rendering::objects::{LogPlace, Place, write_log, write_transaction};
use ophion_storage::chain::body::BodyData;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::block::rewards_of;
use super::call::{AccountOverride, CallRequest, plain};
use super::env::BlockEnv;
use crate::chain::body::{Body, Withdrawal, withdrawals_of};
use crate::chain::state::{Execution, State};
use crate::values::convert::{Addr, Hash, Wide, to_bytes};
use crate::values::errors::Answer;

/// A simulated block: header values and call results.
#[pyclass(frozen, module = "ophion._native")]
pub struct SimulatedBlock {
    execution: Py<Execution>,
    body: Py<Body>,
    data: Arc<BodyData>,
    calls: Vec<CallResult>,
}

type PyCall<'py> = (&'static str, Bound<'py, PyBytes>, u64, u64, String);

#[pymethods]
impl SimulatedBlock {
    #[getter]
    fn execution(&self, py: Python<'_>) -> Py<Execution> {
        self.execution.clone_ref(py)
    }

    #[getter]
    fn body(&self, py: Python<'_>) -> Py<Body> {
        self.body.clone_ref(py)
    }

    fn calls<'py>(&self, py: Python<'py>) -> Vec<PyCall<'py>> {
        self.calls
            .iter()
            .map(|one| {
                let gas = one.result.gas();
                let (kind, output, reason) = summary(one.result.clone());
                let max = gas.total_gas_spent().max(gas.tx_gas_used());
                (kind, to_bytes(py, &output), gas.tx_gas_used(), max, reason)
            })
            .collect()
    }

    /// Return for each call its logs and its transaction, as JSON text. The caller computes the block hash from the
    /// header.
    #[pyo3(signature = (block_hash, number, timestamp, base_fee, /))]
    fn render<'py>(
        &self,
        py: Python<'py>,
        block_hash: Hash,
        number: u64,
        timestamp: u64,
        base_fee: Option<u64>,
    ) -> Answer<Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let known = self.data.known()?;
        let each = self.calls.iter().zip(&self.data.txs).zip(known).enumerate();
        Ok(each
            .map(|(index, ((one, tx), known))| {
                let place = Place { block_hash: block_hash.0, number, index: index as u64, base_fee, timestamp };
                let mut logs = Vec::new();
                list(&mut logs, "", &one.logs, |out, (index, log)| {
                    let (block, transaction) = (&place, &known.hash);
                    write_log(out, log, LogPlace { block, transaction, index: *index, removed: false });
                });
                let mut transaction = Vec::new();
                write_transaction(&mut transaction, &tx.envelope, known, Some(&place));
                (to_bytes(py, &logs), to_bytes(py, &transaction))
            })
            .collect())
    }
}

type PySimulatedCall = (Py<CallRequest>, Option<u64>, Option<u64>, bool);

#[pyfunction]
#[pyo3(signature = (state, env, calls, *, overrides, withdrawals, rewards, validation, transfers, gas_left, deadline_s))]
#[allow(clippy::too_many_arguments)]
fn simulate_block(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    calls: Vec<PySimulatedCall>,
    overrides: Vec<Py<AccountOverride>>,
    withdrawals: Option<Vec<Py<Withdrawal>>>,
    rewards: Vec<(Addr, Wide)>,
    validation: bool,
    transfers: bool,
    gas_left: u64,
    deadline_s: f64,
) -> Answer<SimulatedBlock> {
    let (state, env) = (&state.get().data, &env.get().env);
    let overrides = plain(&overrides);
    let withdrawals = withdrawals_of(withdrawals);
    let rewards = rewards_of(rewards);
    let rules = Rules {
        overrides: &overrides,
        withdrawals: withdrawals.as_deref(),
        rewards: &rewards,
        is_validating: validation,
        with_transfers: transfers,
        gas_left,
    };
    let calls: Vec<SimulatedCall<'_>> = calls
        .iter()
        .map(|(request, gas, nonce, is_legacy)| SimulatedCall {
            members: &request.get().inner.members,
            gas: *gas,
            nonce: *nonce,
            is_legacy: *is_legacy,
        })
        .collect();
    let deadline = deadline::after(deadline_s);
    let done = py.detach(|| simulate(state, env, &rules, &calls, || deadline::is_over(deadline)))?;
    let data = Arc::new(done.body);
    Ok(SimulatedBlock {
        execution: Py::new(py, Execution { data: Arc::new(done.execution) })?,
        body: Py::new(py, Body { data: data.clone() })?,
        data,
        calls: done.calls,
    })
}

#[pyfunction(name = "is_precompile")]
#[pyo3(signature = (env, address, /))]
fn py_is_precompile(env: &Bound<'_, BlockEnv>, address: Addr) -> bool {
    is_precompile(&env.get().env, &address.0)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SimulatedBlock>()?;
    module.add_function(wrap_pyfunction!(simulate_block, module)?)?;
    module.add_function(wrap_pyfunction!(py_is_precompile, module)?)
}
