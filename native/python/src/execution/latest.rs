//! Python binding of `ophion_execution::call::latest_block`: the fast path for eth_blockNumber, eth_getBalance,
//! eth_getTransactionCount and eth_call at the latest block.
//!
//! This module does not release the GIL: a reply takes microseconds (calls have a deadline), and acquiring the GIL
//! again can take longer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ophion_execution::call::call_cost_cache;
use ophion_execution::call::fast_call::PlainCall;
use ophion_execution::call::latest_block::{CallSettings, Latest};
use ophion_messages::plain_request::Param;
use ophion_primitives::json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::env::BlockEnv;
use crate::chain::state::State;
use crate::values::convert::{Addr, to_bytes};

/// Minimum output length in bytes for which the slow path answers, because it sends outputs without copying.
const LONG: usize = 16 << 10;

#[pyclass(frozen, module = "ophion._native")]
pub struct CallCostCache {
    calls: Arc<call_cost_cache::CallCostCache>,
}

#[pymethods]
impl CallCostCache {
    #[new]
    fn new() -> Self {
        CallCostCache { calls: Arc::default() }
    }

    #[pyo3(signature = (to, input, /))]
    fn is_light(&self, to: Addr, input: &[u8]) -> bool {
        self.calls.is_light(&to.0, input)
    }

    #[pyo3(signature = (to, input, /))]
    fn is_heavy(&self, to: Addr, input: &[u8]) -> bool {
        self.calls.is_heavy(&to.0, input)
    }

    #[pyo3(signature = (to, input, /))]
    fn may_try(&self, to: Addr, input: &[u8]) -> bool {
        self.calls.may_try(&to.0, input)
    }

    #[pyo3(signature = (to, input, is_heavy, /))]
    fn note(&self, to: Addr, input: &[u8], is_heavy: bool) {
        self.calls.note(&to.0, input, is_heavy);
    }

    #[pyo3(signature = (to, input, took_s, /))]
    fn wasted(&self, to: Addr, input: &[u8], took_s: f64) {
        self.calls.wasted(&to.0, input, took_s);
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct LatestBlock {
    latest: Mutex<Latest>,
}

impl LatestBlock {
    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LatestBlock {
    #[new]
    #[pyo3(signature = (number, state, /))]
    fn new(number: u64, state: &Bound<'_, State>) -> Self {
        LatestBlock { latest: Mutex::new(Latest::new(number, state.get().data.clone())) }
    }

    #[pyo3(signature = (number, state, /))]
    fn set(&self, number: u64, state: &Bound<'_, State>) {
        *self.latest() = Latest::new(number, state.get().data.clone());
    }

    #[getter]
    fn has_call_settings(&self) -> bool {
        self.latest().settings.is_some()
    }

    #[pyo3(signature = (env, gas, max_gas, limit_s, costs, /))]
    fn set_call_settings(
        &self,
        env: &Bound<'_, BlockEnv>,
        gas: u64,
        max_gas: u64,
        limit_s: f64,
        costs: &Bound<'_, CallCostCache>,
    ) {
        let (env, costs) = (env.get().env.clone(), costs.get().calls.clone());
        self.latest().settings = Some(CallSettings { env, gas, max_gas, limit_s, costs });
    }

    #[pyo3(signature = (call, /))]
    fn call<'py>(&self, py: Python<'py>, call: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut plain = PlainCall::default();
        for (name, value) in call.iter() {
            let (Ok(name), Ok(value)) = (name.cast::<PyString>(), value.cast::<PyString>()) else { return Ok(None) };
            if plain.take(name.to_str()?, value.to_str()?).is_none() {
                return Ok(None);
            }
        }
        Ok(self.latest().call(plain).map(|output| to_bytes(py, output)))
    }

    #[pyo3(signature = (question, /))]
    fn reading(block: Py<Self>, question: &str) -> PyResult<LatestRead> {
        let question = match question {
            "number" => Question::Number,
            "balance" => Question::Balance,
            "nonce" => Question::Nonce,
            "call" => Question::Call,
            other => {
                return Err(PyValueError::new_err(format!(
                    "the latest block has no {other}: use number, balance, nonce or call"
                )));
            }
        };
        Ok(LatestRead { block, question, tally: None })
    }
}

#[derive(Clone, Copy)]
enum Question {
    Number,
    Balance,
    Nonce,
    Call,
}

#[pyclass(frozen, module = "ophion._native")]
pub struct LatestRead {
    block: Py<LatestBlock>,
    question: Question,
    tally: Option<Py<PyAny>>,
}

#[pymethods]
impl LatestRead {
    #[pyo3(signature = (tally, /))]
    fn counted(&self, py: Python<'_>, tally: Py<PyAny>) -> LatestRead {
        LatestRead { block: self.block.clone_ref(py), question: self.question, tally: Some(tally) }
    }
}

impl LatestRead {
    /// Append the result to `out`. Returns None if the Python handler must reply instead; `out` may then contain
    /// partial output.
    pub fn answer(&self, py: Python<'_>, params: &[Param<'_>], out: &mut Vec<u8>) -> Option<()> {
        let Some(tally) = &self.tally else { return self.uncounted(params, out) };
        let untimed = pyo3::intern!(py, "untimed");
        let left = tally.getattr(py, untimed).ok()?.extract::<u64>(py).ok()?.checked_sub(1)?;
        self.uncounted(params, out)?;
        tally.setattr(py, untimed, left).ok()
    }

    fn uncounted(&self, params: &[Param<'_>], out: &mut Vec<u8>) -> Option<()> {
        let mut latest = self.block.get().latest();
        match (self.question, params) {
            (Question::Number, []) => json::quantity(out, "", latest.number),
            (Question::Balance, [Param::Word(address)] | [Param::Word(address), Param::Word(b"latest")]) => {
                latest.balance(out, word(address)?)?;
            }
            (Question::Nonce, [Param::Word(address)] | [Param::Word(address), Param::Word(b"latest")]) => {
                latest.nonce(out, word(address)?)?;
            }
            (Question::Call, [Param::Fields(members)] | [Param::Fields(members), Param::Word(b"latest")]) => {
                let mut plain = PlainCall::default();
                for (name, value) in members {
                    plain.take(word(name)?, word(value)?)?;
                }
                json::data(out, "", latest.call(plain).filter(|output| output.len() < LONG)?);
            }
            _ => return None,
        }
        Some(())
    }
}

fn word(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CallCostCache>()?;
    module.add_class::<LatestBlock>()?;
    module.add_class::<LatestRead>()
}
