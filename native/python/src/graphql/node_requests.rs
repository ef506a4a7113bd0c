//! Python bindings of the tasks that a query passes to the node, and of their results.

use std::sync::Arc;

use alloy_primitives::U256;
use ophion_graphql::run::run_inputs::{Ask, Reply};
use ophion_graphql::values::value::CallArguments;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::values::convert::{Hash, Raw, to_bytes, to_int};
use crate::values::errors::Answer;

/// A task that a query passes to the node.
#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlAsk {
    pub asks: Arc<Vec<Ask>>,
    pub position: usize,
}

impl GraphqlAsk {
    fn ask(&self) -> &Ask {
        &self.asks[self.position]
    }

    fn call(&self) -> Option<&CallArguments> {
        match self.ask() {
            Ask::Call { call, .. } => Some(call),
            Ask::Send(_) => None,
        }
    }

    fn amount<'py>(
        &self,
        py: Python<'py>,
        pick: impl Fn(&CallArguments) -> Option<U256>,
    ) -> Answer<Option<Bound<'py, PyAny>>> {
        self.call().and_then(pick).map(|amount| to_int(py, &amount)).transpose()
    }
}

#[pymethods]
impl GraphqlAsk {
    #[getter]
    fn kind(&self) -> &'static str {
        match self.ask() {
            Ask::Call { is_estimate: true, .. } => "estimate",
            Ask::Call { .. } => "call",
            Ask::Send(_) => "send",
        }
    }

    #[getter]
    fn block<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        match self.ask() {
            Ask::Call { block, .. } => block.map(|hash| to_bytes(py, hash)),
            Ask::Send(_) => None,
        }
    }

    #[getter]
    fn sender<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.call().and_then(|call| call.from).map(|address| to_bytes(py, address))
    }

    #[getter]
    fn to<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.call().and_then(|call| call.to).map(|address| to_bytes(py, address))
    }

    #[getter]
    fn gas(&self) -> Option<u64> {
        self.call().and_then(|call| call.gas)
    }

    #[getter]
    fn gas_price<'py>(&self, py: Python<'py>) -> Answer<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.gas_price)
    }

    #[getter]
    fn max_fee_per_gas<'py>(&self, py: Python<'py>) -> Answer<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.max_fee_per_gas)
    }

    #[getter]
    fn max_priority_fee_per_gas<'py>(&self, py: Python<'py>) -> Answer<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.max_priority_fee_per_gas)
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Answer<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.value)
    }

    /// Return the call data, or the transaction to send.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        match self.ask() {
            Ask::Call { call, .. } => to_bytes(py, call.data.as_ref().map_or(&[][..], AsRef::as_ref)),
            Ask::Send(raw) => to_bytes(py, raw),
        }
    }
}

/// Result of a task that the node has done for a query.
#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlReply {
    pub reply: Reply,
}

#[pymethods]
impl GraphqlReply {
    #[staticmethod]
    fn nothing() -> Self {
        GraphqlReply { reply: Reply::Nothing }
    }

    #[staticmethod]
    #[pyo3(signature = (succeeded, gas_used, output, /))]
    fn call(succeeded: bool, gas_used: u64, output: Raw) -> Self {
        GraphqlReply { reply: Reply::Call { succeeded, gas_used, output: output.0 } }
    }

    #[staticmethod]
    #[pyo3(signature = (gas, /))]
    fn gas(gas: u64) -> Self {
        GraphqlReply { reply: Reply::Gas(gas) }
    }

    #[staticmethod]
    #[pyo3(signature = (hash, /))]
    fn sent(hash: Hash) -> Self {
        GraphqlReply { reply: Reply::Sent(hash.0) }
    }

    #[staticmethod]
    #[pyo3(signature = (code, message, data, /))]
    fn failed(code: Option<i64>, message: String, data: Option<String>) -> Self {
        GraphqlReply { reply: Reply::Failed { code, message, data } }
    }
}
