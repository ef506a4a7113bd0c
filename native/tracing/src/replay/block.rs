//! Re-executes transactions with a tracer.
//!
//! Earlier transactions of the block run through `Run`, as during import. Then an EVM with a tracer gets the database.
//! The changes of a traced transaction are committed before the next transaction runs.

use alloy_primitives::B256;
use ophion_execution::block::block_execution::Run;
use ophion_execution::call::eth_call::{BEYOND_ALL_MONEY, exceeds_any_balance};
use ophion_execution::call::outcome::refusal_text;
use ophion_execution::evm::block_environment::BlockEnv;
use ophion_execution::evm::context::{EvmContext, tx_env};
use ophion_execution::evm::create_collision::CollisionGuard;
use ophion_execution::evm::database::ExecDb;
use ophion_execution::evm::evm_builder::{self, Evm};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::{BodyData, Known};
use ophion_storage::state::StateData;
use revm::context::{CfgEnv, TxEnv};
use revm::context_interface::result::{EVMError, ExecutionResult};
use revm::database_interface::DatabaseCommit;
use revm::handler::ExecuteEvm;
use revm::inspector::{InspectEvm, Inspector};
use revm::state::EvmState;

use crate::output::sink::Sink;

pub type Tracing<T> = Evm<(T, CollisionGuard)>;

/// Position of a traced transaction in the chain.
#[derive(Clone, Copy)]
pub struct Place {
    pub block_hash: B256,
    pub block_number: u64,
    pub hash: B256,
    pub index: usize,
}

/// A finished traced transaction whose changes are not committed yet.
pub struct Ran {
    pub tx: TxEnv,
    pub result: ExecutionResult,
    pub changes: EvmState,
    /// Position of the transaction in the chain; None for calls.
    pub place: Option<Place>,
}

/// An inspector that writes a trace.
pub trait Tracer: Inspector<EvmContext> {
    /// Whether the tracer needs the hooks of `Inspector`. Without them, the EVM runs as during import.
    const INSPECTS: bool = true;

    fn sink(&mut self) -> &mut Sink;

    /// Return whether a transaction needs a first run before the run that writes the trace.
    fn begin_survey(&mut self) -> bool {
        false
    }

    /// Handle the start of a transaction that is traced.
    fn begin(&mut self, tx: &TxEnv);

    /// Write the result of a finished transaction. `db` still shows the state before the transaction.
    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()>;
}

/// A block to re-execute, with the state of its parent.
pub struct Block<'a> {
    pub parent: &'a StateData,
    pub env: &'a BlockEnv,
    pub body: &'a BodyData,
    pub hash: B256,
}

impl Block<'_> {
    /// Return the state before a transaction of the block.
    pub fn before(&self, index: usize, sink: &mut Sink) -> Result<ExecDb> {
        let known = self.body.known()?;
        let mut run = Run::start(self.parent, self.env, false)?;
        for (at, (tx, Known { sender, .. })) in self.body.txs.iter().zip(known).take(index).enumerate() {
            run.transact(tx, *sender).map_err(|refusal| refusal.at(at))?;
            sink.check()?;
        }
        Ok(run.into_db())
    }

    /// Trace transactions of the block in order.
    pub fn trace<T: Tracer>(
        &self,
        tracer: T,
        first: usize,
        count: usize,
        mut before: impl FnMut(&mut T, usize) -> Result<()>,
        mut after: impl FnMut(&mut T, usize) -> Result<()>,
    ) -> Result<()> {
        let mut tracer = tracer;
        let known = self.body.known()?;
        let db = self.before(first, tracer.sink())?;
        let mut evm = start(self.env, db, self.env.cfg(), tracer);
        for index in (first..self.body.txs.len()).take(count) {
            before(&mut evm.inspector.0, index)?;
            let Known { hash, sender } = known[index];
            let place = Place { block_hash: self.hash, block_number: self.env.number, hash, index };
            let tx = tx_env(&self.body.txs[index], sender);
            let outcome = trace_one(&mut evm, tx, Some(place));
            outcome.map_err(|cause| match cause {
                Error::Refused(reason) => Error::InvalidBody(format!("transaction {index}: {reason}")),
                other => other,
            })?;
            after(&mut evm.inspector.0, index)?;
        }
        Ok(())
    }
}

pub fn start<T: Tracer>(env: &BlockEnv, db: ExecDb, cfg: CfgEnv, tracer: T) -> Tracing<T> {
    evm_builder::build(env, db, cfg, (tracer, CollisionGuard))
}

/// Run one transaction with a tracer, let the tracer write its result, and commit the changes.
pub fn trace_one<T: Tracer>(evm: &mut Tracing<T>, tx: TxEnv, place: Option<Place>) -> Result<()> {
    if exceeds_any_balance(&tx) {
        return Err(Error::Refused(BEYOND_ALL_MONEY.into()));
    }
    if evm.inspector.0.begin_survey() {
        // ignore an error of this first run, because the second run, which writes the trace, gets the same error
        let _ = evm.inspect_one_tx(tx.clone());
        evm.finalize();
        evm.inspector.0.sink().check()?;
    }
    evm.inspector.0.begin(&tx);
    let result = if T::INSPECTS { evm.inspect_one_tx(tx) } else { run_plain(evm, tx) };
    let changes = evm.finalize();
    // move the transaction out of the EVM instead of copying it, because the next run sets another transaction
    let tx = std::mem::take(&mut evm.ctx.tx);
    let result = match result {
        Ok(result) => result,
        Err(EVMError::Database(cause)) => return Err(cause),
        Err(EVMError::Transaction(cause)) => return Err(Error::Refused(refusal_text(&cause))),
        Err(cause) => return Err(Error::Refused(format!("other: {cause}"))),
    };
    let Evm { ctx, inspector, .. } = evm;
    let db = &mut ctx.journaled_state.database;
    inspector.0.sink().check()?;
    let ran = Ran { tx, result, changes, place };
    inspector.0.finish(db, &ran)?;
    db.commit(ran.changes);
    Ok(())
}

/// Run a transaction without hooks. If it reads an account that has only storage, run it again with the check of
/// EIP-7610 (create_collision.rs).
fn run_plain<T: Tracer>(evm: &mut Tracing<T>, tx: TxEnv) -> std::result::Result<ExecutionResult, EVMError<Error>> {
    if !evm_builder::db(evm).has_storage_only_account() {
        let result = evm.transact_one(tx.clone());
        if !evm_builder::db(evm).has_storage_only_account() {
            return result;
        }
        evm.finalize();
    }
    evm.inspect_one_tx(tx)
}
