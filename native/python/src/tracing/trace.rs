//! Python bindings of traces. Each function starts a thread and returns the stream of the trace's JSON text.

use std::sync::Arc;

use ophion_primitives::deadline;
use ophion_tracing::calls::call_tracer::CallOptions;
use ophion_tracing::calls::erc7562_tracer::ValidationOptions;
use ophion_tracing::flat::blocks::Selection;
use ophion_tracing::flat::flat_call_tracer::FlatCallOptions;
use ophion_tracing::jobs::streams;
use ophion_tracing::jobs::tracer_selection::Kind;
use ophion_tracing::output::stream::Stream;
use ophion_tracing::parity::tracer::ParityOptions;
use ophion_tracing::state::prestate_tracer::PrestateOptions;
use ophion_tracing::struct_logs::besu_struct_log::StructOptions;
use ophion_tracing::struct_logs::geth_struct_log::{OpcodeSet, StandardOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::chain::body::Body;
use crate::chain::state::State;
use crate::execution::block::rewards_of;
use crate::execution::call::{AccountOverride, CallRequest};
use crate::execution::env::BlockEnv;
use crate::values::convert::{Addr, Hash, Wide};
use crate::values::errors::Answer;

/// A running trace, read as a stream of JSON text.
#[pyclass(frozen, module = "ophion._native")]
pub struct TraceStream {
    pub stream: Stream,
}

#[pymethods]
impl TraceStream {
    fn next<'py>(&self, py: Python<'py>) -> Answer<Option<Bound<'py, PyBytes>>> {
        Ok(py.detach(|| self.stream.next())?.map(|chunks| joined(py, &chunks)).transpose()?)
    }

    fn close(&self) {
        self.stream.close();
    }
}

fn joined<'py>(py: Python<'py>, chunks: &[Vec<u8>]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, chunks.iter().map(Vec::len).sum(), |bytes| {
        let mut rest = bytes;
        for chunk in chunks {
            let (place, after) = rest.split_at_mut(chunk.len());
            place.copy_from_slice(chunk);
            rest = after;
        }
        Ok(())
    })
}

/// A block to trace, with the state of its parent and the rewards of the block and its ommers.
#[pyclass(frozen, module = "ophion._native")]
pub struct TracedBlock {
    pub block: Arc<streams::TracedBlock>,
}

#[pymethods]
impl TracedBlock {
    #[new]
    #[pyo3(signature = (*, parent, env, body, hash, rewards=vec![]))]
    fn new(
        parent: &Bound<'_, State>,
        env: &Bound<'_, BlockEnv>,
        body: &Bound<'_, Body>,
        hash: Hash,
        rewards: Vec<(Addr, Wide)>,
    ) -> Self {
        let block = streams::TracedBlock {
            parent: parent.get().data.clone(),
            env: env.get().env.clone(),
            body: body.get().data.clone(),
            hash: hash.0,
            rewards: rewards_of(rewards),
        };
        TracedBlock { block: Arc::new(block) }
    }
}

/// A kind of trace that Python can request.
#[pyclass(frozen, module = "ophion._native")]
pub struct TraceKind {
    kind: Kind,
}

#[pymethods]
impl TraceKind {
    #[staticmethod]
    #[pyo3(signature = (*, storage, memory, stack))]
    fn struct_logs(storage: bool, memory: bool, stack: bool) -> Self {
        let options = StructOptions { with_storage: storage, with_memory: memory, with_stack: stack };
        TraceKind { kind: Kind::Struct(options) }
    }

    #[staticmethod]
    #[pyo3(signature = (*, storage, memory, stack, return_data, limit, opcodes, only=None))]
    fn standard_logs(
        storage: bool,
        memory: bool,
        stack: bool,
        return_data: bool,
        limit: Option<u64>,
        opcodes: Option<Vec<String>>,
        only: Option<u64>,
    ) -> Self {
        let options = StandardOptions {
            with_storage: storage,
            with_memory: memory,
            with_stack: stack,
            with_return_data: return_data,
            limit,
            only,
            opcodes: opcodes.map(|names| OpcodeSet::of(&names)),
        };
        TraceKind { kind: Kind::Standard(options) }
    }

    #[staticmethod]
    #[pyo3(signature = (*, only_top_call=false, with_log=false, with_pc=false))]
    fn calls(only_top_call: bool, with_log: bool, with_pc: bool) -> Self {
        TraceKind { kind: Kind::Call(CallOptions { only_top_call, with_log, with_pc }) }
    }

    #[staticmethod]
    #[pyo3(signature = (*, diff=false, code=true, storage=true, empty=false))]
    fn prestate(diff: bool, code: bool, storage: bool, empty: bool) -> Self {
        let options = PrestateOptions { is_diff: diff, with_code: code, with_storage: storage, with_empty: empty };
        TraceKind { kind: Kind::Prestate(options) }
    }

    #[staticmethod]
    fn selectors() -> Self {
        TraceKind { kind: Kind::FourByte }
    }

    #[staticmethod]
    #[pyo3(signature = (*, precompiles=false, trace_errors=false))]
    fn flat_calls(precompiles: bool, trace_errors: bool) -> Self {
        let options = FlatCallOptions { with_precompiles: precompiles, with_trace_errors: trace_errors };
        TraceKind { kind: Kind::FlatCall(options) }
    }

