//! Re-executes a block without writing JSON, and passes the traces and state changes of each transaction to an
//! observer.
//!
//! ```text
//! a transfer to an account without code   replay/plain_transfer.rs: no EVM; reads accounts only for state changes
//! most other transactions                 flat/frame_entries.rs: the EVM without an inspector
//! the rest                                flat/call_events.rs: an inspector sees every instruction
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::{Address, B256, Log, U256};
use ophion_execution::block::block_execution::Run;
use ophion_execution::evm::context::tx_env;
use ophion_execution::evm::database::ExecDb;
use ophion_execution::evm::evm_builder::db;
use ophion_execution::evm::return_gas;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::{Known, Tx};
use revm::context::ContextSetters;
use revm::context_interface::result::{EVMError, ExecutionResult};
use revm::handler::{ExecuteEvm, Handler, PrecompileProvider};
use revm::primitives::hardfork::SpecId;

use crate::flat::besu_flat_traces::list;
use crate::flat::call_events::CallEvents;
use crate::flat::entries::Entry;
use crate::flat::frame_entries::{FrameEntries, FrameHandler};
use crate::jobs::streams::TracedBlock;
use crate::output::sink::Sink;
use crate::parity::state_diff::{AccountDiff, visit_diff};
use crate::replay::block::{Block, Place, Ran, Tracing, start, trace_one};
use crate::replay::kept_journal;
use crate::replay::plain_transfer::{self, TRANSFER_GAS, Touched};
use crate::replay::recording::{Recording, Report};

/// Receives the transactions of a block, in order.
pub trait BlockObserver {
    /// Handle the flat trace of a transaction, in the form of trace_block, and its logs.
    fn entries(&mut self, place: &Place, logs: &[Log], entries: &[Entry]);

    /// Handle the flat trace of a plain transfer.
    fn transfer(&mut self, place: &Place, transfer: &Transfer);

