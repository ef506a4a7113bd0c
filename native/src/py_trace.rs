//! Tracing as Python asks for it: every function starts a thread and gives the stream of its JSON text.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use revm::primitives::hardfork::SpecId;

use crate::body::BodyData;
use crate::call::{AccountOverride, CallRequest};
use crate::convert::{Addr, Hash, Wide};
use crate::env::BlockEnv;
use crate::errors::Result;
use crate::evm;
use crate::exec_db::ExecDb;
use crate::json_text::{data, raw};
use crate::precompiles::Precompiles;
use crate::py_body::Body;
use crate::py_state::{State, deadline_after};
use crate::state::StateData;
use crate::trace_flat::{FlatCallOptions, FlatCallTracer, FlatTracer, Selection, separate, write_reward};
use crate::trace_geth::{CallTracer, FourByteTracer};
use crate::trace_parity::{ParityOptions, ParityTracer};
use crate::trace_prestate::{PrestateOptions, PrestateTracer};
use crate::trace_replay::{Block, Tracer, start, trace_one};
use crate::trace_sink::Sink;
use crate::trace_standard::{OpcodeSet, StandardOptions, StandardTracer};
use crate::trace_stream::TraceStream;
use crate::trace_struct::{StructOptions, StructTracer};

/// A block to be traced, with the state that it was built on and the rewards that end it.
#[pyclass(frozen, module = "ophion._native")]
pub struct TracedBlock {
    parent: StateData,
    env: BlockEnv,
    body: Arc<BodyData>,
    hash: B256,
    /// Of the block first, then of its ommers.
    rewards: Vec<(Address, U256)>,
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
        TracedBlock {
            parent: parent.get().data.clone(),
            env: env.get().clone(),
            body: body.get().data.clone(),
            hash: hash.0,
            rewards: rewards.into_iter().map(|(author, value)| (author.0, value.0)).collect(),
        }
    }
}

impl TracedBlock {
    fn block(&self) -> Block<'_> {
        Block { parent: &self.parent, env: &self.env, body: &self.body, hash: self.hash }
    }
}

/// What is written about a transaction.
#[pyclass(frozen, module = "ophion._native")]
#[derive(Clone, Copy)]
pub struct TraceKind {
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Struct(StructOptions),
    Standard(StandardOptions),
    Call { only_top_call: bool, with_log: bool },
    Prestate(PrestateOptions),
    FourByte,
    FlatCall(FlatCallOptions),
    Parity(ParityOptions),
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
    #[pyo3(signature = (*, storage, memory, stack, return_data, limit, opcodes))]
    fn standard_logs(
        storage: bool,
        memory: bool,
        stack: bool,
        return_data: bool,
        limit: Option<u64>,
        opcodes: Option<Vec<String>>,
    ) -> Self {
        let options = StandardOptions {
            with_storage: storage,
            with_memory: memory,
            with_stack: stack,
            with_return_data: return_data,
            limit,
            opcodes: opcodes.map(|names| OpcodeSet::of(&names)),
        };
        TraceKind { kind: Kind::Standard(options) }
    }

    #[staticmethod]
    #[pyo3(signature = (*, only_top_call=false, with_log=false))]
    fn calls(only_top_call: bool, with_log: bool) -> Self {
        TraceKind { kind: Kind::Call { only_top_call, with_log } }
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
}

/// Something to be done with a tracer of whichever kind.
trait Job {
    fn run<T: Tracer>(self, tracer: T) -> Result<()>;
}

fn with_tracer(kind: Kind, sink: &mut Sink, spec: SpecId, job: impl Job) -> Result<()> {
    match kind {
        Kind::Struct(options) => job.run(StructTracer::new(sink, options, spec)),
        Kind::Standard(options) => job.run(StandardTracer::new(sink, options, spec)),
        Kind::Call { only_top_call, with_log } => job.run(CallTracer::new(sink, only_top_call, with_log)),
        Kind::Prestate(options) => job.run(PrestateTracer::new(sink, options, spec)),
        Kind::FourByte => job.run(FourByteTracer::new(sink)),
        Kind::FlatCall(options) => job.run(FlatCallTracer::new(sink, options)),
        Kind::Parity(options) => job.run(ParityTracer::new(sink, options, spec)),
    }
}

struct TransactionJob<'a>(&'a TracedBlock, usize);

