//! States and executions as Python sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use revm::state::{AccountInfo, Bytecode};

use crate::convert::{Addr, Hash, Raw, Wide, to_bytes, to_int, usual_address};
use crate::env::BlockEnv;
use crate::errors::Result;
use crate::exec_db::{Ancestors, Changes, ExecDb};
use crate::execute::{Candidate, ExecutionData, build as build_block, execute as execute_block};
use crate::json_text;
use crate::py_body::{Body, Transaction, Withdrawal, withdrawals_of};
use crate::py_store::Store;
use crate::receipts::{self, Outcome};
use crate::state::{StateData, View};
use crate::trie::{EMPTY_ROOT, Trie};

#[pyclass(frozen, module = "ophion._native")]
pub struct State {
    pub data: StateData,
}

type PyAccount<'py> = (u64, Bound<'py, PyAny>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);
type PyAccountRow<'py> = (
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    u64,
    Bound<'py, PyAny>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);
type PySlotRow<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);
type PyProof<'py> = (Vec<Bound<'py, PyBytes>>, Vec<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)>);

impl State {
    /// Run a read without the GIL.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&View) -> Result<T> + Send) -> PyResult<T> {
        Ok(py.detach(|| read(&self.data.open()?))?)
    }
}

#[pymethods]
impl State {
    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.data.root)
    }

    #[pyo3(signature = (address, /))]
    fn account<'py>(&self, py: Python<'py>, address: Addr) -> PyResult<Option<PyAccount<'py>>> {
        let found = self.read(py, |view| view.account(&address.0, &keccak256(address.0)))?;
        found
            .map(|account| {
                let balance = to_int(py, &account.balance)?;
                Ok((account.nonce, balance, to_bytes(py, account.code_hash), to_bytes(py, account.storage_root)))
            })
            .transpose()
    }

    #[pyo3(signature = (address, /))]
    fn balance<'py>(&self, py: Python<'py>, address: Addr) -> PyResult<Bound<'py, PyAny>> {
        let found = self.read(py, |view| view.account(&address.0, &keccak256(address.0)))?;
        to_int(py, &found.map_or(U256::ZERO, |account| account.balance))
    }

    /// The balance of `0x` and 40 digits as JSON text, in one crossing; None for any other way to write an address.
    ///
    /// The GIL is kept: the read takes less than a microsecond, getting the GIL back can take milliseconds.
    #[pyo3(signature = (address, /))]
    fn balance_text<'py>(&self, py: Python<'py>, address: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(address) = usual_address(address) else { return Ok(None) };
        let found = self.data.open()?.account(&address, &keccak256(address))?;
        let mut text = Vec::with_capacity(72);
        json_text::wide(&mut text, "", found.map_or(U256::ZERO, |account| account.balance));
        Ok(Some(to_bytes(py, text)))
    }

    #[pyo3(signature = (address, /))]
    fn nonce(&self, py: Python<'_>, address: Addr) -> PyResult<u64> {
        let found = self.read(py, |view| view.account(&address.0, &keccak256(address.0)))?;
        Ok(found.map_or(0, |account| account.nonce))
    }

    #[pyo3(signature = (address, /))]
    fn code<'py>(&self, py: Python<'py>, address: Addr) -> PyResult<Bound<'py, PyBytes>> {
        let code = self.read(py, |view| {
            let account = view.account(&address.0, &keccak256(address.0))?;
            view.code(&account.map_or(KECCAK256_EMPTY, |account| account.code_hash))
        })?;
        Ok(to_bytes(py, code.original_bytes()))
    }

    #[pyo3(signature = (address, slot, /))]
    fn storage<'py>(&self, py: Python<'py>, address: Addr, slot: Hash) -> PyResult<Bound<'py, PyBytes>> {
        let value =
            self.read(py, |view| view.storage(&address.0, &keccak256(address.0), &slot.0.into(), &keccak256(slot.0)))?;
        Ok(to_bytes(py, value.to_be_bytes::<32>()))
    }

    #[pyo3(signature = (address, slots, /))]
    fn proof<'py>(&self, py: Python<'py>, address: Addr, slots: Vec<Hash>) -> PyResult<PyProof<'py>> {
        let slots: Vec<U256> = slots.into_iter().map(|slot| slot.0.into()).collect();
        let (account, storage) = self.read(py, |view| view.proof(&address.0, &slots))?;
        let list = |nodes: Vec<Vec<u8>>| nodes.iter().map(|node| to_bytes(py, node)).collect();
        let storage =
            storage.into_iter().map(|(value, nodes)| (to_bytes(py, value.to_be_bytes::<32>()), list(nodes))).collect();
        Ok((list(account), storage))
    }

    #[pyo3(signature = (start, limit, /))]
    fn accounts<'py>(
        &self,
        py: Python<'py>,
        start: Hash,
        limit: usize,
    ) -> PyResult<(Vec<PyAccountRow<'py>>, Option<Bound<'py, PyBytes>>)> {
        let (found, next) = self.read(py, |view| {
            let (found, next) = view.accounts_from(&start.0, limit)?;
            let with_names = found.into_iter().map(|(hash, account)| Ok((hash, view.preimage(&hash)?, account)));
            Ok((with_names.collect::<Result<Vec<_>>>()?, next))
        })?;
        let rows = found
            .into_iter()
            .map(|(hash, address, account)| {
                Ok((
                    to_bytes(py, hash),
                    address.map(|address| to_bytes(py, address)),
                    account.nonce,
                    to_int(py, &account.balance)?,
                    to_bytes(py, account.code_hash),
                    to_bytes(py, account.storage_root),
                ))
            })
            .collect::<PyResult<_>>()?;
        Ok((rows, next.map(|next| to_bytes(py, next))))
    }

    #[pyo3(signature = (address, start, limit, /))]
    fn storage_range<'py>(
        &self,
        py: Python<'py>,
        address: Addr,
        start: Hash,
        limit: usize,
    ) -> PyResult<(Vec<PySlotRow<'py>>, Option<Bound<'py, PyBytes>>)> {
        let (found, next) = self.read(py, |view| {
            let (found, next) = view.slots_from(&address.0, &start.0, limit)?;
            let with_names = found.into_iter().map(|(hash, value)| Ok((hash, view.preimage(&hash)?, value)));
            Ok((with_names.collect::<Result<Vec<_>>>()?, next))
        })?;
        let rows = found
            .into_iter()
            .map(|(hash, slot, value)| {
                (to_bytes(py, hash), slot.map(|slot| to_bytes(py, slot)), to_bytes(py, value.to_be_bytes::<32>()))
            })
            .collect();
        Ok((rows, next.map(|next| to_bytes(py, next))))
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct Execution {
    pub data: Arc<ExecutionData>,
}

#[pymethods]
impl Execution {
    #[getter]
    fn state_root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.data.state_root)
    }

    #[getter]
    fn receipts_root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.data.receipts_root)
    }

    #[getter]
    fn logs_bloom<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.data.logs_bloom)
    }

    #[getter]
    fn gas_used(&self) -> u64 {
        self.data.gas_used
    }

    #[getter]
    fn blob_gas_used(&self) -> u64 {
        self.data.blob_gas_used
    }

    #[getter]
    fn requests<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        self.data.requests.as_ref().map(|all| all.iter().map(|one| to_bytes(py, one)).collect())
    }

    #[getter]
    fn requests_hash<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.data.requests.as_ref().map(|all| to_bytes(py, all.requests_hash()))
    }

    #[getter]
    fn state(&self) -> State {
        State { data: self.data.state.clone() }
    }

    fn receipt_statuses<'py>(&self, py: Python<'py>) -> Vec<(bool, u64, Bound<'py, PyBytes>)> {
        let each = self.data.receipts.iter().zip(&self.data.outputs).enumerate();
        each.map(|(index, (receipt, output))| {
            (receipt.outcome != Outcome::Failed, self.data.gas_of(index), to_bytes(py, output))
        })
        .collect()
    }
}

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
) -> PyResult<Execution> {
    let (state, env, body, rewards) = (&state.get().data, env.get(), &body.get().data, rewards_of(rewards));
    let data = py.detach(|| execute_block(state, env, body, &rewards, keep_revert_data))?;
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
) -> PyResult<Built> {
    let (state, env, rewards) = (&state.get().data, env.get(), rewards_of(rewards));
    let candidates: Vec<Candidate> =
        candidates.iter().map(|one| Candidate { tx: one.get().tx.clone(), known: one.get().known }).collect();
    let withdrawals = withdrawals_of(withdrawals);
    let deadline = deadline_after(deadline_s);
    let built =
        py.detach(|| build_block(state, env, &candidates, withdrawals, &rewards, keep_revert_data, deadline))?;
    Ok(Built {
        execution: Py::new(py, Execution { data: Arc::new(built.execution) })?,
        body: Py::new(py, Body { data: Arc::new(built.body) })?,
        included: built.included,
        skipped: built.skipped,
    })
}

