//! State overrides of calls.

use alloy_primitives::{Address, Bytes, U256};
use ophion_primitives::errors::Result;
use ophion_storage::state::StateData;

use super::block_environment::BlockEnv;
use super::database::{ExecDb, coded};

/// Overrides of one account; a field that is None keeps the account's value.
pub struct AccountOverride {
    pub address: Address,
    pub balance: Option<U256>,
    pub nonce: Option<u64>,
    pub code: Option<Bytes>,
    /// Slots and values that replace the whole storage of the account (override `state`).
    pub state: Option<Vec<(U256, U256)>>,
    /// Slots and values that replace single slots of the account (override `stateDiff`).
    pub state_diff: Option<Vec<(U256, U256)>>,
    /// New address of the precompiled contract at this account's address (`movePrecompileToAddress`).
    pub precompile_target: Option<Address>,
}

impl AccountOverride {
    pub fn apply(&self, db: &mut ExecDb) -> Result<()> {
        if self.balance.is_none() && self.nonce.is_none() && self.code.is_none() && !self.has_slots() {
            return Ok(());
        }
        let mut info = db.info(&self.address)?.unwrap_or_default();
        info.balance = self.balance.unwrap_or(info.balance);
        info.nonce = self.nonce.unwrap_or(info.nonce);
        if let Some(code) = &self.code {
            (info.code_hash, info.code) = coded(code.clone());
        }
        db.set_info(&self.address, Some(info))?;
        if self.state.is_some() {
            db.wipe_storage(&self.address)?;
        }
        for (slot, value) in self.state.iter().chain(&self.state_diff).flatten() {
            db.set_storage(&self.address, *slot, *value)?;
        }
        Ok(())
    }

    fn has_slots(&self) -> bool {
        self.state.is_some() || self.state_diff.is_some()
    }
}

/// Open a state and apply the account overrides of a call.
pub fn overridden(state: &StateData, env: &BlockEnv, overrides: &[&AccountOverride]) -> Result<ExecDb> {
    let mut db = ExecDb::new(state.open()?, env.ancestors());
    for one in overrides {
        one.apply(&mut db)?;
    }
    Ok(db)
}
