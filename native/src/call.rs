//! Calls that leave no trace: eth_call, gas estimation, access lists.

use std::cell::RefCell;
use std::time::Instant;

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, TxKind, U256, hex, keccak256};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use revm::context::{CfgEnv, TxEnv};
use revm::context_interface::either::Either;
use revm::context_interface::result::{EVMError, ExecutionResult, HaltReason, InvalidTransaction, OutOfGasError};
use revm::handler::ExecuteEvm;
use revm::inspector::InspectEvm;
use revm::primitives::hardfork::SpecId;
use revm::state::Bytecode;
use revm_inspectors::access_list::AccessListInspector;

use crate::convert::{Addr, Hash, Raw, Wide, to_bytes};
use crate::env::{BlockEnv, Fork};
use crate::errors::{Error, Result};
use crate::evm::{self, Evm};
use crate::exec_db::{Ancestors, ExecDb};
use crate::precompiles::Precompiles;
use crate::py_state::{State, deadline_after};
use crate::state::{StateData, View};
use crate::trie::{EMPTY_ROOT, Trie};
use crate::watch;

const PLAIN_TRANSFER_GAS: u64 = 21_000;

#[pyclass(frozen, module = "ophion._native")]
pub struct CallRequest {
    tx: TxEnv,
    has_fees: bool,
    check_balance: bool,
    check_base_fee: bool,
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
        let tx = TxEnv {
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
        let has_fees = tx.gas_price > 0 || tx.gas_priority_fee.is_some_and(|tip| tip > 0);
        CallRequest { tx, has_fees, check_balance, check_base_fee }
    }
}

impl CallRequest {
    /// The configuration under which this call runs.
    pub fn cfg(&self, env: &BlockEnv) -> CfgEnv {
        call_cfg(env, self)
    }

    pub fn transaction(&self, fork: Fork) -> TxEnv {
        call_tx(&self.tx, fork)
    }

    /// The members that were given, before a type is chosen.
    pub fn members(&self) -> &TxEnv {
        &self.tx
    }
}

fn authorization((chain_id, address, nonce, parity, r, s): PyAuthorization) -> SignedAuthorization {
    let plain = alloy_eips::eip7702::Authorization { chain_id: U256::from(chain_id), address: address.0, nonce };
    SignedAuthorization::new_unchecked(plain, parity, r.0, s.0)
}

#[pyclass(frozen, module = "ophion._native")]
pub struct AccountOverride {
    address: Address,
    balance: Option<U256>,
    nonce: Option<u64>,
    code: Option<Bytes>,
    state: Option<Vec<(U256, U256)>>,
    state_diff: Option<Vec<(U256, U256)>>,
    precompile_target: Option<Address>,
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
        AccountOverride {
            address: address.0,
            balance: balance.map(|balance| balance.0),
            nonce,
            code: code.map(|code| code.0),
            state: state.map(slots),
            state_diff: state_diff.map(slots),
            precompile_target: precompile_target.map(|target| target.0),
        }
    }
}

impl AccountOverride {
    pub fn address(&self) -> Address {
        self.address
    }

    /// Where the precompiled contract of this address is to be found.
    pub fn precompile_target(&self) -> Option<Address> {
        self.precompile_target
    }

    pub fn apply(&self, db: &mut ExecDb) -> Result<()> {
        if self.balance.is_none() && self.nonce.is_none() && self.code.is_none() && !self.has_slots() {
            return Ok(());
        }
        let mut info = db.info(&self.address)?.unwrap_or_default();
        info.balance = self.balance.unwrap_or(info.balance);
        info.nonce = self.nonce.unwrap_or(info.nonce);
        if let Some(code) = &self.code {
            info.code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(code) };
            info.code = (!code.is_empty()).then(|| Bytecode::new_raw(code.clone()));
        }
        db.set_info(&self.address, Some(info))?;
        if self.state.is_some() {
            db.wipe_storage(&self.address)?;
        }
        for (slot, value) in self.state.iter().chain(&self.state_diff).flatten() {
            db.set_storage(&self.address, *slot, *value)?;
        }
        Ok(())
    }

    fn has_slots(&self) -> bool {
        self.state.is_some() || self.state_diff.is_some()
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct CallOutcome {
    kind: &'static str,
    output: Bytes,
    #[pyo3(get)]
    gas_used: u64,
    /// Before refunds.
    gas_spent: u64,
    #[pyo3(get)]
    reason: String,
}

impl CallOutcome {
    fn invalid(reason: String) -> Self {
        CallOutcome { kind: "invalid", output: Bytes::new(), gas_used: 0, gas_spent: 0, reason }
    }
}

#[pymethods]
impl CallOutcome {
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    #[getter]
    fn output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.output)
    }
}