/// The moment `seconds` from now; a time that no clock reaches for anything absurd.
pub fn deadline_after(seconds: f64) -> Instant {
    let bounded = if seconds.is_finite() { seconds.clamp(0.0, 86_400.0) } else { 86_400.0 };
    Instant::now() + Duration::from_secs_f64(bounded)
}

type AllocAccount = (Addr, u64, Wide, Raw, Vec<(Hash, Hash)>);

#[pyfunction]
#[pyo3(signature = (store, alloc, /))]
fn genesis_state(py: Python<'_>, store: &Bound<'_, Store>, alloc: Vec<AllocAccount>) -> PyResult<Execution> {
    let inner = store.get().inner()?;
    let empty = StateData { store: Some(inner), root: EMPTY_ROOT, trie: Trie::default(), layers: None };
    let data = py.detach(|| make_genesis(empty, alloc))?;
    Ok(Execution { data: Arc::new(data) })
}

fn make_genesis(empty: StateData, alloc: Vec<AllocAccount>) -> Result<ExecutionData> {
    let mut db = ExecDb::new(empty.open()?, Ancestors::Canonical);
    for (address, nonce, balance, code, storage) in alloc {
        let code = code.0;
        let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(&code) };
        let code = (!code.is_empty()).then(|| Bytecode::new_raw(code));
        let info = AccountInfo { balance: balance.0, nonce, code_hash, account_id: None, code };
        db.set_info(&address.0, Some(info))?;
        for (slot, value) in storage {
            db.set_storage(&address.0, slot.0.into(), value.0.into())?;
        }
    }
    let mut trie = Trie::default();
    db.update_trie(&mut trie)?;
    let state_root = trie.hash();
    let (receipts_root, logs_bloom) = receipts::root_and_bloom(&[]);
    let Changes { flat, preimages, codes, layer } = db.finish(&trie)?;
    let state = StateData { store: empty.store, root: state_root, trie: trie.clone(), layers: Some(layer) };
    Ok(ExecutionData {
        parent_root: B256::from(EMPTY_ROOT),
        state_root,
        receipts_root,
        logs_bloom,
        gas_used: 0,
        blob_gas_used: 0,
        blob_price: 0,
        requests: None,
        receipts: Vec::new(),
        outputs: Vec::new(),
        trie,
        flat,
        preimages,
        codes,
        state,
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<State>()?;
    module.add_class::<Execution>()?;
    module.add_class::<Built>()?;
    module.add_function(wrap_pyfunction!(execute, module)?)?;
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(genesis_state, module)?)
}
