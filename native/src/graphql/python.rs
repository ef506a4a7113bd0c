//! The GraphQL engine as Python sees it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use alloy_primitives::U256;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::value::RawValue;

use super::binding::{CallArguments, Value};
use super::complaints::{self, Entry};
use super::engine::{Engine, Query};
use super::fields::Field;
use super::plan::Limits;
use super::run::{Ask, Bounds, Inputs, Outcome, Pooled, Reply, Run};
use crate::convert::{Hash, Raw, Wide, to_bytes, to_int};
use crate::errors::Result;
use crate::py_body::Transaction;
use crate::py_state::deadline_after;
use crate::py_store::Store;
use crate::store::Snapshot;

const OK: u16 = 200;
const BAD_REQUEST: u16 = 400;
/// Work that the thread which serves everybody does at once; about a millisecond.
const INLINE_BUDGET: u64 = 10_000;

#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlEngine {
    engine: Arc<Engine>,
    settings: Settings,
}

/// What all requests share.
#[derive(Clone, Copy)]
struct Settings {
    chain_id: u64,
    protocol_version: u32,
    max_cost: u64,
    max_bytes: usize,
    max_blocks: u64,
    max_calls: usize,
    max_logs_range: u64,
    max_logs: usize,
}

#[pymethods]
impl GraphqlEngine {
    #[new]
    #[pyo3(signature = (schema, *, chain_id, protocol_version, max_tokens, max_depth, max_fields, max_cost, max_bytes,
        max_blocks, max_calls, max_logs_range, max_logs))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        schema: &str,
        chain_id: u64,
        protocol_version: u32,
        max_tokens: usize,
        max_depth: usize,
        max_fields: usize,
        max_cost: u64,
        max_bytes: usize,
        max_blocks: u64,
        max_calls: usize,
        max_logs_range: u64,
        max_logs: usize,
    ) -> PyResult<Self> {
        let engine = Engine::new(schema, max_tokens, Limits { max_fields, max_depth })?;
        let settings = Settings {
            chain_id,
            protocol_version,
            max_cost,
            max_bytes,
            max_blocks,
            max_calls,
            max_logs_range,
            max_logs,
        };
        Ok(GraphqlEngine { engine: Arc::new(engine), settings })
    }

    /// A request in its JSON form; `bytes` is the answer to one that cannot be run.
    #[pyo3(signature = (body, /))]
    fn read<'py>(&self, py: Python<'py>, body: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let prepared = py.detach(|| {
            let (document, operation, variables) = read_json(body)?;
            self.engine.prepare(document, operation.as_deref(), variables.as_deref())
        });
        self.prepared(py, prepared)
    }

    /// A request by its parts, the variables as JSON text.
    #[pyo3(signature = (document, operation, variables, /))]
    fn read_parts<'py>(
        &self,
        py: Python<'py>,
        document: String,
        operation: Option<&str>,
        variables: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let prepared = py.detach(|| self.engine.prepare(document, operation, variables));
        self.prepared(py, prepared)
    }
}

impl GraphqlEngine {
    fn prepared<'py>(
        &self,
        py: Python<'py>,
        prepared: std::result::Result<Query, Vec<Entry>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match prepared {
            Ok(query) => GraphqlQuery { engine: self.engine.clone(), settings: self.settings, query: Arc::new(query) }
                .into_bound_py_any(py),
            Err(entries) => Ok(to_bytes(py, complaints::refusal(&entries)).into_any()),
        }
    }
}

type Parts = (String, Option<String>, Option<String>);

fn read_json(body: &[u8]) -> std::result::Result<Parts, Vec<Entry>> {
    let broken = |message: String| vec![Entry::validation(message, None)];
    let members: HashMap<String, &RawValue> =
        serde_json::from_slice(body).map_err(|cause| broken(format!("the request is not a JSON object: {cause}")))?;
    let text = |name: &str| -> std::result::Result<Option<String>, Vec<Entry>> {
        match members.get(name).map(|raw| raw.get()) {
            None | Some("null") => Ok(None),
            Some(raw) => serde_json::from_str(raw).map(Some).map_err(|_| broken(format!("{name}: text is expected"))),
        }
    };
    let variables = members.get("variables").map(|raw| raw.get().to_string());
    Ok((text("query")?.unwrap_or_default(), text("operationName")?, variables))
}

#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlQuery {
    engine: Arc<Engine>,
    settings: Settings,
    query: Arc<Query>,
}

#[pymethods]
impl GraphqlQuery {
    #[getter]
    fn is_mutation(&self) -> bool {
        self.query.plan.is_mutation
    }

    #[getter]
    fn is_heavy(&self) -> bool {
        self.query.is_heavy()
    }

    #[getter]
    fn needs_gas_price(&self) -> bool {
        self.query.plan.needs.gas_price
    }

    #[getter]
    fn needs_priority_fee(&self) -> bool {
        self.query.plan.needs.priority_fee
    }

    #[getter]
    fn needs_pool(&self) -> bool {
        self.query.plan.needs.pool
    }

    #[getter]
    fn needs_next_base_fee(&self) -> bool {
        self.query.plan.needs.next_base_fee
    }

