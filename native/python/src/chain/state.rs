//! Python bindings of states, and of the results of block execution.

use std::sync::Arc;

use alloy_primitives::{KECCAK256_EMPTY, U256, keccak256};
use ophion_execution::block::block_execution::ExecutionData;
use ophion_primitives::errors::Result;
use ophion_storage::chain::receipts::Outcome;
use ophion_storage::state::{StateData, View, merge_layers};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::values::convert::{Addr, Hash, to_bytes, to_int};
use crate::values::errors::Answer;

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
    /// Read from this state without the GIL.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&View) -> Result<T> + Send) -> Answer<T> {
        Ok(py.detach(|| read(&self.data.open()?))?)
    }
}

#[pymethods]
impl State {
    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.data.root)
    }

    /// Return the same state with fewer layers of uncommitted blocks.
    fn merged(&self, py: Python<'_>) -> State {
        let layers = py.detach(|| merge_layers(&self.data.layers));
        State { data: StateData { layers, ..self.data.clone() } }
    }

    #[pyo3(signature = (address, /))]
    fn account<'py>(&self, py: Python<'py>, address: Addr) -> Answer<Option<PyAccount<'py>>> {
        let found = self.read(py, |view| view.account(&address.0, &keccak256(address.0)))?;
        found
            .map(|account| {
                let balance = to_int(py, &account.balance)?;
                Ok((account.nonce, balance, to_bytes(py, account.code_hash), to_bytes(py, account.storage_root)))
            })
            .transpose()
    }

    #[pyo3(signature = (address, /))]
    fn balance<'py>(&self, py: Python<'py>, address: Addr) -> Answer<Bound<'py, PyAny>> {
        let found = self.read(py, |view| view.account(&address.0, &keccak256(address.0)))?;
        to_int(py, &found.map_or(U256::ZERO, |account| account.balance))
    }

    #[pyo3(signature = (address, /))]
    fn nonce(&self, py: Python<'_>, address: Addr) -> Answer<u64> {
        let found = self.read(py, |view| view.account(&address.0, &keccak256(address.0)))?;
        Ok(found.map_or(0, |account| account.nonce))
    }

    #[pyo3(signature = (address, /))]
    fn code<'py>(&self, py: Python<'py>, address: Addr) -> Answer<Bound<'py, PyBytes>> {
        let code = self.read(py, |view| {
            let account = view.account(&address.0, &keccak256(address.0))?;
            view.code(&account.map_or(KECCAK256_EMPTY, |account| account.code_hash))
        })?;
        Ok(to_bytes(py, code.original_bytes()))
    }

    #[pyo3(signature = (address, slot, /))]
    fn storage<'py>(&self, py: Python<'py>, address: Addr, slot: Hash) -> Answer<Bound<'py, PyBytes>> {
        let value =
            self.read(py, |view| view.storage(&address.0, &keccak256(address.0), &slot.0.into(), &keccak256(slot.0)))?;
        Ok(to_bytes(py, value.to_be_bytes::<32>()))
    }

    #[pyo3(signature = (address, slots, /))]
    fn proof<'py>(&self, py: Python<'py>, address: Addr, slots: Vec<Hash>) -> Answer<PyProof<'py>> {
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
    ) -> Answer<(Vec<PyAccountRow<'py>>, Option<Bound<'py, PyBytes>>)> {
        let (found, next) = self.read(py, |view| {
            let (found, next) = view.accounts_from(&start.0, limit)?;
            Ok((view.with_preimages(found)?, next))
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
            .collect::<Answer<_>>()?;
        Ok((rows, next.map(|next| to_bytes(py, next))))
    }

    #[pyo3(signature = (address, start, limit, /))]
    fn storage_range<'py>(
        &self,
        py: Python<'py>,
        address: Addr,
        start: Hash,
        limit: usize,
    ) -> Answer<(Vec<PySlotRow<'py>>, Option<Bound<'py, PyBytes>>)> {
        let (found, next) = self.read(py, |view| {
            let (found, next) = view.slots_from(&address.0, &start.0, limit)?;
            Ok((view.with_preimages(found)?, next))
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
        to_bytes(py, self.data.effects.state_root)
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
        let each = self.data.effects.receipts.iter().zip(&self.data.outputs).enumerate();
        each.map(|(index, (receipt, output))| {
            (receipt.outcome != Outcome::Failed, self.data.gas_of(index), to_bytes(py, output))
        })
        .collect()
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<State>()?;
    module.add_class::<Execution>()
}