/// The rules that a call does not have to keep.
fn call_cfg(env: &BlockEnv, request: &CallRequest) -> CfgEnv {
    let mut cfg = env.cfg();
    cfg.tx_chain_id_check = false;
    cfg.disable_nonce_check = true;
    cfg.disable_eip3607 = true;
    cfg.disable_block_gas_limit = true;
    cfg.disable_base_fee = !request.has_fees || !request.check_base_fee;
    cfg.disable_balance_check = !request.check_balance;
    cfg.tx_gas_limit_cap = Some(u64::MAX);
    cfg
}

/// The transaction of a call, of the newest type that its members need and the fork knows.
fn call_tx(request: &TxEnv, fork: Fork) -> TxEnv {
    let mut tx = request.clone();
    tx.tx_type = if !tx.authorization_list.is_empty() && fork.has(SpecId::PRAGUE) {
        4
    } else if !tx.blob_hashes.is_empty() && fork.has(SpecId::CANCUN) {
        3
    } else if tx.gas_priority_fee.is_some() && fork.has(SpecId::LONDON) {
        2
    } else {
        u8::from(!tx.access_list.is_empty() && fork.has(SpecId::BERLIN))
    };
    tx
}

type Kept = Option<(Fork, Evm)>;

thread_local! {
    /// An EVM costs more to set up than a small call takes to run, so each thread keeps its last one.
    static KEPT: RefCell<Kept> = const { RefCell::new(None) };
}

pub fn no_database() -> ExecDb {
    let view = View { root: EMPTY_ROOT, trie: Trie::default(), snapshot: None, flat: false, layers: None };
    ExecDb::new(view, Ancestors::Canonical)
}

fn with_evm<T>(
    state: &StateData,
    env: &BlockEnv,
    request: &CallRequest,
    overrides: &[&AccountOverride],
    deadline: Instant,
    work: impl FnOnce(&mut Evm) -> Result<T>,
) -> Result<T> {
    let mut db = ExecDb::new(state.open()?, env.ancestors());
    for one in overrides {
        one.apply(&mut db)?;
    }
    let cfg = call_cfg(env, request);
    let moved = if overrides.is_empty() { None } else { Some(Precompiles::overridden(env.fork.spec, overrides)?) };
    let is_moved = moved.is_some();
    let mut evm = match KEPT.with_borrow_mut(Option::take) {
        Some((fork, mut evm)) if fork == env.fork => {
            evm.ctx.journaled_state.database = db;
            evm.ctx.cfg = cfg;
            evm.ctx.block = env.block();
            evm
        }
        _ => {
            let mut evm = evm::build(env, db, cfg, ());
            watch::install(&mut evm.instruction);
            evm
        }
    };
    if let Some(moved) = moved {
        evm.precompiles = moved;
    }
    watch::set_deadline(deadline);
    let outcome = work(&mut evm);
    if is_moved {
        evm.precompiles = Precompiles::of(env.fork.spec);
    }
    // The snapshot goes now, not with the next call; a failed run may have left the journal half full.
    evm.finalize();
    evm.ctx.journaled_state.database = no_database();
    KEPT.set(Some((env.fork, evm)));
    outcome
}

/// A call that may not be made has an outcome, too.
fn or_refusal<T>(result: Result<T>, refused: impl FnOnce(CallOutcome) -> T) -> Result<T> {
    match result {
        Err(Error::Refused(reason)) => Ok(refused(CallOutcome::invalid(reason))),
        other => other,
    }
}

type RunResult = std::result::Result<ExecutionResult, EVMError<crate::errors::Error>>;

