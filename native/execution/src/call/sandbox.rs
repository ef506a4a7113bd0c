//! A sandbox: runs calls one after the other on one state, without blocks, state roots or fees. A call can keep its
//! effects for later calls, and `revert` returns to a saved state. Property tests of contracts run thousands of calls
//! this way.

use std::time::Instant;

use alloy_primitives::{Address, Bytes, U256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::state::StateData;
use revm::database_interface::Database;
use revm::handler::{ExecuteCommitEvm, ExecuteEvm};

use super::call_request::CallRequest;
use super::eth_call::{BEYOND_ALL_MONEY, concluded, exceeds_any_balance, or_refusal, run_watched, with_database};
use super::outcome::CallOutcome;
use crate::evm::block_environment::BlockEnv;
use crate::evm::database::{ExecDb, SavedEntries};
use crate::evm::deadline_watch;
use crate::evm::overrides::overridden;

pub struct Sandbox {
    env: BlockEnv,
    /// The current state of the sandbox; None after a database failure.
    db: Option<ExecDb>,
    saved: Vec<SavedEntries>,
}

impl Sandbox {
    pub fn open(state: &StateData, env: &BlockEnv) -> Result<Self> {
        Ok(Sandbox { env: env.clone(), db: Some(overridden(state, env, &[])?), saved: Vec::new() })
    }

    /// Run a call. With `keep_effects`, later calls see the changes of this call.
    pub fn run(&mut self, request: &CallRequest, keep_effects: bool, deadline: Instant) -> Result<CallOutcome> {
        let tx = request.transaction(self.env.fork);
        let db = self.db.take().ok_or_else(failed)?;
        let (db, outcome) = with_database(db, &self.env, request.cfg(&self.env), None, deadline, |evm| {
            if !keep_effects {
                return run_watched(evm, tx);
            }
            if exceeds_any_balance(&tx) {
                return Ok(CallOutcome::invalid(BEYOND_ALL_MONEY.into()));
            }
            let result = evm.transact_one(tx);
            if result.is_ok() && !deadline_watch::has_expired() {
                evm.commit_inner();
            } else {
                evm.finalize();
            }
            concluded(evm, result)
        });
        self.db = Some(db);
        or_refusal(outcome, |refused| refused)
    }

    /// Save the current state. Returns a number to pass to `revert`.
    pub fn save(&mut self) -> Result<usize> {
        self.saved.push(self.db.as_ref().ok_or_else(failed)?.saved_entries());
        Ok(self.saved.len() - 1)
    }

    /// Restore a saved state, and delete this and all later saved states. Returns false if the number is unknown.
    pub fn revert(&mut self, number: usize) -> Result<bool> {
        if number >= self.saved.len() {
            return Ok(false);
        }
        let saved = self.saved.swap_remove(number);
        self.saved.truncate(number);
        self.db.as_mut().ok_or_else(failed)?.restore_entries(saved);
        Ok(true)
    }

    /// Return nonce, balance and code of an account.
    pub fn account(&mut self, address: &Address) -> Result<(u64, U256, Bytes)> {
        let db = self.db.as_mut().ok_or_else(failed)?;
        let info = db.info(address)?.unwrap_or_default();
        let code = db.code_of(&info)?;
        Ok((info.nonce, info.balance, code))
    }

    pub fn storage(&mut self, address: Address, slot: U256) -> Result<U256> {
        self.db.as_mut().ok_or_else(failed)?.storage(address, slot)
    }
}

fn failed() -> Error {
    Error::Refused("the sandbox has failed before".into())
}
