//! Traces of blocks, transactions and calls: each function starts a thread and returns the stream of its JSON text.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{Address, B256, U256};
use ophion_execution::call::call_request::CallRequest;
use ophion_execution::evm::block_environment::BlockEnv;
use ophion_execution::evm::context::tx_env;
use ophion_execution::evm::database::ExecDb;
use ophion_execution::evm::evm_builder;
use ophion_execution::evm::overrides::{AccountOverride, overridden};
use ophion_execution::evm::precompiles::Precompiles;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, raw};
use ophion_storage::chain::body::BodyData;
use ophion_storage::state::StateData;

use super::tracer_selection::{Job, Kind, with_tracer};
use crate::flat::blocks::{FlatList, Selection, write_reward};
use crate::flat::entries::separate;
use crate::output::stream::Stream;
use crate::parity::tracer::{ParityOptions, ParityTracer};
use crate::replay::block::{Block, Tracer, start, trace_one};

/// A block to trace, with the state of its parent and its rewards.
pub struct TracedBlock {
    pub parent: StateData,
    pub env: BlockEnv,
    pub body: Arc<BodyData>,
    pub hash: B256,
    /// Rewards of the block, then of its ommers.
    pub rewards: Vec<(Address, U256)>,
}

impl TracedBlock {
    pub fn block(&self) -> Block<'_> {
        Block { parent: &self.parent, env: &self.env, body: &self.body, hash: self.hash }
    }
}

struct TransactionJob<'a>(&'a TracedBlock, usize);

impl Job for TransactionJob<'_> {
    fn run<T: Tracer>(self, tracer: T) -> Result<()> {
        self.0.block().trace(tracer, self.1, 1, |_, _| Ok(()), |_, _| Ok(()))
    }
}

pub fn trace_transaction(block: Arc<TracedBlock>, index: usize, kind: Kind, deadline: Instant) -> Result<Stream> {
    Stream::start(deadline, move |sink| with_tracer(kind, sink, block.env.fork.spec, TransactionJob(&block, index)))
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

/// Trace all transactions of a block. With `is_wrapped`, each result contains its transaction hash.
pub fn trace_block(block: Arc<TracedBlock>, kind: Kind, is_wrapped: bool, deadline: Instant) -> Result<Stream> {
    Stream::start(deadline, move |sink| {
        raw(&mut sink.out, "[");
        with_tracer(kind, sink, block.env.fork.spec, BlockJob { block: &block, is_wrapped })?;
        raw(&mut sink.out, "]");
        Ok(())
    })
}

struct CallJob<'a> {
    state: &'a StateData,
    env: &'a BlockEnv,
    request: &'a CallRequest,
    overrides: &'a [Arc<AccountOverride>],
}

impl Job for CallJob<'_> {
    fn run<T: Tracer>(self, tracer: T) -> Result<()> {
        let overrides: Vec<&AccountOverride> = self.overrides.iter().map(Arc::as_ref).collect();
        let db = overridden(self.state, self.env, &overrides)?;
        let mut evm = start(self.env, db, self.request.cfg(self.env), tracer);
        evm.precompiles = Precompiles::overridden(self.env, &overrides)?;
        trace_one(&mut evm, self.request.transaction(self.env.fork), None)
    }
}

pub fn trace_call(
    state: StateData,
    env: BlockEnv,
    request: Arc<CallRequest>,
    overrides: Vec<Arc<AccountOverride>>,
    kind: Kind,
    deadline: Instant,
) -> Result<Stream> {
    Stream::start(deadline, move |sink| {
        let job = CallJob { state: &state, env: &env, request: &request, overrides: &overrides };
        with_tracer(kind, sink, env.fork.spec, job)
    })
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
            trace_one(&mut evm, tx_env(tx, known.sender), None)?;
        }
        Ok(())
    }
}

/// Trace a signed transaction outside of a block. Transaction rules apply, but block rules do not.
pub fn trace_signed(
    state: StateData,
    env: BlockEnv,
    body: Arc<BodyData>,
    kind: Kind,
    deadline: Instant,
) -> Result<Stream> {
    Stream::start(deadline, move |sink| {
        with_tracer(kind, sink, env.fork.spec, SignedJob { state: &state, env: &env, body: &body })
    })
}

/// Trace calls one after the other, each on the state after the previous call. All calls have the kind `Parity`. As in
/// Besu 21.10, SSTORE gas refers to the state before the first call.
pub fn trace_calls(
    state: StateData,
    env: BlockEnv,
    calls: Vec<(Arc<CallRequest>, Kind)>,
    deadline: Instant,
) -> Result<Stream> {
    let nothing = ParityOptions { with_trace: false, with_vm_trace: false, with_state_diff: false };
    Stream::start(deadline, move |sink| {
        let db = ExecDb::new(state.open()?, env.ancestors());
        raw(&mut sink.out, "[");
        let mut evm = start(&env, db, env.cfg(), ParityTracer::new(sink, nothing, env.fork.spec));
        evm_builder::count_from_start(&env, &mut evm);
        for (at, (request, kind)) in calls.iter().enumerate() {
            let tracer = &mut evm.inspector.0;
            raw(&mut tracer.sink().out, if at > 0 { "," } else { "" });
            if let Kind::Parity(options) = *kind {
                tracer.change(options, env.fork.spec);
            }
            evm.ctx.cfg = request.cfg(&env);
            trace_one(&mut evm, request.transaction(env.fork), None)?;
        }
        raw(&mut evm.inspector.0.sink().out, "]");
        Ok(())
    })
}

/// Trace blocks or one transaction; the result is one list of flat traces.
pub fn trace_flat(
    blocks: Vec<Arc<TracedBlock>>,
    index: Option<usize>,
    mut selection: Selection,
    deadline: Instant,
) -> Result<Stream> {
    Stream::start(deadline, move |sink| {
        let mut is_first = true;
        raw(&mut sink.out, "[");
        for block in &blocks {
            if selection.is_complete() {
                break;
            }
            let (first, count) = index.map_or((0, usize::MAX), |index| (index, 1));
            let tracer = FlatList::tracer(sink, &mut selection, &mut is_first);
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
    })
}