/// What a run came to, with the journal emptied for the next.
fn concluded<I>(evm: &mut Evm<I>, result: RunResult) -> Result<CallOutcome> {
    evm.finalize();
    let mut outcome = match result {
        Ok(result) => outcome_of(result),
        Err(EVMError::Database(cause)) => return Err(cause),
        Err(EVMError::Transaction(cause)) => invalid(&cause),
        Err(cause) => CallOutcome::invalid(format!("other: {cause}")),
    };
    if watch::has_expired() {
        outcome.kind = "timeout";
        outcome.reason = "the call took too long".into();
    }
    Ok(outcome)
}

/// Value and fees beyond what any account can hold; revm adds them to a balance that it was told not to check, and
/// multiplies in 128 bits.
pub fn is_beyond_all_money(tx: &TxEnv) -> bool {
    let blob_gas = tx.blob_hashes.len() as u128 * u128::from(alloy_eips::eip4844::DATA_GAS_PER_BLOB);
    let gas = u128::from(tx.gas_limit).checked_mul(tx.gas_price);
    let blobs = blob_gas.checked_mul(tx.max_fee_per_blob_gas);
    let fees = gas.zip(blobs).and_then(|(gas, blobs)| gas.checked_add(blobs));
    fees.is_none_or(|fees| tx.value.saturating_add(U256::from(fees)) > U256::MAX >> 1)
}

pub const BEYOND_ALL_MONEY: &str = "balance: more than any account can hold";

fn run_watched(evm: &mut Evm, tx: TxEnv) -> Result<CallOutcome> {
    if is_beyond_all_money(&tx) {
        return Ok(CallOutcome::invalid(BEYOND_ALL_MONEY.into()));
    }
    let result = evm.transact_one(tx);
    concluded(evm, result)
}

fn outcome_of(result: ExecutionResult) -> CallOutcome {
    let gas = *result.gas();
    let (kind, output, reason) = match result {
        ExecutionResult::Success { output, .. } => ("returned", output.into_data(), String::new()),
        ExecutionResult::Revert { output, .. } => ("reverted", output, String::new()),
        ExecutionResult::Halt { reason, .. } => ("halted", Bytes::new(), halt_text(&reason)),
    };
    CallOutcome { kind, output, gas_used: gas.tx_gas_used(), gas_spent: gas.total_gas_spent(), reason }
}

/// A halt in the words that tools have come to expect.
pub fn halt_text(reason: &HaltReason) -> String {
    match reason {
        HaltReason::OutOfGas(OutOfGasError::ReentrancySentry) => "not enough gas for reentrancy sentry".into(),
        HaltReason::OutOfGas(_) => "out of gas".into(),
        HaltReason::OpcodeNotFound | HaltReason::InvalidFEOpcode => "invalid opcode".into(),
        HaltReason::InvalidJump => "invalid jump destination".into(),
        HaltReason::StackUnderflow => "stack underflow".into(),
        HaltReason::StackOverflow => "stack limit reached 1024".into(),
        HaltReason::OutOfOffset => "return data out of bounds".into(),
        HaltReason::CreateCollision => "contract address collision".into(),
        HaltReason::CreateContractSizeLimit => "max code size exceeded".into(),
        HaltReason::CreateContractStartingWithEF => "invalid code: must not begin with 0xef".into(),
        HaltReason::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        HaltReason::NonceOverflow => "nonce uint64 overflow".into(),
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => "write protection".into(),
        HaltReason::OutOfFunds => "insufficient balance for transfer".into(),
        HaltReason::CallTooDeep => "max call depth exceeded".into(),
        other => format!("{other:?}"),
    }
}

fn invalid(cause: &InvalidTransaction) -> CallOutcome {
    CallOutcome::invalid(refusal_text(cause))
}

