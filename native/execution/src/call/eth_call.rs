//! eth_call: calls without lasting effects.

use std::cell::RefCell;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use alloy_primitives::{Bytes, U256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::state::{Layers, StateData, View};
use ophion_storage::trie::{EMPTY_ROOT, Trie};
use revm::context::{CfgEnv, TxEnv};
use revm::context_interface::result::{EVMError, ExecutionResult};
use revm::handler::ExecuteEvm;

use super::call_request::{self, CallRequest};
use super::outcome::{CallOutcome, refusal_text};
use crate::evm::block_environment::{BlockEnv, Fork};
use crate::evm::database::{Ancestors, ExecDb};
use crate::evm::deadline_watch;
use crate::evm::evm_builder::{self, Evm};
use crate::evm::overrides::{AccountOverride, overridden};
use crate::evm::precompiles::Precompiles;

/// Run a call on a state. The state does not change.
pub fn call(
    state: &StateData,
    env: &BlockEnv,
    request: &CallRequest,
    overrides: &[&AccountOverride],
    deadline: Instant,
) -> Result<CallOutcome> {
    let tx = request.transaction(env.fork);
    let outcome = with_evm(state, env, request.cfg(env), overrides, deadline, |evm| run_watched(evm, tx));
    or_refusal(outcome, |refused| refused)
}

/// Run the same call with several inputs. Each input runs on the unchanged state. Each run may take `limit`; all runs
/// share one read cache.
pub fn call_each(
    state: &StateData,
    env: &BlockEnv,
    request: &CallRequest,
    inputs: Vec<Bytes>,
    limit: Duration,
) -> Result<Vec<CallOutcome>> {
    let tx = request.transaction(env.fork);
    with_evm(state, env, request.cfg(env), &[], Instant::now() + limit, |evm| {
        let one = |data| {
            deadline_watch::move_deadline(Instant::now() + limit);
            run_watched(evm, TxEnv { data, ..tx.clone() })
        };
        inputs.into_iter().map(one).collect()
    })
}

/// Run a call on an open database. Returns the database with its read cache, and the output. The output is None if the
/// call reverts, halts or is rejected. The function `call` also reports the reason.
pub fn returned(db: ExecDb, env: &BlockEnv, tx: TxEnv, deadline: Instant) -> (ExecDb, Result<Option<Bytes>>) {
    let cfg = call_request::cfg(env, &tx, false, false);
    let (db, outcome) = with_database(db, env, cfg, None, deadline, |evm| run_watched(evm, tx));
    (db, outcome.map(|outcome| outcome.has_returned().then_some(outcome.output)))
}

/// A cached EVM and its fork. The EVM is boxed, because it is large and moves into and out of the cache for each call.
type CachedEvm = Option<(Fork, Box<Evm>)>;

thread_local! {
    /// The last EVM of each thread. Building an EVM takes longer than a small call.
    static CACHED_EVM: RefCell<CachedEvm> = const { RefCell::new(None) };
}

/// Make a placeholder for the database of a cached EVM that runs no call.
pub fn no_database() -> ExecDb {
    let view = View {
        root: EMPTY_ROOT,
        trie: Trie::default(),
        snapshot: None,
        layers: Layers::default(),
        public: None,
        fork: None,
        nodes_read: AtomicUsize::new(0),
        storage_tries: Default::default(),
        combined: Default::default(),
    };
    ExecDb::new(view, Ancestors::Canonical)
}

pub(super) fn with_evm<T>(
    state: &StateData,
    env: &BlockEnv,
    cfg: CfgEnv,
    overrides: &[&AccountOverride],
    deadline: Instant,
    work: impl FnOnce(&mut Evm) -> Result<T>,
) -> Result<T> {
    let db = overridden(state, env, overrides)?;
    let moved = if overrides.is_empty() { None } else { Some(Precompiles::overridden(env, overrides)?) };
    with_database(db, env, cfg, moved, deadline, work).1
}

/// Run `work` with the cached EVM on this database. `moved` replaces the precompiled contracts for this call.
pub(super) fn with_database<T>(
    db: ExecDb,
    env: &BlockEnv,
    cfg: CfgEnv,
    moved: Option<Precompiles>,
    deadline: Instant,
    work: impl FnOnce(&mut Evm) -> Result<T>,
) -> (ExecDb, Result<T>) {
    let is_moved = moved.is_some();
    let mut evm = match CACHED_EVM.with_borrow_mut(Option::take) {
        Some((fork, mut evm)) if fork == env.fork => {
            evm.ctx.journaled_state.database = db;
            evm.ctx.cfg = cfg;
            evm.ctx.block = env.block();
            evm.precompiles.use_signatures_of(env);
            evm
        }
        _ => {
            let mut evm = Box::new(evm_builder::build(env, db, cfg, ()));
            deadline_watch::install(&mut evm.instruction);
            evm
        }
    };
    if let Some(moved) = moved {
        evm.precompiles = moved;
    }
    let _watching = deadline_watch::until(deadline);
    let outcome = work(&mut evm);
    if is_moved {
        evm.precompiles = Precompiles::of(env);
    }
    // clear the journal entries of failed runs
    evm.finalize();
    // take the database out, because a cached EVM would hold the database snapshot
    let db = std::mem::replace(&mut evm.ctx.journaled_state.database, no_database());
    CACHED_EVM.set(Some((env.fork, evm)));
    (db, outcome)
}

/// Convert the error of a call that revm rejects to a call outcome. Other errors stay errors.
pub(super) fn or_refusal<T>(result: Result<T>, refused: impl FnOnce(CallOutcome) -> T) -> Result<T> {
    match result {
        Err(Error::Refused(reason)) => Ok(refused(CallOutcome::invalid(reason))),
        other => other,
    }
}

type RunResult = std::result::Result<ExecutionResult, EVMError<Error>>;

/// Return the outcome of an EVM run, and empty the EVM's journal.
pub(super) fn concluded<I>(evm: &mut Evm<I>, result: RunResult) -> Result<CallOutcome> {
    evm.finalize();
    let mut outcome = match result {
        Ok(result) => CallOutcome::of(result),
        Err(EVMError::Database(cause)) => return Err(cause),
        Err(EVMError::Transaction(cause)) => CallOutcome::invalid(refusal_text(&cause)),
        Err(cause) => CallOutcome::invalid(format!("other: {cause}")),
    };
    if deadline_watch::has_expired() {
        outcome.kind = "timeout";
        outcome.reason = "the call took too long".into();
    }
    Ok(outcome)
}

/// Return whether value plus fees of a call exceed any possible balance. revm multiplies in 128 bits, so such a call
/// would overflow.
pub fn exceeds_any_balance(tx: &TxEnv) -> bool {
    let blob_gas = tx.blob_hashes.len() as u128 * u128::from(alloy_eips::eip4844::DATA_GAS_PER_BLOB);
    let gas = u128::from(tx.gas_limit).checked_mul(tx.gas_price);
    let blobs = blob_gas.checked_mul(tx.max_fee_per_blob_gas);
    let fees = gas.zip(blobs).and_then(|(gas, blobs)| gas.checked_add(blobs));
    fees.is_none_or(|fees| tx.value.saturating_add(U256::from(fees)) > U256::MAX >> 1)
}

pub const BEYOND_ALL_MONEY: &str = "balance: more than any account can hold";

pub(super) fn run_watched(evm: &mut Evm, tx: TxEnv) -> Result<CallOutcome> {
    if exceeds_any_balance(&tx) {
        return Ok(CallOutcome::invalid(BEYOND_ALL_MONEY.into()));
    }
    let result = evm.transact_one(tx);
    concluded(evm, result)
}
