//! Python binding of the sandbox in which property tests run contract calls.

use std::sync::{Mutex, MutexGuard};

use ophion_execution::call::sandbox;
use ophion_primitives::deadline;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::{CallOutcome, CallRequest};
use super::env::BlockEnv;
use crate::chain::state::State;
use crate::values::convert::{Addr, Hash, to_bytes, to_int};
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct Sandbox {
    inner: Mutex<sandbox::Sandbox>,
}

impl Sandbox {
    fn locked(&self) -> MutexGuard<'_, sandbox::Sandbox> {
        self.inner.lock().expect("no panic while locked")
    }
}

#[pymethods]
impl Sandbox {
    #[new]
    #[pyo3(signature = (state, env, /))]
    fn new(py: Python<'_>, state: &Bound<'_, State>, env: &Bound<'_, BlockEnv>) -> Answer<Self> {
        let (state, env) = (&state.get().data, &env.get().env);
        let inner = py.detach(|| sandbox::Sandbox::open(state, env))?;
        Ok(Sandbox { inner: Mutex::new(inner) })
    }

    #[pyo3(signature = (request, keep_effects, deadline_s, /))]
    fn run(
        &self,
        py: Python<'_>,
        request: &Bound<'_, CallRequest>,
        keep_effects: bool,
        deadline_s: f64,
    ) -> Answer<CallOutcome> {
        let (request, deadline) = (&request.get().inner, deadline::after(deadline_s));
        let outcome = py.detach(|| self.locked().run(request, keep_effects, deadline))?;
        Ok(CallOutcome { outcome })
    }

    fn save(&self, py: Python<'_>) -> Answer<usize> {
        Ok(py.detach(|| self.locked().save())?)
    }

    #[pyo3(signature = (number, /))]
    fn revert(&self, py: Python<'_>, number: usize) -> Answer<bool> {
        Ok(py.detach(|| self.locked().revert(number))?)
    }

    #[pyo3(signature = (address, /))]
    fn account<'py>(&self, py: Python<'py>, address: Addr) -> Answer<(u64, Bound<'py, PyAny>, Bound<'py, PyBytes>)> {
        let (nonce, balance, code) = py.detach(|| self.locked().account(&address.0))?;
        Ok((nonce, to_int(py, &balance)?, to_bytes(py, code)))
    }

    #[pyo3(signature = (address, slot, /))]
    fn storage<'py>(&self, py: Python<'py>, address: Addr, slot: Hash) -> Answer<Bound<'py, PyBytes>> {
        let value = py.detach(|| self.locked().storage(address.0, slot.0.into()))?;
        Ok(to_bytes(py, value.to_be_bytes::<32>()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sandbox>()
}