/// A short code for the caller to act upon, then the reason in words.
pub fn refusal_text(cause: &InvalidTransaction) -> String {
    use InvalidTransaction as I;
    let code = match cause {
        I::CallGasCostMoreThanGasLimit { .. } | I::GasFloorMoreThanGasLimit { .. } => "intrinsic-gas",
        I::LackOfFundForMaxFee { .. } | I::OverflowPaymentInTransaction => "balance",
        I::GasPriceLessThanBasefee => "fee-below-base",
        I::PriorityFeeGreaterThanMaxFee => "tip-above-fee",
        I::CreateInitCodeSizeLimit => "init-code",
        I::NonceOverflowInTransaction => "nonce",
        I::NonceTooLow { .. } => "nonce-low",
        I::NonceTooHigh { .. } => "nonce-gap",
        I::InvalidChainId => "chain-id",
        _ => "other",
    };
    format!("{code}: {cause}")
}

/// Gas that suffices: the search of json-rpc.md (eth_estimateGas), which stops 1.5 percent above the least.
fn estimate(evm: &mut Evm, tx: TxEnv, cap: u64) -> Result<(u64, CallOutcome)> {
    let is_plain = tx.data.is_empty();
    let mut try_with = |gas: u64| {
        let mut tx = tx.clone();
        tx.gas_limit = gas;
        run_watched(evm, tx)
    };
    if is_plain && cap >= PLAIN_TRANSFER_GAS {
        let outcome = try_with(PLAIN_TRANSFER_GAS)?;
        if outcome.kind == "returned" {
            return Ok((PLAIN_TRANSFER_GAS, outcome));
        }
    }
    let with_most = try_with(cap)?;
    if with_most.kind != "returned" {
        return Ok((0, with_most));
    }
    let (mut low, mut high) = (with_most.gas_spent - 1, cap);
    // A 64th may be held back at each call, so a little above what was used is mostly enough.
    let likely = (with_most.gas_spent + 2300).saturating_mul(64) / 63;
    if likely < high {
        if try_with(likely)?.kind == "returned" { high = likely } else { low = likely }
    }
    while high - low > 1 && (high - low) as f64 / high as f64 >= 0.015 {
        let middle = low + (high - low) / 2;
        let outcome = try_with(middle)?;
        match outcome.kind {
            "timeout" => return Ok((0, outcome)),
            "returned" => high = middle,
            _ => low = middle,
        }
    }
    Ok((high, with_most))
}

fn plain(overrides: &[Py<AccountOverride>]) -> Vec<&AccountOverride> {
    overrides.iter().map(Py::get).collect()
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
) -> PyResult<CallOutcome> {
    let (state, env, request) = (&state.get().data, env.get(), request.get());
    let (overrides, deadline) = (plain(&overrides), deadline_after(deadline_s));
    let run =
        || with_evm(state, env, request, &overrides, deadline, |evm| run_watched(evm, call_tx(&request.tx, env.fork)));
    Ok(or_refusal(py.detach(run), |outcome| outcome)?)
}

/// The usual eth_call from its JSON object, in one crossing; None for whatever needs a closer look: other members,
/// anything malformed, a call that does not return in time. The caller then goes the long way, which says why.
///
/// The GIL is kept: such a call takes microseconds (the deadline bounds it), getting the GIL back can take longer.
#[pyfunction]
#[pyo3(signature = (state, env, call, gas_limit, cap, deadline_s, /))]
fn quick_call<'py>(
    py: Python<'py>,
    state: &Bound<'py, State>,
    env: &Bound<'py, BlockEnv>,
    call: &Bound<'py, PyDict>,
    gas_limit: u64,
    cap: u64,
    deadline_s: f64,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Some(mut request) = simple_request(call)? else { return Ok(None) };
    if request.tx.gas_limit == 0 {
        request.tx.gas_limit = gas_limit;
    }
    request.tx.gas_limit = request.tx.gas_limit.min(cap);
    let (state, env, deadline) = (&state.get().data, env.get(), deadline_after(deadline_s));
    let outcome = with_evm(state, env, &request, &[], deadline, |evm| run_watched(evm, request.tx.clone()))?;
    Ok((outcome.kind == "returned").then(|| to_bytes(py, &outcome.output)))
}