impl Job for TransactionJob<'_> {
    fn run<T: Tracer>(self, tracer: T) -> Result<()> {
        self.0.block().trace(tracer, self.1, 1, |_, _| Ok(()), |_, _| Ok(()))
    }
}

#[pyfunction]
#[pyo3(signature = (block, index, kind, deadline_s, /))]
fn trace_transaction(
    block: &Bound<'_, TracedBlock>,
    index: usize,
    kind: &Bound<'_, TraceKind>,
    deadline_s: f64,
) -> PyResult<TraceStream> {
    let (block, kind) = (block.clone().unbind(), kind.get().kind);
    if index >= block.get().body.txs.len() {
        return Err(PyValueError::new_err("the block has no such transaction"));
    }
    Ok(TraceStream::start(deadline_after(deadline_s), move |sink| {
        let block = block.get();
        with_tracer(kind, sink, block.env.fork.spec, TransactionJob(block, index))
    })?)
}

struct BlockJob<'a> {
    block: &'a TracedBlock,
    is_wrapped: bool,
}

impl Job for BlockJob<'_> {
    fn run<T: Tracer>(self, tracer: T) -> Result<()> {
        let known = self.block.body.known()?;
        let open = |tracer: &mut T, index: usize| {
            let out = &mut tracer.sink().out;
            raw(out, if index > 0 { "," } else { "" });
            if self.is_wrapped {
                data(out, "{\"txHash\":", known[index].hash);
                raw(out, ",\"result\":");
            }
            Ok(())
        };
        let close = |tracer: &mut T, _: usize| {
            raw(&mut tracer.sink().out, if self.is_wrapped { "}" } else { "" });
            Ok(())
        };
        self.block.block().trace(tracer, 0, usize::MAX, open, close)
    }
}

#[pyfunction]
#[pyo3(signature = (block, kind, wrapped, deadline_s, /))]
fn trace_block(
    block: &Bound<'_, TracedBlock>,
    kind: &Bound<'_, TraceKind>,
    wrapped: bool,
    deadline_s: f64,
) -> PyResult<TraceStream> {
    let (block, kind) = (block.clone().unbind(), kind.get().kind);
    Ok(TraceStream::start(deadline_after(deadline_s), move |sink| {
        let block = block.get();
        raw(&mut sink.out, "[");
        with_tracer(kind, sink, block.env.fork.spec, BlockJob { block, is_wrapped: wrapped })?;
        raw(&mut sink.out, "]");
        Ok(())
    })?)
}

struct CallJob<'a> {
    state: &'a StateData,
    env: &'a BlockEnv,
    request: &'a CallRequest,
    overrides: &'a [Py<AccountOverride>],
}

impl Job for CallJob<'_> {
    fn run<T: Tracer>(self, tracer: T) -> Result<()> {
        let mut db = ExecDb::new(self.state.open()?, self.env.ancestors());
        let overrides: Vec<&AccountOverride> = self.overrides.iter().map(Py::get).collect();
        for one in &overrides {
            one.apply(&mut db)?;
        }
        let mut evm = start(self.env, db, self.request.cfg(self.env), tracer);
        evm.precompiles = Precompiles::overridden(self.env.fork.spec, &overrides)?;
        trace_one(&mut evm, self.request.transaction(self.env.fork), None)
    }
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
) -> PyResult<TraceStream> {
    let (state, env, request) = (state.get().data.clone(), env.get().clone(), request.clone().unbind());
    let kind = kind.get().kind;
    Ok(TraceStream::start(deadline_after(deadline_s), move |sink| {
        let job = CallJob { state: &state, env: &env, request: request.get(), overrides: &overrides };
        with_tracer(kind, sink, env.fork.spec, job)
    })?)
}

struct SignedJob<'a> {
    state: &'a StateData,
    env: &'a BlockEnv,
    body: &'a BodyData,
}

impl Job for SignedJob<'_> {
    fn run<T: Tracer>(self, tracer: T) -> Result<()> {
        let db = ExecDb::new(self.state.open()?, self.env.ancestors());
        let mut cfg = self.env.cfg();
        cfg.disable_block_gas_limit = true;
        let mut evm = start(self.env, db, cfg, tracer);
        for (tx, known) in self.body.txs.iter().zip(self.body.known()?) {
            trace_one(&mut evm, evm::tx_env(tx, known.sender), None)?;
        }
        Ok(())
    }
}