    /// Handle an account that a transaction changes: the stateDiff of trace_replayBlockTransactions.
    fn change(&mut self, place: &Place, db: &mut ExecDb, diff: &AccountDiff<'_>) -> Result<()>;
}

/// A transfer to an account without code, with the gas that the transaction offers to that account.
pub struct Transfer {
    pub from: Address,
    pub to: Address,
    pub gas: u64,
    pub value: U256,
}

/// Selects what an observer receives: flat traces, state changes or both.
#[derive(Clone, Copy)]
pub struct Parts {
    pub entries: bool,
    pub changes: bool,
}

/// The database after the transactions of an executed block. The execution of the next block need not read the same
/// accounts again.
pub struct Visited {
    hash: B256,
    db: ExecDb,
    /// Accounts that the block changes after its transactions; None if this list may be incomplete.
    changed_at_end: Option<Vec<Address>>,
    /// Upper bound of the number of accounts and slots in `db`.
    kept: usize,
}

/// Maximum number of accounts and slots to keep for the next block. Each takes at most 400 bytes.
const MAX_KEPT: usize = 100_000;

/// Execute a block once and pass the selected parts of each transaction to the observer. `previous` is the execution of
/// an earlier block; it is used if that block is the parent. `is_fast` allows the fast paths; only tests run without
/// them.
pub fn visit(
    block: &TracedBlock,
    previous: Option<Visited>,
    is_stopped: &Arc<AtomicBool>,
    parts: Parts,
    is_fast: bool,
    observer: &mut impl BlockObserver,
) -> Result<Visited> {
    let mut sink = Sink::without_reader(is_stopped.clone());
    let known = block.body.known()?;
    let (before, kept) = state_before(block, previous.filter(|_| is_fast))?;
    let before = Run::on(before, &block.parent, &block.env, false)?.into_db();
    let rewarded = block.rewards.iter().map(|(author, _)| *author);
    let withdrawn = block.body.withdrawals.iter().flatten().map(|one| one.address);
    let changed_at_end = rewarded.chain(withdrawn).collect();
    let block = &block.block();
    let proven =
        if parts.changes || !is_fast { Vec::new() } else { plain_transfer::proven(&before, block.env, &block.hash)? };
    // if the receipts show which transactions are plain transfers, these transfers read no account from the database,
    // so one journal can serve all transactions of the block
    let keeps_journal = is_fast && parts.entries && proven.len() == block.body.txs.len();
    let tracer = Recording::new(&mut sink, CallEvents::default(), ObserverReport { observer, parts });
    let mut evm = start(block.env, before, block.env.cfg(), tracer);
    return_gas::install(&mut evm);
    for (index, (tx, Known { hash, sender })) in block.body.txs.iter().zip(known).enumerate() {
        let place = Place { block_hash: block.hash, block_number: block.env.number, hash: *hash, index };
        evm.inspector.0.check()?;
        let is_proven = proven.get(index).copied();
        if is_fast && transfer(&mut evm, block, tx, *sender, &place, is_proven.filter(|_| keeps_journal))? {
            continue;
        }
        if keeps_journal {
            if run_on(&mut evm, tx, *sender, place)? {
                continue;
            }
            kept_journal::flush(&mut evm)?;
        } else if is_fast && run(&mut evm, tx, *sender, place)? {
            continue;
        }
        trace_one(&mut evm, tx_env(tx, *sender), Some(place)).map_err(|cause| match cause {
            Error::Refused(reason) => Error::InvalidBody(format!("transaction {index}: {reason}")),
            other => other,
        })?;
    }
    if keeps_journal {
        kept_journal::flush(&mut evm)?;
    }
    let mut db = evm.ctx.journaled_state.database;
    let changed_at_end = if has_request_contracts(&mut db, block)? { None } else { Some(changed_at_end) };
    let kept = kept + db.reads();
    Ok(Visited { hash: block.hash, db, changed_at_end, kept })
}

/// Open the state before a block. If `previous` is the execution of the parent, keep the accounts that it has read.
/// Also returns the number of kept accounts and slots.
fn state_before(block: &TracedBlock, previous: Option<Visited>) -> Result<(ExecDb, usize)> {
    let mut db = ExecDb::new(block.parent.open()?, block.env.ancestors());
    if let Some(Visited { hash, db: parent, changed_at_end: Some(changed), kept }) = previous
        && hash == block.env.parent_hash
        && kept <= MAX_KEPT
    {
        db.follow(parent, |address| changed.contains(address));
        return Ok((db, kept));
    }
    Ok((db, 0))
}

/// Return whether contracts run after the transactions of a block (EIP-7002 and EIP-7251). They may change any account.
fn has_request_contracts(db: &mut ExecDb, block: &Block<'_>) -> Result<bool> {
    if !block.env.fork.has(SpecId::PRAGUE) {
        return Ok(false);
    }
    let rules = &block.env.rules;
    for address in [rules.withdrawal_request_contract, rules.consolidation_request_contract] {
        if db.info(&address)?.is_some_and(|info| !info.is_empty_code_hash()) {
            return Ok(true);
        }
    }
    Ok(false)
}

type Observing<'s, 'v, V> = Tracing<Recording<'s, ObserverReport<'v, V>>>;

/// Apply a plain transfer without the EVM. Returns false if the transaction is no plain transfer. `is_proven` is
/// whether its receipt proves that no code ran, or None if the receipts were not read.
fn transfer<V: BlockObserver>(
    evm: &mut Observing<'_, '_, V>,
    block: &Block<'_>,
    tx: &Tx,
    sender: Address,
    place: &Place,
    is_proven: Option<bool>,
) -> Result<bool> {
    let Some(to) = plain_transfer::recipient(block.env, tx) else { return Ok(false) };
    if evm.precompiles.contains(&to) {
        return Ok(false);
    }
    let journal = &mut evm.ctx.journaled_state;
    let touched = match is_proven {
        Some(false) => return Ok(false),
        Some(true) => {
            plain_transfer::apply_proven(journal, block.env, tx, (sender, to))?;
            Vec::new()
        }
        None => {
            let db = &mut journal.database;
            let Some(touched) = plain_transfer::apply(db, block.env, tx, (sender, to))? else { return Ok(false) };
            touched
        }
    };
    let db = &mut journal.database;
    let ObserverReport { observer, parts } = evm.inspector.0.report();
    if parts.entries {
        let gas = tx.envelope.gas_limit() - TRANSFER_GAS;
        observer.transfer(place, &Transfer { from: sender, to, gas, value: tx.envelope.value() });
    }
    if parts.changes {
        for Touched { address, before, after } in touched {
            if let Some(diff) = AccountDiff::of_transfer(&address, before, after.as_ref()) {
                observer.change(place, db, &diff)?;
            }
        }
    }
    Ok(true)
}

/// Run a transaction without an inspector on the journal of the transactions before it. Returns false, without any
/// effect, if it needs the slow path.
fn run_on<V: BlockObserver>(evm: &mut Observing<'_, '_, V>, tx: &Tx, sender: Address, place: Place) -> Result<bool> {
    if db(evm).has_storage_only_account() {
        return Ok(false);
    }
    let tx = tx_env(tx, sender);
    let is_alone = kept_journal::needs_own_journal(&tx);
    if is_alone || kept_journal::is_full(evm) {
        kept_journal::flush(evm)?;
    }
    let mut frames = FrameEntries::default();
    evm.ctx.set_tx(tx);
    let result = FrameHandler::new(&mut frames).run(evm);
    let tx = std::mem::take(&mut evm.ctx.tx);
    let result = match result {
        Ok(result) => result,
        Err(EVMError::Database(cause)) => return Err(cause),
        Err(_) => return Ok(false),
    };
    let entries = frames.finish(&tx, &result);
    evm.inspector.0.report().observer.entries(&place, result.logs(), &entries);
    if is_alone {
        kept_journal::flush(evm)?;
    }
    Ok(true)
}

/// Run a transaction without an inspector. Returns false, without any effect, if it needs the slow path.
fn run<V: BlockObserver>(evm: &mut Observing<'_, '_, V>, tx: &Tx, sender: Address, place: Place) -> Result<bool> {
    if db(evm).has_storage_only_account() {
        return Ok(false);
    }
    let parts = evm.inspector.0.report().parts;
    let mut frames = FrameEntries::default();
    let tx = tx_env(tx, sender);
    let result: std::result::Result<ExecutionResult, EVMError<Error>> = if parts.entries {
        evm.ctx.set_tx(tx);
        FrameHandler::new(&mut frames).run(evm)
    } else {
        evm.transact_one(tx)
    };
    let changes = evm.finalize();
    let tx = std::mem::take(&mut evm.ctx.tx);
    let result = match result {
        Ok(result) if !db(evm).has_storage_only_account() => result,
        Err(EVMError::Database(cause)) => return Err(cause),
        _ => return Ok(false),
    };
    let entries = frames.finish(&tx, &result);
    let ran = Ran { tx, result, changes, place: Some(place) };
    let database = &mut evm.ctx.journaled_state.database;
    evm.inspector.0.report().pass(database, &ran, &entries)?;
    revm::database_interface::DatabaseCommit::commit(database, ran.changes);
    Ok(true)
}

/// Passes transactions to an observer.
struct ObserverReport<'v, V> {
    observer: &'v mut V,
    parts: Parts,
}

impl<V: BlockObserver> ObserverReport<'_, V> {
    fn pass(&mut self, db: &mut ExecDb, ran: &Ran, entries: &[Entry]) -> Result<()> {
        if self.parts.entries {
            self.observer.entries(place_of(ran), ran.result.logs(), entries);
        }
        self.write_changes(db, ran)
    }
}

impl<V: BlockObserver> Report for ObserverReport<'_, V> {
    type Recorder = CallEvents;

    fn write(&mut self, _: &mut Sink, recorder: &mut CallEvents, ran: &Ran) {
        if self.parts.entries {
            self.observer.entries(place_of(ran), ran.result.logs(), &list(recorder, &ran.tx, &ran.result));
        }
    }

    fn write_changes(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        if !self.parts.changes {
            return Ok(());
        }
        visit_diff(db, &ran.changes, |db, diff| self.observer.change(place_of(ran), db, diff))
    }
}

fn place_of(ran: &Ran) -> &Place {
    ran.place.as_ref().expect("a transaction of a block has a position")
}