/// A call object of nothing but `to`, `data` or `input`, `from` and `gas`, all well formed.
fn simple_request(call: &Bound<'_, PyDict>) -> PyResult<Option<CallRequest>> {
    let mut request = CallRequest {
        tx: TxEnv { gas_limit: 0, gas_price: 0, ..TxEnv::default() },
        has_fees: false,
        check_balance: false,
        check_base_fee: false,
    };
    let (mut has_to, mut has_data) = (false, false);
    for (name, value) in call.iter() {
        let (Ok(name), Ok(value)) = (name.cast::<PyString>(), value.cast::<PyString>()) else { return Ok(None) };
        let Some(digits) = value.to_str()?.strip_prefix("0x") else { return Ok(None) };
        match name.to_str()? {
            "to" => match hex::decode_to_array::<_, 20>(digits) {
                Ok(address) if digits.len() == 40 => {
                    has_to = true;
                    request.tx.kind = TxKind::Call(address.into());
                }
                _ => return Ok(None),
            },
            "from" => match hex::decode_to_array::<_, 20>(digits) {
                Ok(address) if digits.len() == 40 => request.tx.caller = address.into(),
                _ => return Ok(None),
            },
            "data" | "input" if !has_data => match hex::decode(digits) {
                Ok(data) => {
                    has_data = true;
                    request.tx.data = data.into();
                }
                Err(_) => return Ok(None),
            },
            "gas" => match u64::from_str_radix(digits, 16) {
                Ok(gas) if gas > 0 && !digits.starts_with('+') => request.tx.gas_limit = gas,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }
    }
    Ok(has_to.then_some(request))
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
) -> PyResult<(u64, CallOutcome)> {
    let (state, env, request) = (&state.get().data, env.get(), request.get());
    let (overrides, deadline) = (plain(&overrides), deadline_after(deadline_s));
    let run = || {
        with_evm(state, env, request, &overrides, deadline, |evm| estimate(evm, call_tx(&request.tx, env.fork), cap))
    };
    Ok(or_refusal(py.detach(run), |outcome| (0, outcome))?)
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
) -> PyResult<(PyAccessList<'py>, CallOutcome)> {
    let (state, env, request) = (&state.get().data, env.get(), request.get());
    let (overrides, deadline) = (plain(&overrides), deadline_after(deadline_s));
    let listed = py.detach(|| access_list(state, env, request, &overrides, deadline));
    let (list, outcome) = or_refusal(listed, |outcome| (AccessList::default(), outcome))?;
    let rows = list
        .0
        .iter()
        .map(|item| (to_bytes(py, item.address), item.storage_keys.iter().map(|key| to_bytes(py, key)).collect()))
        .collect();
    Ok((rows, outcome))
}

/// Run until the list that a run touches is the list it was given.
fn access_list(
    state: &StateData,
    env: &BlockEnv,
    request: &CallRequest,
    overrides: &[&AccountOverride],
    deadline: Instant,
) -> Result<(AccessList, CallOutcome)> {
    let mut db = ExecDb::new(state.open()?, env.ancestors());
    for one in overrides {
        one.apply(&mut db)?;
    }
    let mut tx = request.tx.clone();
    let mut evm = evm::build(env, db, call_cfg(env, request), AccessListInspector::default());
    evm.precompiles = Precompiles::overridden(env.fork.spec, overrides)?;
    watch::install(&mut evm.instruction);
    watch::set_deadline(deadline);
    if is_beyond_all_money(&tx) {
        return Ok((tx.access_list, CallOutcome::invalid(BEYOND_ALL_MONEY.into())));
    }
    loop {
        evm.inspector = AccessListInspector::new(tx.access_list.clone());
        let result = evm.inspect_one_tx(call_tx(&tx, env.fork));
        let outcome = concluded(&mut evm, result)?;
        let touched = std::mem::take(&mut evm.inspector).into_access_list();
        let is_final = matches!(outcome.kind, "invalid" | "timeout");
        if touched == tx.access_list || is_final || watch::is_over(deadline) {
            return Ok((touched, outcome));
        }
        tx.access_list = touched;
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CallRequest>()?;
    module.add_class::<AccountOverride>()?;
    module.add_class::<CallOutcome>()?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(quick_call, module)?)?;
    module.add_function(wrap_pyfunction!(estimate_gas, module)?)?;
    module.add_function(wrap_pyfunction!(create_access_list, module)?)
}
