//! Python bindings of calls and gas estimates.

use std::sync::Arc;
use std::time::Duration;

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Bytes, TxKind, U256};
use ophion_execution::call::access_list::access_list;
use ophion_execution::call::estimate_gas as estimate;
use ophion_execution::call::{call_request, eth_call, outcome};
use ophion_execution::evm::{console_log, overrides};
use ophion_primitives::deadline;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use revm::context::TxEnv;
use revm::context_interface::either::Either;

use super::env::BlockEnv;
use crate::chain::state::State;
use crate::values::convert::{Addr, Hash, Raw, Wide, to_bytes};
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct CallRequest {
    pub inner: Arc<call_request::CallRequest>,
}

type PyAuthorization = (u64, Addr, u64, u8, Wide, Wide);

#[pymethods]
impl CallRequest {
    #[new]
    #[pyo3(signature = (*, sender, to, gas, value=None, input=None, nonce=None, gas_price=None, max_fee_per_gas=None,
        max_priority_fee_per_gas=None, max_fee_per_blob_gas=None, blob_hashes=vec![], access_list=vec![], authorizations=vec![],
        check_balance=true, check_base_fee=true))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        sender: Addr,
        to: Option<Addr>,
        gas: u64,
        value: Option<Wide>,
        input: Option<Raw>,
        nonce: Option<u64>,
        gas_price: Option<u128>,
        max_fee_per_gas: Option<u128>,
        max_priority_fee_per_gas: Option<u128>,
        max_fee_per_blob_gas: Option<u128>,
        blob_hashes: Vec<Hash>,
        access_list: Vec<(Addr, Vec<Hash>)>,
        authorizations: Vec<PyAuthorization>,
        check_balance: bool,
        check_base_fee: bool,
    ) -> Self {
        let item = |(address, keys): (Addr, Vec<Hash>)| AccessListItem {
            address: address.0,
            storage_keys: keys.into_iter().map(|key| key.0).collect(),
        };
        let members = TxEnv {
            tx_type: 0,
            caller: sender.0,
            gas_limit: gas,
            gas_price: gas_price.or(max_fee_per_gas).unwrap_or(0),
            kind: to.map_or(TxKind::Create, |to| TxKind::Call(to.0)),
            value: value.map_or(U256::ZERO, |value| value.0),
            data: input.map_or_else(Bytes::new, |input| input.0),
            nonce: nonce.unwrap_or(0),
            chain_id: None,
            access_list: AccessList(access_list.into_iter().map(item).collect()),
            gas_priority_fee: max_priority_fee_per_gas,
            blob_hashes: blob_hashes.into_iter().map(|hash| hash.0).collect(),
            max_fee_per_blob_gas: max_fee_per_blob_gas.unwrap_or(0),
            authorization_list: authorizations.into_iter().map(authorization).map(Either::Left).collect(),
        };
        CallRequest { inner: Arc::new(call_request::CallRequest { members, check_balance, check_base_fee }) }
    }
}

fn authorization((chain_id, address, nonce, parity, r, s): PyAuthorization) -> SignedAuthorization {
    let plain = Authorization { chain_id: U256::from(chain_id), address: address.0, nonce };
    SignedAuthorization::new_unchecked(plain, parity, r.0, s.0)
}

#[pyclass(frozen, module = "ophion._native")]
pub struct AccountOverride {
    pub inner: Arc<overrides::AccountOverride>,
}

type PySlots = Vec<(Hash, Hash)>;

#[pymethods]
impl AccountOverride {
    #[new]
    #[pyo3(signature = (*, address, balance=None, nonce=None, code=None, state=None, state_diff=None, precompile_target=None))]
    fn new(
        address: Addr,
        balance: Option<Wide>,
        nonce: Option<u64>,
        code: Option<Raw>,
        state: Option<PySlots>,
        state_diff: Option<PySlots>,
        precompile_target: Option<Addr>,
    ) -> Self {
        let slots = |given: PySlots| given.into_iter().map(|(slot, value)| (slot.0.into(), value.0.into())).collect();
        let inner = overrides::AccountOverride {
            address: address.0,
            balance: balance.map(|balance| balance.0),
            nonce,
            code: code.map(|code| code.0),
            state: state.map(slots),
            state_diff: state_diff.map(slots),
            precompile_target: precompile_target.map(|target| target.0),
        };
        AccountOverride { inner: Arc::new(inner) }
    }
}

