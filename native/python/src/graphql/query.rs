//! A validated query. It runs in one step, or in rounds if the node must do tasks in between.

use std::sync::{Arc, Mutex};

use alloy_primitives::U256;
use ophion_graphql::document::error_entries::{self, Entry};
use ophion_graphql::document::fields::Field;
use ophion_graphql::request::engine::{Engine, Query};
use ophion_graphql::run::plan_execution::Run;
use ophion_graphql::run::run_inputs::{Ask, Bounds, Inputs, Outcome, Pooled, Reply};
use ophion_graphql::values::value::Value;
use ophion_primitives::deadline;
use ophion_primitives::errors::Result;
use ophion_storage::store::Snapshot;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::node_requests::{GraphqlAsk, GraphqlReply};
use super::text::GraphqlText;
use crate::chain::body::Transaction;
use crate::chain::store::Store;
use crate::values::convert::{Hash, Wide, to_bytes};
use crate::values::errors::Answer;

const OK: u16 = 200;
const BAD_REQUEST: u16 = 400;
/// Minimum response length in bytes for which Python gets the text without a copy.
const LARGE: usize = 64 * 1024;
/// Maximum cost of a query on the event loop; the cost corresponds to about 1 ms.
const INLINE_BUDGET: u64 = 10_000;

/// Settings of all GraphQL requests.
#[derive(Clone, Copy)]
pub struct Settings {
    pub chain_id: u64,
    pub protocol_version: u32,
    pub shows_hex: bool,
    pub max_cost: u64,
    pub max_bytes: usize,
    pub max_blocks: u64,
    pub max_calls: usize,
    pub max_logs_range: u64,
    pub max_logs: usize,
}

#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlQuery {
    pub engine: Arc<Engine>,
    pub settings: Settings,
    pub query: Arc<Query>,
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

    /// Return the hashes of transactions that the request names and that may be in the pool.
    #[getter]
    fn transactions<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let roots = self.query.plan.nodes.iter().filter(|node| node.field == Field::QueryTransaction);
        let hash = |first: usize| match &self.query.values[first] {
            Value::Hash(hash) => Some(to_bytes(py, hash)),
            _ => None,
        };
        roots.filter_map(|node| hash(node.first_argument)).collect()
    }

    /// Run the query. Returns status and body, or a round with tasks for the node, or None if the query is too
    /// expensive for the event loop.
    #[pyo3(signature = (store, head_hash, head_number, at_once, deadline_s, *, gas_price=None, priority_fee=None,
        next_base_fee=None, syncing=None, pool=vec![], named=vec![], oldest_state=0))]
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
        oldest_state: u64,
    ) -> Answer<Bound<'py, PyAny>> {
        let inner = store.get().inner()?;
        let pooled = |given: Vec<Py<Transaction>>| {
            given.iter().map(|one| Pooled { tx: one.get().tx.clone(), known: one.get().known }).collect::<Vec<_>>()
        };
        let wide = |given: Option<Wide>| given.map_or(U256::ZERO, |given| given.0);
        let inputs = Inputs {
            head: (head_hash.0, head_number),
            oldest_state,
            chain_id: self.settings.chain_id,
            protocol_version: self.settings.protocol_version,
            shows_hex: self.settings.shows_hex,
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
            deadline: deadline::after(deadline_s),
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
            let round = GraphqlRound { engine, query, asks: Arc::new(asks), held: Mutex::new(held) };
            return Ok(round.into_bound_py_any(py)?);
        }
        answer(py, outcome)
    }
}

fn answer(py: Python<'_>, outcome: Outcome) -> Answer<Bound<'_, PyAny>> {
    let (status, body) = match outcome {
        Outcome::Answer { is_ok, body } => (if is_ok { OK } else { BAD_REQUEST }, body),
        Outcome::Exhausted(what) => (BAD_REQUEST, error_entries::refusal(&[Entry::aborted(what.into())])),
        Outcome::Asks(_) => unreachable!("a second round asks nothing"),
    };
    Ok(match body.len() < LARGE {
        true => (status, to_bytes(py, body)).into_bound_py_any(py)?,
        false => (status, GraphqlText::new(body)).into_bound_py_any(py)?,
    })
}

/// Tasks of a query, and the snapshot on which the query continues.
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

    /// Run the query again with the results, which are in the order of the tasks.
    #[pyo3(signature = (replies, /))]
    fn resume<'py>(&self, py: Python<'py>, replies: Vec<Py<GraphqlReply>>) -> Answer<Bound<'py, PyAny>> {
        let replies: Vec<Reply> = replies.iter().map(|reply| reply.get().reply.clone()).collect();
        let outcome = py.detach(|| -> Result<_> {
            let held = self.held.lock().expect("no panic while locked");
            let Held { snapshot, inputs, bounds } = &*held;
            Run::new(&self.engine, snapshot, &self.query, inputs, bounds.clone(), Some(&replies))?.finish()
        })?;
        answer(py, outcome)
    }
}