    #[staticmethod]
    #[pyo3(signature = (*, trace, vm_trace, state_diff))]
    fn replay(trace: bool, vm_trace: bool, state_diff: bool) -> Self {
        let options = ParityOptions { with_trace: trace, with_vm_trace: vm_trace, with_state_diff: state_diff };
        TraceKind { kind: Kind::Parity(options) }
    }

    #[staticmethod]
    #[pyo3(signature = (*, ignored_opcodes=None, with_log=false))]
    fn validation(ignored_opcodes: Option<Vec<u8>>, with_log: bool) -> Self {
        TraceKind { kind: Kind::Validation(ValidationOptions::new(ignored_opcodes.as_deref(), with_log)) }
    }
}

#[pyfunction]
#[pyo3(signature = (block, index, kind, deadline_s, /))]
fn trace_transaction(
    block: &Bound<'_, TracedBlock>,
    index: usize,
    kind: &Bound<'_, TraceKind>,
    deadline_s: f64,
) -> Answer<TraceStream> {
    let block = block.get().block.clone();
    if index >= block.body.txs.len() {
        return Err(PyValueError::new_err("the block has no such transaction").into());
    }
    let stream = streams::trace_transaction(block, index, kind.get().kind, deadline::after(deadline_s))?;
    Ok(TraceStream { stream })
}

#[pyfunction]
#[pyo3(signature = (block, kind, wrapped, deadline_s, /))]
fn trace_block(
    block: &Bound<'_, TracedBlock>,
    kind: &Bound<'_, TraceKind>,
    wrapped: bool,
    deadline_s: f64,
) -> Answer<TraceStream> {
    let block = block.get().block.clone();
    Ok(TraceStream { stream: streams::trace_block(block, kind.get().kind, wrapped, deadline::after(deadline_s))? })
}

#[pyfunction]
#[pyo3(signature = (state, env, request, overrides, kind, deadline_s, /))]
fn trace_call(
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    request: &Bound<'_, CallRequest>,
    overrides: Vec<Py<AccountOverride>>,
    kind: &Bound<'_, TraceKind>,
    deadline_s: f64,
) -> Answer<TraceStream> {
    let (state, env, request) = (state.get().data.clone(), env.get().env.clone(), request.get().inner.clone());
    let overrides = overrides.iter().map(|one| one.get().inner.clone()).collect();
    let deadline = deadline::after(deadline_s);
    Ok(TraceStream { stream: streams::trace_call(state, env, request, overrides, kind.get().kind, deadline)? })
}

/// Trace a signed transaction outside of a block. Transaction rules apply, but block rules do not.
#[pyfunction]
#[pyo3(signature = (state, env, body, kind, deadline_s, /))]
fn trace_signed(
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    body: &Bound<'_, Body>,
    kind: &Bound<'_, TraceKind>,
    deadline_s: f64,
) -> Answer<TraceStream> {
    let (state, env, body) = (state.get().data.clone(), env.get().env.clone(), body.get().data.clone());
    let deadline = deadline::after(deadline_s);
    Ok(TraceStream { stream: streams::trace_signed(state, env, body, kind.get().kind, deadline)? })
}

#[pyfunction]
#[pyo3(signature = (state, env, calls, deadline_s, /))]
fn trace_calls(
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    calls: Vec<(Py<CallRequest>, Py<TraceKind>)>,
    deadline_s: f64,
) -> Answer<TraceStream> {
    let (state, env) = (state.get().data.clone(), env.get().env.clone());
    let calls = calls.iter().map(|(request, kind)| (request.get().inner.clone(), kind.get().kind)).collect();
    Ok(TraceStream { stream: streams::trace_calls(state, env, calls, deadline::after(deadline_s))? })
}

/// Trace blocks or one transaction; the result is one list of flat traces.
#[pyfunction]
#[pyo3(signature = (blocks, index, senders, recipients, skip, max, address, deadline_s, /))]
#[allow(clippy::too_many_arguments)]
fn trace_flat(
    blocks: Vec<Py<TracedBlock>>,
    index: Option<usize>,
    senders: Vec<Addr>,
    recipients: Vec<Addr>,
    skip: u64,
    max: u64,
    address: Option<Vec<usize>>,
    deadline_s: f64,
) -> Answer<TraceStream> {
    let selection = Selection {
        from: senders.into_iter().map(|one| one.0).collect(),
        to: recipients.into_iter().map(|one| one.0).collect(),
        skip,
        left: max,
        address,
    };
    let blocks = blocks.iter().map(|block| block.get().block.clone()).collect();
    Ok(TraceStream { stream: streams::trace_flat(blocks, index, selection, deadline::after(deadline_s))? })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TraceStream>()?;
    module.add_class::<TracedBlock>()?;
    module.add_class::<TraceKind>()?;
    module.add_function(wrap_pyfunction!(trace_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(trace_block, module)?)?;
    module.add_function(wrap_pyfunction!(trace_call, module)?)?;
    module.add_function(wrap_pyfunction!(trace_calls, module)?)?;
    module.add_function(wrap_pyfunction!(trace_signed, module)?)?;
    module.add_function(wrap_pyfunction!(trace_flat, module)?)
}