pub fn plain(overrides: &[Py<AccountOverride>]) -> Vec<&overrides::AccountOverride> {
    overrides.iter().map(|one| one.get().inner.as_ref()).collect()
}

#[pyclass(frozen, module = "ophion._native")]
pub struct CallOutcome {
    pub outcome: outcome::CallOutcome,
}

#[pymethods]
impl CallOutcome {
    #[getter]
    fn kind(&self) -> &'static str {
        self.outcome.kind
    }

    #[getter]
    fn output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.outcome.output)
    }

    #[getter]
    fn gas_used(&self) -> u64 {
        self.outcome.gas_used
    }

    #[getter]
    fn reason(&self) -> &str {
        &self.outcome.reason
    }
}

#[pyfunction]
#[pyo3(signature = (state, env, request, overrides, deadline_s, /))]
fn call(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    request: &Bound<'_, CallRequest>,
    overrides: Vec<Py<AccountOverride>>,
    deadline_s: f64,
) -> Answer<CallOutcome> {
    let (state, env, request) = (&state.get().data, &env.get().env, &request.get().inner);
    let (overrides, deadline) = (plain(&overrides), deadline::after(deadline_s));
    let outcome = py.detach(|| eth_call::call(state, env, request, &overrides, deadline))?;
    Ok(CallOutcome { outcome })
}

#[pyfunction]
#[pyo3(signature = (state, env, request, inputs, limit_s, /))]
fn call_each(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    request: &Bound<'_, CallRequest>,
    inputs: Vec<Raw>,
    limit_s: f64,
) -> Answer<Vec<CallOutcome>> {
    let (state, env, request) = (&state.get().data, &env.get().env, &request.get().inner);
    let inputs = inputs.into_iter().map(|input| input.0).collect();
    let limit = Duration::from_secs_f64(limit_s);
    let outcomes = py.detach(|| eth_call::call_each(state, env, request, inputs, limit))?;
    Ok(outcomes.into_iter().map(|outcome| CallOutcome { outcome }).collect())
}

#[pyfunction]
#[pyo3(signature = (state, env, request, overrides, cap, deadline_s, /))]
fn estimate_gas(
    py: Python<'_>,
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    request: &Bound<'_, CallRequest>,
    overrides: Vec<Py<AccountOverride>>,
    cap: u64,
    deadline_s: f64,
) -> Answer<(u64, CallOutcome)> {
    let (state, env, request) = (&state.get().data, &env.get().env, &request.get().inner);
    let (overrides, deadline) = (plain(&overrides), deadline::after(deadline_s));
    let (gas, outcome) = py.detach(|| estimate::estimate_gas(state, env, request, &overrides, cap, deadline))?;
    Ok((gas, CallOutcome { outcome }))
}

type PyAccessList<'py> = Vec<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)>;

#[pyfunction]
#[pyo3(signature = (state, env, request, overrides, deadline_s, /))]
fn create_access_list<'py>(
    py: Python<'py>,
    state: &Bound<'py, State>,
    env: &Bound<'py, BlockEnv>,
    request: &Bound<'py, CallRequest>,
    overrides: Vec<Py<AccountOverride>>,
    deadline_s: f64,
) -> Answer<(PyAccessList<'py>, CallOutcome)> {
    let (state, env, request) = (&state.get().data, &env.get().env, &request.get().inner);
    let (overrides, deadline) = (plain(&overrides), deadline::after(deadline_s));
    let (list, outcome) = py.detach(|| access_list(state, env, request, &overrides, deadline))?;
    let rows = list
        .0
        .iter()
        .map(|item| (to_bytes(py, item.address), item.storage_keys.iter().map(|key| to_bytes(py, key)).collect()))
        .collect();
    Ok((rows, CallOutcome { outcome }))
}

/// Return the number of executions that have called `console.log`.
#[pyfunction]
fn console_reads() -> u64 {
    console_log::reads()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CallRequest>()?;
    module.add_class::<AccountOverride>()?;
    module.add_class::<CallOutcome>()?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(call_each, module)?)?;
    module.add_function(wrap_pyfunction!(estimate_gas, module)?)?;
    module.add_function(wrap_pyfunction!(create_access_list, module)?)?;
    module.add_function(wrap_pyfunction!(console_reads, module)?)
}
