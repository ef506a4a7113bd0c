//! Executes blocks: system calls, transactions, withdrawals, requests, rewards; then computes the roots.
//!
//! ```text
//! parent State + BlockEnv + Body  ->  ExecDb (revm's database)  ->  receipts, changes, new trie  =  Execution
//! ```
//! Nothing is written to disk; the store commits an `ExecutionData` later. A run can be paused between two transactions
//! and resumed in another thread (incremental_builder.rs).

use std::sync::Arc;
use std::time::Instant;

use alloy_consensus::transaction::Transaction as _;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{Address, B256, Bloom, Bytes, U256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::{BodyData, Known, Tx};
use ophion_storage::chain::receipts::{Outcome, ReceiptData, Receipts};
use ophion_storage::state::StateData;
use ophion_storage::store::Effects;
use ophion_storage::trie::{Account, Trie};
use revm::context::TxEnv;
use revm::context_interface::result::{EVMError, ExecutionResult};
use revm::handler::{ExecuteCommitEvm, ExecuteEvm};
use revm::inspector::InspectEvm;
use revm::primitives::hardfork::SpecId;

use super::dao_fork;
use crate::evm::block_environment::BlockEnv;
use crate::evm::context::tx_env;
use crate::evm::create_collision::CollisionGuard;
use crate::evm::database::{Changes, ExecDb};
use crate::evm::deadline_watch::{self, Watching};
use crate::evm::evm_builder::{self, Evm};

pub struct ExecutionData {
    /// Database rows that a commit of this block writes.
    pub effects: Arc<Effects>,
    pub receipts_root: B256,
    pub logs_bloom: Bloom,
    pub gas_used: u64,
    pub blob_gas_used: u64,
    pub requests: Option<Requests>,
    /// Revert data of each transaction; empty for a transaction that did not revert. Stored receipts do not always
    /// contain it.
    pub outputs: Vec<Bytes>,
    /// The state after the block.
    pub state: StateData,
}

impl ExecutionData {
    pub fn gas_of(&self, index: usize) -> u64 {
        let receipts = &self.effects.receipts;
        let before = index.checked_sub(1).map_or(0, |previous| receipts[previous].cumulative_gas);
        receipts[index].cumulative_gas - before
    }
}

/// A running execution of a block, from its first system call to its roots.
pub struct Run {
    pub(super) evm: Evm<CollisionGuard>,
    pub(super) progress: Progress,
    /// Deadline for transactions while a block is built; None while a block is verified.
    watching: Option<Watching>,
}

/// A paused block execution. It has no EVM, because an EVM cannot move to another thread.
pub struct Paused {
    db: ExecDb,
    progress: Progress,
}

/// Results of the block's transactions so far. The database object holds the state changes.
pub(super) struct Progress {
    pub(super) env: BlockEnv,
    pub(super) parent: StateData,
    pub(super) trie: Trie<Account>,
    pub(super) receipts: Receipts,
    outputs: Vec<Bytes>,
    gas_used: u64,
    blobs: u64,
    keep_revert_data: bool,
}

/// Reason why a transaction cannot be included at this position of the block.
pub enum Refusal {
    /// The transaction is invalid on this state, for the given reason.
    Invalid(String),
    /// The nonce is too high: transactions of the sender with lower nonces are missing.
    NonceTooHigh,
    /// The transaction needs more gas than the block has left.
    ExceedsGas,
    /// The transaction was still running at the deadline of the block builder.
    TooLong,
    Fatal(Error),
}

impl Refusal {
    pub fn into_error(self) -> Error {
        Error::InvalidBody(match self {
            Refusal::Fatal(cause) => return cause,
            Refusal::TooLong => return Error::Timeout("it took too long".into()),
            Refusal::Invalid(reason) => reason,
            Refusal::NonceTooHigh => "its nonce is too high".into(),
            Refusal::ExceedsGas => "it needs more gas or blobs than the block has left".into(),
        })
    }

    /// Convert the refusal to an error that names the position of the transaction in its block.
    pub fn at(self, index: usize) -> Error {
        match self.into_error() {
            Error::InvalidBody(reason) => Error::InvalidBody(format!("transaction {index}: {reason}")),
            Error::Timeout(reason) => Error::Timeout(format!("transaction {index}: {reason}")),
            fatal => fatal,
        }
    }
}

impl Paused {
    pub fn resume(self) -> Run {
        let Paused { db, progress } = self;
        let evm = evm_builder::build(&progress.env, db, progress.env.cfg(), CollisionGuard);
        Run { evm, progress, watching: None }
    }

    /// Update and hash the trie, so that `finish` takes less time.
    pub fn settle(&mut self) -> Result<()> {
        self.db.update_trie(&mut self.progress.trie)?;
        self.progress.trie.hash();
        Ok(())
    }
}

impl Run {
    pub fn start(parent: &StateData, env: &BlockEnv, keep_revert_data: bool) -> Result<Self> {
        let db = ExecDb::new(parent.open()?, env.ancestors());
        Run::on(db, parent, env, keep_revert_data)
    }

    /// Start to execute a block on a database that the caller has prepared, for example with overrides of a simulated
    /// block.
    pub fn on(db: ExecDb, parent: &StateData, env: &BlockEnv, keep_revert_data: bool) -> Result<Self> {
        let progress = Progress {
            env: env.clone(),
            parent: parent.clone(),
            trie: parent.trie.clone(),
            receipts: Receipts::default(),
            outputs: Vec::new(),
            gas_used: 0,
            blobs: 0,
            keep_revert_data,
        };
        let mut run = Paused { db, progress }.resume();
        if env.dao_fork {
            dao_fork::move_balances(evm_builder::db(&mut run.evm))?;
        }
        if env.number > 0 {
            run.begin()?;
        }
        Ok(run)
    }

    /// Set a deadline. A transaction that still runs at the deadline is aborted, and its changes are discarded.
    pub fn watch(&mut self, deadline: Instant) {
        deadline_watch::install(&mut self.evm.instruction);
        self.watching = Some(deadline_watch::until(deadline));
    }

    /// Remove the deadline of `watch`: the system calls at the end of a block must not be aborted.
    pub fn unwatch(&mut self) {
        self.watching = None;
    }

    /// Pause the execution of the block and remove its deadline.
    pub fn pause(self) -> Paused {
        Paused { db: self.evm.ctx.journaled_state.database, progress: self.progress }
    }

    fn is_late(&self) -> bool {
        self.watching.is_some() && deadline_watch::has_expired()
    }

    /// Run one transaction of the block and apply its effects.
    pub fn transact(&mut self, tx: &Tx, sender: Address) -> std::result::Result<(), Refusal> {
        let invalid = |reason: &str| Err(Refusal::Invalid(reason.into()));
        if self.progress.env.fork.has(SpecId::HOMESTEAD) && !tx.is_low_s() {
            return invalid("the signature's s is above half the curve order");
        }
        let is_protected = tx.envelope.is_legacy() && tx.envelope.chain_id().is_some();
        if is_protected && !self.progress.env.fork.has(SpecId::SPURIOUS_DRAGON) {
            return invalid("replay protection does not exist yet");
        }
        if tx.envelope.gas_limit() > self.gas_left() {
            return Err(Refusal::ExceedsGas);
        }
        let blobs = tx.blob_count();
        if self.progress.env.max_blobs.is_some_and(|max| self.progress.blobs + blobs > max) {
            return Err(Refusal::ExceedsGas);
        }
        let result = match self.run(tx_env(tx, sender)) {
            Ok(result) => result,
            Err(EVMError::Database(cause)) => return Err(Refusal::Fatal(cause)),
            Err(_) if self.is_late() => return Err(Refusal::TooLong),
            Err(EVMError::Transaction(revm::context_interface::result::InvalidTransaction::NonceTooHigh {
                ..
            })) => {
                return Err(Refusal::NonceTooHigh);
            }
            Err(cause) => return Err(Refusal::Invalid(cause.to_string())),
        };
        self.progress.gas_used += result.tx_gas_used();
        self.progress.blobs += blobs;
        self.receive(tx, result).map_err(Refusal::Fatal)
    }

    /// Run the transaction. If it reads an account that has only storage, run it again with the check of EIP-7610
    /// (create_collision.rs).
    fn run(&mut self, tx: TxEnv) -> std::result::Result<ExecutionResult, EVMError<Error>> {
        if !evm_builder::db(&mut self.evm).has_storage_only_account() {
            let result = self.evm.transact_one(tx.clone());
            if !evm_builder::db(&mut self.evm).has_storage_only_account() {
                return self.conclude(result);
            }
            self.evm.finalize();
        }
        let result = self.evm.inspect_one_tx(tx);
        self.conclude(result)
    }

    /// Apply the changes of a completed transaction; drop the changes of an invalid or aborted transaction.
    fn conclude(
        &mut self,
        result: std::result::Result<ExecutionResult, EVMError<Error>>,
    ) -> std::result::Result<ExecutionResult, EVMError<Error>> {
        let result = if self.is_late() { Err(EVMError::Custom("out of time".into())) } else { result };
        match result {
            Ok(_) => self.evm.commit_inner(),
            Err(_) => drop(self.evm.finalize()),
        }
        result
    }

    fn receive(&mut self, tx: &Tx, result: ExecutionResult) -> Result<()> {
        let outcome = if self.progress.env.fork.has(SpecId::BYZANTIUM) {
            if result.is_success() { Outcome::Succeeded } else { Outcome::Failed }
        } else {
            evm_builder::db(&mut self.evm).update_trie(&mut self.progress.trie)?;
            Outcome::Root(self.progress.trie.hash())
        };
        let output = match &result {
            ExecutionResult::Revert { output, .. } => output.clone(),
            _ => Bytes::new(),
        };
        self.progress.receipts.push(ReceiptData {
            tx_type: tx.envelope.tx_type() as u8,
            outcome,
            cumulative_gas: self.progress.gas_used,
            logs: result.into_logs(),
            revert_data: if self.progress.keep_revert_data { output.clone() } else { Bytes::new() },
        });
        self.progress.outputs.push(output);
        Ok(())
    }

    /// Return the database, so that another EVM can run simulated transactions on it.
    pub fn db(&mut self) -> &mut ExecDb {
        evm_builder::db(&mut self.evm)
    }

    /// Add the result of a transaction that another EVM has run on this database.
    pub fn accept(&mut self, tx: &Tx, result: ExecutionResult) -> Result<()> {
        self.progress.gas_used += result.tx_gas_used();
        self.progress.blobs += tx.blob_count();
        self.receive(tx, result)
    }

    /// Return the database with the current state, for tracers that continue from it.
    pub fn into_db(self) -> ExecDb {
        self.evm.ctx.journaled_state.database
    }

    pub fn gas_left(&self) -> u64 {
        self.progress.env.gas_limit - self.progress.gas_used
    }

    /// Run all steps that follow the transactions, then compute the roots.
    pub fn finish(
        mut self,
        withdrawals: Option<&[alloy_eips::eip4895::Withdrawal]>,
        rewards: &[(Address, U256)],
    ) -> Result<ExecutionData> {
        let requests = self.end(withdrawals.unwrap_or_default(), rewards)?;
        let Progress { env, parent, trie, receipts, outputs, gas_used, blobs, .. } = self.progress;
        let (receipts, receipts_root, logs_bloom) = receipts.finish();
        let db = self.evm.ctx.journaled_state.database;
        let (effects, state) = settled(db, &parent, trie, receipts, env.blob_price())?;
        Ok(ExecutionData {
            effects: Arc::new(effects),
            receipts_root,
            logs_bloom,
            gas_used,
            blob_gas_used: blobs * alloy_eips::eip4844::DATA_GAS_PER_BLOB,
            requests,
            outputs,
            state,
        })
    }

    /// Run the steps that follow the transactions (withdrawals, requests, rewards) and update the trie. Returns the
    /// requests; None before Prague.
    pub(super) fn end(
        &mut self,
        withdrawals: &[alloy_eips::eip4895::Withdrawal],
        rewards: &[(Address, U256)],
    ) -> Result<Option<Requests>> {
        let requests = if self.progress.env.fork.has(SpecId::PRAGUE) { Some(self.collect_requests()?) } else { None };
        let db = evm_builder::db(&mut self.evm);
        for withdrawal in withdrawals {
            db.credit(&withdrawal.address, U256::from(withdrawal.amount) * U256::from(1_000_000_000u64))?;
        }
        for (beneficiary, amount) in rewards {
            if self.progress.env.fork.has(SpecId::SPURIOUS_DRAGON) {
                db.credit(beneficiary, *amount)?;
            } else {
                db.credit_touching(beneficiary, *amount)?;
            }
        }
        db.update_trie(&mut self.progress.trie)?;
        Ok(requests)
    }
}

/// Estimated memory in bytes of a changed account or slot: its trie leaf and its share of the trie nodes above the
/// leaf.
const CHANGED_ENTRY: usize = 500;
/// Estimated bytes of memory per byte of a trie node that was read from the database.
const READ_BYTE: usize = 3;

/// Return the effects of a block and the state after it, from a database on which `update_trie` has run.
pub(super) fn settled(
    db: ExecDb,
    parent: &StateData,
    mut trie: Trie<Account>,
    receipts: Vec<ReceiptData>,
    blob_price: u128,
) -> Result<(Effects, StateData)> {
    let state_root = trie.hash();
    // read the counters of trie nodes now, because `finish` consumes the database
    let (written, read) = (db.nodes_written()?, db.nodes_read());
    let Changes { changed_entries, preimages, codes, layers } = db.finish(&trie)?;
    let own = changed_entries * CHANGED_ENTRY + read * READ_BYTE;
    let mut weight = parent.weight + own;
    if let Some(store) = &parent.store
        && parent.public.is_none()
        && weight > store.state_cache()
    {
        // Evict trie nodes that are already in the database. Otherwise a chain of unwritten blocks, each built on its
        // parent, would keep every trie node in memory.
        trie.evict(written);
        weight = own;
    }
    let (store, public) = (parent.store.clone(), parent.public.clone());
    let state = StateData { store, root: state_root, trie: trie.clone(), weight, layers, public };
    let parent_root = parent.root;
    Ok((Effects { parent_root, state_root, receipts, blob_price, trie, weight, preimages, codes }, state))
}

/// Execute a complete block. Returns an error if the execution is still running at the optional deadline.
pub fn execute(
    parent: &StateData,
    env: &BlockEnv,
    body: &BodyData,
    rewards: &[(Address, U256)],
    keep_revert_data: bool,
    deadline: Option<Instant>,
) -> Result<ExecutionData> {
    let known = body.known()?;
    let mut run = Run::start(parent, env, keep_revert_data)?;
    if let Some(deadline) = deadline {
        run.watch(deadline);
    }
    for (index, (tx, Known { sender, .. })) in body.txs.iter().zip(known).enumerate() {
        run.transact(tx, *sender).map_err(|refusal| refusal.at(index))?;
    }
    run.unwatch();
    run.finish(body.withdrawals.as_deref(), rewards)
}
