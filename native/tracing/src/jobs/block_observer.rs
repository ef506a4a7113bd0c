//! Re-executes a block without writing JSON, and passes the traces and state changes of each transaction to an
//! observer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use revm::context::TxEnv;
use revm::inspector::Inspector;

use crate::flat::besu_flat_traces::list;
use crate::flat::call_events::CallEvents;
use crate::flat::entries::Entry;
use crate::output::sink::Sink;
use crate::parity::state_diff::{AccountDiff, visit_diff};
use crate::replay::block::{Block, Ran, Tracer};
use crate::replay::recording::{Recording, Report};

/// Receives the transactions of a block, in order.
pub trait BlockObserver {
    /// Handle the flat trace of a transaction, in the form of trace_block.
    fn entries(&mut self, ran: &Ran, entries: &[Entry]);

    /// Handle an account that a transaction changes: the stateDiff of trace_replayBlockTransactions.
    fn change(&mut self, ran: &Ran, db: &mut ExecDb, diff: &AccountDiff<'_>) -> Result<()>;
}

/// Selects what an observer receives: flat traces, state changes or both.
#[derive(Clone, Copy)]
pub struct Parts {
    pub entries: bool,
    pub changes: bool,
}

/// Execute a block once and pass the selected parts of each transaction to the observer.
pub fn visit(
    block: &Block<'_>,
    is_stopped: &Arc<AtomicBool>,
    parts: Parts,
    observer: &mut impl BlockObserver,
) -> Result<()> {
    let mut sink = Sink::without_reader(is_stopped.clone());
    if parts.entries {
        let report = EntryReport { observer, with_changes: parts.changes };
        let tracer = Recording::new(&mut sink, CallEvents::default(), report);
        return block.trace(tracer, 0, usize::MAX, |_, _| Ok(()), |_, _| Ok(()));
    }
    block.trace(ChangeTracer { sink, observer }, 0, usize::MAX, |_, _| Ok(()), |_, _| Ok(()))
}

struct EntryReport<'v, V> {
    observer: &'v mut V,
    with_changes: bool,
}

impl<V: BlockObserver> Report for EntryReport<'_, V> {
    type Recorder = CallEvents;

    fn write(&mut self, _: &mut Sink, recorder: &mut CallEvents, ran: &Ran) {
        self.observer.entries(ran, &list(recorder, &ran.tx, &ran.result));
    }

    fn write_changes(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        if !self.with_changes {
            return Ok(());
        }
        visit_diff(db, &ran.changes, |db, diff| self.observer.change(ran, db, diff))
    }
}

/// A tracer that passes state changes to an observer. It needs no hook per instruction, so the EVM runs without an
/// inspector.
struct ChangeTracer<'v, V> {
    sink: Sink,
    observer: &'v mut V,
}

impl<V> Inspector<EvmContext> for ChangeTracer<'_, V> {}

impl<V: BlockObserver> Tracer for ChangeTracer<'_, V> {
    const INSPECTS: bool = false;

    fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    fn begin(&mut self, _: &TxEnv) {}

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        visit_diff(db, &ran.changes, |db, diff| self.observer.change(ran, db, diff))
    }
}