/// A signed transaction that stands in no block: every rule of transactions applies, but none of blocks.
#[pyfunction]
#[pyo3(signature = (state, env, body, kind, deadline_s, /))]
fn trace_signed(
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    body: &Bound<'_, Body>,
    kind: &Bound<'_, TraceKind>,
    deadline_s: f64,
) -> PyResult<TraceStream> {
    let (state, env, body) = (state.get().data.clone(), env.get().clone(), body.get().data.clone());
    let kind = kind.get().kind;
    Ok(TraceStream::start(deadline_after(deadline_s), move |sink| {
        with_tracer(kind, sink, env.fork.spec, SignedJob { state: &state, env: &env, body: &body })
    })?)
}

#[pyfunction]
#[pyo3(signature = (state, env, calls, deadline_s, /))]
fn trace_calls(
    state: &Bound<'_, State>,
    env: &Bound<'_, BlockEnv>,
    calls: Vec<(Py<CallRequest>, Py<TraceKind>)>,
    deadline_s: f64,
) -> PyResult<TraceStream> {
    let (state, env) = (state.get().data.clone(), env.get().clone());
    let nothing = ParityOptions { with_trace: false, with_vm_trace: false, with_state_diff: false };
    Ok(TraceStream::start(deadline_after(deadline_s), move |sink| {
        let db = ExecDb::new(state.open()?, env.ancestors());
        raw(&mut sink.out, "[");
        let mut evm = start(&env, db, env.cfg(), ParityTracer::new(sink, nothing, env.fork.spec));
        for (at, (request, kind)) in calls.iter().enumerate() {
            let tracer = &mut evm.inspector.0;
            raw(&mut tracer.sink().out, if at > 0 { "," } else { "" });
            if let Kind::Parity(options) = kind.get().kind {
                tracer.change(options, env.fork.spec);
            }
            evm.ctx.cfg = request.get().cfg(&env);
            trace_one(&mut evm, request.get().transaction(env.fork), None)?;
        }
        raw(&mut evm.inspector.0.sink().out, "]");
        Ok(())
    })?)
}

/// Flat traces of whole blocks, or of one transaction, as one list.
#[pyfunction]
#[pyo3(signature = (blocks, index, senders, recipients, skip, most, address, deadline_s, /))]
#[allow(clippy::too_many_arguments)]
fn trace_flat(
    blocks: Vec<Py<TracedBlock>>,
    index: Option<usize>,
    senders: Vec<Addr>,
    recipients: Vec<Addr>,
    skip: u64,
    most: u64,
    address: Option<Vec<usize>>,
    deadline_s: f64,
) -> PyResult<TraceStream> {
    let mut selection = Selection {
        from: senders.into_iter().map(|one| one.0).collect(),
        to: recipients.into_iter().map(|one| one.0).collect(),
        skip,
        left: most,
        address,
    };
    Ok(TraceStream::start(deadline_after(deadline_s), move |sink| {
        let mut is_first = true;
        raw(&mut sink.out, "[");
        for block in blocks.iter().map(Py::get) {
            if selection.is_complete() {
                break;
            }
            let (first, count) = index.map_or((0, usize::MAX), |index| (index, 1));
            let tracer = FlatTracer::new(sink, &mut selection, &mut is_first);
            block.block().trace(tracer, first, count, |_, _| Ok(()), |_, _| Ok(()))?;
            let place = (block.hash, block.env.number);
            for (at, (author, value)) in block.rewards.iter().enumerate() {
                if index.is_none() && selection.takes_reward(author) {
                    separate(sink, &mut is_first);
                    write_reward(&mut sink.out, author, *value, at > 0, place);
                }
            }
            sink.settle();
        }
        raw(&mut sink.out, "]");
        Ok(())
    })?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TracedBlock>()?;
    module.add_class::<TraceKind>()?;
    module.add_function(wrap_pyfunction!(trace_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(trace_block, module)?)?;
    module.add_function(wrap_pyfunction!(trace_call, module)?)?;
    module.add_function(wrap_pyfunction!(trace_calls, module)?)?;
    module.add_function(wrap_pyfunction!(trace_signed, module)?)?;
    module.add_function(wrap_pyfunction!(trace_flat, module)?)
}
