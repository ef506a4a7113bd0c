//! Keeps the journal of an EVM from one transaction of a block to the next.
//!
//! A transaction then finds accounts, code and slots in the journal of the previous transaction. Without this, each
//! transaction copies them from the database and back. In a journal of several transactions, revm distinguishes values,
//! warm accesses and rollbacks by the number of the transaction. But an account has only one mark "created" and one
//! mark "deleted" in the whole journal, so `flush` ends the journal before and after a transaction that may create,
//! delete or delegate an account.

use alloy_primitives::Address;
use ophion_execution::evm::database::ExecDb;
use ophion_execution::evm::evm_builder::{Evm, db};
use ophion_execution::evm::unread_accounts::AccountChange;
use ophion_primitives::errors::Result;
use revm::context::{Journal, TxEnv};
use revm::handler::ExecuteEvm;

/// Maximum number of transactions in a journal. The journal of a large block would need as much memory as the
/// database's cache.
const MAX_TRANSACTIONS: usize = 1_000;

/// Write all transactions of the journal to the database, and begin an empty journal.
pub fn flush<I>(evm: &mut Evm<I>) -> Result<()> {
    let changes = evm.finalize();
    db(evm).commit_several(changes)
}

/// Return whether a transaction needs a journal of its own: a creation, or a transaction with authorizations
/// (EIP-7702).
pub fn needs_own_journal(tx: &TxEnv) -> bool {
    tx.kind.is_create() || !tx.authorization_list.is_empty()
}

pub fn is_full<I>(evm: &Evm<I>) -> bool {
    evm.ctx.journaled_state.inner.transaction_id.get() >= MAX_TRANSACTIONS
}

/// Change an account that a plain transfer touches: in the journal if the journal holds the account, else in the
/// database.
pub fn add(journal: &mut Journal<ExecDb>, address: &Address, change: &AccountChange) -> Result<()> {
    match journal.inner.state.get_mut(address) {
        Some(account) => {
            account.mark_touch();
            change.apply_to(&mut account.info)
        }
        None => journal.database.add(address, change),
    }
}
