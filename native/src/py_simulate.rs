//! Simulated blocks as Python sees them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use revm::context_interface::result::ExecutionResult;

use crate::body::BodyData;
use crate::call::{AccountOverride, CallRequest, halt_text};
use crate::convert::{Addr, Hash, Wide, to_bytes};
use crate::env::BlockEnv;
use crate::json_text::list;
use crate::py_body::{Body, Withdrawal, withdrawals_of};
use crate::py_state::{Execution, State, deadline_after, rewards_of};
use crate::render::{Place, write_log, write_transaction};
use crate::simulate::{CallResult, Rules, SimulatedCall, is_precompile, simulate};
use crate::watch;

/// A block that was simulated: what its header needs, and what its calls gave.
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
                let (kind, output, reason) = match &one.result {
                    ExecutionResult::Success { output, .. } => ("returned", output.data().clone(), String::new()),
                    ExecutionResult::Revert { output, .. } => ("reverted", output.clone(), String::new()),
                    ExecutionResult::Halt { reason, .. } => ("halted", Default::default(), halt_text(reason)),
                };
                let most = gas.total_gas_spent().max(gas.tx_gas_used());
                (kind, to_bytes(py, &output), gas.tx_gas_used(), most, reason)
            })
            .collect()
    }

    /// The logs of each call and the transactions as JSON text, now that the hash of the block is known.
    #[pyo3(signature = (block_hash, number, timestamp, base_fee, /))]
    fn render<'py>(
        &self,
        py: Python<'py>,
        block_hash: Hash,
        number: u64,
        timestamp: u64,
        base_fee: Option<u64>,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let known = self.data.known()?;
        let each = self.calls.iter().zip(&self.data.txs).zip(known).enumerate();
        Ok(each
            .map(|(index, ((one, tx), known))| {
                let place = Place { block_hash: block_hash.0, number, index: index as u64, base_fee, timestamp };
                let mut logs = Vec::new();
                list(&mut logs, "", &one.logs, |out, (at, log)| write_log(out, log, *at, &known.hash, &place, false));
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
) -> PyResult<SimulatedBlock> {
    let (state, env) = (&state.get().data, env.get());
    let overrides: Vec<&AccountOverride> = overrides.iter().map(Py::get).collect();
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
            members: request.get().members(),
            gas: *gas,
            nonce: *nonce,
            is_legacy: *is_legacy,
        })
        .collect();
    let deadline = deadline_after(deadline_s);
    let done = py.detach(|| simulate(state, env, &rules, &calls, || watch::is_over(deadline)))?;
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
    is_precompile(env.get(), &address.0)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SimulatedBlock>()?;
    module.add_function(wrap_pyfunction!(simulate_block, module)?)?;
    module.add_function(wrap_pyfunction!(py_is_precompile, module)?)
}
