//! Re-executes a block without writing JSON, and passes the traces or changes of each transaction to a function.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use revm::context::TxEnv;
use revm::inspector::Inspector;

use crate::flat::call_events::CallEvents;
use crate::flat::entries::Entry;
use crate::flat::listing::list;
use crate::output::sink::Sink;
use crate::parity::diff::{AccountDiff, visit_diff};
use crate::replay::block::{Block, Ran, Tracer};
use crate::replay::recording::{Recording, Report};

struct EntryVisitor<F>(F);

impl<F: FnMut(&Ran, &[Entry])> Report for EntryVisitor<F> {
    type Recorder = CallEvents;

    fn write(&mut self, _: &mut Sink, recorder: &mut CallEvents, ran: &Ran) {
        (self.0)(ran, &list(recorder, &ran.tx, &ran.result));
    }
}

/// Visit each transaction with its flat trace in the form of trace_block.
pub fn visit_entries(block: &Block<'_>, is_stopped: &Arc<AtomicBool>, see: impl FnMut(&Ran, &[Entry])) -> Result<()> {
    let mut sink = Sink::without_reader(is_stopped.clone());
    let tracer = Recording::new(&mut sink, CallEvents::default(), EntryVisitor(see));
    block.trace(tracer, 0, usize::MAX, |_, _| Ok(()), |_, _| Ok(()))
}

struct ChangeVisitor<F> {
    sink: Sink,
    see: F,
}

impl<F> Inspector<EvmContext> for ChangeVisitor<F> {}

impl<F: FnMut(&Ran, &mut ExecDb, &AccountDiff<'_>) -> Result<()>> Tracer for ChangeVisitor<F> {
    fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    fn begin(&mut self, _: &TxEnv) {}

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        let see = &mut self.see;
        visit_diff(db, &ran.changes, |db, diff| see(ran, db, diff))
    }
}

/// Visit the accounts that each transaction changes: the stateDiff of trace_replayBlockTransactions.
pub fn visit_changes(
    block: &Block<'_>,
    is_stopped: &Arc<AtomicBool>,
    see: impl FnMut(&Ran, &mut ExecDb, &AccountDiff<'_>) -> Result<()>,
) -> Result<()> {
    let tracer = ChangeVisitor { sink: Sink::without_reader(is_stopped.clone()), see };
    block.trace(tracer, 0, usize::MAX, |_, _| Ok(()), |_, _| Ok(()))
}
