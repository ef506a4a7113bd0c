//! Builds the genesis state.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes, U256};
use ophion_primitives::errors::Result;
use ophion_storage::chain::receipts::Receipts;
use ophion_storage::state::StateData;
use ophion_storage::trie::{Account, Trie};
use revm::state::AccountInfo;

use super::block_execution::{ExecutionData, settled};
use crate::evm::database::{Ancestors, ExecDb, coded};

/// An account of the genesis file.
pub struct GenesisAccount {
    pub address: Address,
    pub nonce: u64,
    pub balance: U256,
    pub code: Bytes,
    pub storage: Vec<(U256, U256)>,
}

/// Put accounts into a database. Returns the state trie of these accounts.
pub fn settle(db: &mut ExecDb, accounts: impl IntoIterator<Item = GenesisAccount>) -> Result<Trie<Account>> {
    for account in accounts {
        let (code_hash, code) = coded(account.code);
        let info = AccountInfo { balance: account.balance, nonce: account.nonce, code_hash, account_id: None, code };
        db.set_info(&account.address, Some(info))?;
        for (slot, value) in account.storage {
            db.set_storage(&account.address, slot, value)?;
        }
    }
    let mut trie = Trie::default();
    db.update_trie(&mut trie)?;
    Ok(trie)
}

/// Build the genesis state: add the accounts of a genesis file to an empty state.
pub fn genesis(empty: &StateData, accounts: impl IntoIterator<Item = GenesisAccount>) -> Result<ExecutionData> {
    let mut db = ExecDb::new(empty.open()?, Ancestors::Canonical);
    let trie = settle(&mut db, accounts)?;
    let (_, receipts_root, logs_bloom) = Receipts::default().finish();
    let (effects, state) = settled(db, empty, trie, Vec::new(), 0)?;
    Ok(ExecutionData {
        effects: Arc::new(effects),
        receipts_root,
        logs_bloom,
        gas_used: 0,
        blob_gas_used: 0,
        requests: None,
        outputs: Vec::new(),
        state,
    })
}