    /// Hashes of the transactions that the request names.
    #[getter]
    fn transactions<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let roots = self.query.plan.nodes.iter().filter(|node| node.field == Field::QueryTransaction);
        let hash = |first: usize| match &self.query.values[first] {
            Value::Hash(hash) => Some(to_bytes(py, hash)),
            _ => None,
        };
        roots.filter_map(|node| hash(node.first_argument)).collect()
    }

    /// Status and body; what the node has to do first; or None when it is too much to be done at once.
    #[pyo3(signature = (store, head_hash, head_number, at_once, deadline_s, *, gas_price=None, priority_fee=None,
        next_base_fee=None, syncing=None, pool=vec![], named=vec![]))]
    #[allow(clippy::too_many_arguments)]
    fn run<'py>(
        &self,
        py: Python<'py>,
        store: &Bound<'py, Store>,
        head_hash: Hash,
        head_number: u64,
        at_once: bool,
        deadline_s: f64,
        gas_price: Option<Wide>,
        priority_fee: Option<Wide>,
        next_base_fee: Option<u64>,
        syncing: Option<(u64, u64, u64)>,
        pool: Vec<Py<Transaction>>,
        named: Vec<Py<Transaction>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let inner = store.get().inner()?;
        let pooled = |given: Vec<Py<Transaction>>| {
            given.iter().map(|one| Pooled { tx: one.get().tx.clone(), known: one.get().known }).collect::<Vec<_>>()
        };
        let wide = |given: Option<Wide>| given.map_or(U256::ZERO, |given| given.0);
        let inputs = Inputs {
            head: (head_hash.0, head_number),
            chain_id: self.settings.chain_id,
            protocol_version: self.settings.protocol_version,
            gas_price: wide(gas_price),
            priority_fee: wide(priority_fee),
            next_base_fee,
            syncing,
            pool: pooled(pool),
            named: pooled(named),
        };
        let settings = &self.settings;
        let bounds = Bounds {
            budget: if at_once { INLINE_BUDGET.min(settings.max_cost) } else { settings.max_cost },
            max_bytes: settings.max_bytes,
            max_blocks: settings.max_blocks,
            max_logs_range: settings.max_logs_range,
            max_logs: settings.max_logs,
            max_asks: settings.max_calls,
            deadline: deadline_after(deadline_s),
        };
        let (engine, query) = (&self.engine, &self.query);
        let (snapshot, outcome) = py.detach(|| -> Result<_> {
            let snapshot = inner.snapshot()?;
            let outcome = Run::new(engine, &snapshot, query, &inputs, bounds.clone(), None)?.finish()?;
            Ok((snapshot, outcome))
        })?;
        if at_once && matches!(outcome, Outcome::Exhausted(_)) {
            query.note_heavy();
            return Ok(py.None().into_bound(py));
        }
        if let Outcome::Asks(asks) = outcome {
            let held = Held { snapshot, inputs, bounds: Bounds { budget: settings.max_cost, ..bounds } };
            let (engine, query) = (engine.clone(), query.clone());
            return GraphqlRound { engine, query, asks: Arc::new(asks), held: Mutex::new(held) }.into_bound_py_any(py);
        }
        answer(py, outcome)
    }
}

fn answer(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyAny>> {
    let (status, body) = match outcome {
        Outcome::Answer { is_ok, body } => (if is_ok { OK } else { BAD_REQUEST }, body),
        Outcome::Exhausted(what) => (BAD_REQUEST, complaints::refusal(&[Entry::aborted(what.into())])),
        Outcome::Asks(_) => unreachable!("a second round asks nothing"),
    };
    (status, to_bytes(py, body)).into_bound_py_any(py)
}

/// What a request needs from the node, and the snapshot in which it goes on.
#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlRound {
    engine: Arc<Engine>,
    query: Arc<Query>,
    asks: Arc<Vec<Ask>>,
    held: Mutex<Held>,
}

struct Held {
    snapshot: Snapshot,
    inputs: Inputs,
    bounds: Bounds,
}

#[pymethods]
impl GraphqlRound {
    #[getter]
    fn asks(&self) -> Vec<GraphqlAsk> {
        (0..self.asks.len()).map(|position| GraphqlAsk { asks: self.asks.clone(), position }).collect()
    }

    /// Run again with the replies, in the order of the asks.
    #[pyo3(signature = (replies, /))]
    fn resume<'py>(&self, py: Python<'py>, replies: Vec<Py<GraphqlReply>>) -> PyResult<Bound<'py, PyAny>> {
        let replies: Vec<Reply> = replies.iter().map(|reply| reply.get().reply.clone()).collect();
        let outcome = py.detach(|| -> Result<_> {
            let held = self.held.lock().expect("no panic while locked");
            let Held { snapshot, inputs, bounds } = &*held;
            Run::new(&self.engine, snapshot, &self.query, inputs, bounds.clone(), Some(&replies))?.finish()
        })?;
        answer(py, outcome)
    }
}

/// One thing for the node to do.
#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlAsk {
    asks: Arc<Vec<Ask>>,
    position: usize,
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
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
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
    fn gas_price<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.gas_price)
    }

    #[getter]
    fn max_fee_per_gas<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.max_fee_per_gas)
    }

    #[getter]
    fn max_priority_fee_per_gas<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.max_priority_fee_per_gas)
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.amount(py, |call| call.value)
    }

    /// Call data, or the transaction to be sent.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        match self.ask() {
            Ask::Call { call, .. } => to_bytes(py, call.data.as_ref().map_or(&[][..], AsRef::as_ref)),
            Ask::Send(raw) => to_bytes(py, raw),
        }
    }
}

/// What became of an ask.
#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlReply {
    reply: Reply,
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<GraphqlEngine>()?;
    module.add_class::<GraphqlQuery>()?;
    module.add_class::<GraphqlRound>()?;
    module.add_class::<GraphqlAsk>()?;
    module.add_class::<GraphqlReply>()
}
