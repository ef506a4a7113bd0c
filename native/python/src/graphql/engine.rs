//! Python binding of the GraphQL engine, which parses requests into validated queries.

use std::sync::Arc;

use ophion_graphql::document::error_entries::{self, Entry};
use ophion_graphql::document::planner::Limits;
use ophion_graphql::request::body::Request;
use ophion_graphql::request::engine::{Engine, Query};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::query::{GraphqlQuery, Settings};
use crate::values::convert::to_bytes;
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct GraphqlEngine {
    engine: Arc<Engine>,
    settings: Settings,
}

#[pymethods]
impl GraphqlEngine {
    #[new]
    #[pyo3(signature = (schema, *, chain_id, protocol_version, shows_hex, max_tokens, max_depth, max_fields, max_cost, max_bytes,
        max_blocks, max_calls, max_logs_range, max_logs))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        schema: &str,
        chain_id: u64,
        protocol_version: u32,
        shows_hex: bool,
        max_tokens: usize,
        max_depth: usize,
        max_fields: usize,
        max_cost: u64,
        max_bytes: usize,
        max_blocks: u64,
        max_calls: usize,
        max_logs_range: u64,
        max_logs: usize,
    ) -> Answer<Self> {
        let engine = Engine::new(schema, max_tokens, Limits { max_fields, max_depth })?;
        let settings = Settings {
            chain_id,
            protocol_version,
            shows_hex,
            max_cost,
            max_bytes,
            max_blocks,
            max_calls,
            max_logs_range,
            max_logs,
        };
        Ok(GraphqlEngine { engine: Arc::new(engine), settings })
    }

    /// Parse a JSON request. Returns a query, or for an invalid request the error response as `bytes`.
    #[pyo3(signature = (body, /))]
    fn read<'py>(&self, py: Python<'py>, body: &[u8]) -> Answer<Bound<'py, PyAny>> {
        let prepared = py.detach(|| {
            let Request { document, operation, variables } = Request::read(body)?;
            self.engine.prepare(document, operation.as_deref(), variables.as_deref())
        });
        self.prepared(py, prepared)
    }

    /// Parse a request from its parts. `variables` is JSON text.
    #[pyo3(signature = (document, operation, variables, /))]
    fn read_parts<'py>(
        &self,
        py: Python<'py>,
        document: String,
        operation: Option<&str>,
        variables: Option<&str>,
    ) -> Answer<Bound<'py, PyAny>> {
        let prepared = py.detach(|| self.engine.prepare(document, operation, variables));
        self.prepared(py, prepared)
    }
}

impl GraphqlEngine {
    fn prepared<'py>(
        &self,
        py: Python<'py>,
        prepared: std::result::Result<Query, Vec<Entry>>,
    ) -> Answer<Bound<'py, PyAny>> {
        let (engine, settings) = (self.engine.clone(), self.settings);
        Ok(match prepared {
            Ok(query) => GraphqlQuery { engine, settings, query: Arc::new(query) }.into_bound_py_any(py)?,
            Err(entries) => to_bytes(py, error_entries::refusal(&entries)).into_any(),
        })
    }
}
