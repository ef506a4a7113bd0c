//! Fast path for plain transfers: transactions that only move wei to an account without code.
//!
//! Their effects follow from the accounts, so the EVM does not run. If the replay writes no state changes and the
//! receipt proves that no code ran, the accounts are not read either. The slow path is `block::trace_one`;
//! `tests/unit/chain/test_traced_block.py` compares both.

use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::{Address, B256, TxKind, U256};
use ophion_execution::evm::block_environment::BlockEnv;
use ophion_execution::evm::database::ExecDb;
use ophion_execution::evm::unread_accounts::AccountChange;
use ophion_primitives::errors::Result;
use ophion_storage::chain::body::Tx;
use ophion_storage::chain::receipts::visit_heads;
use revm::context::Journal;
use revm::primitives::hardfork::SpecId;
use revm::state::AccountInfo;

use super::kept_journal;

/// Gas of a transaction without input, access list and code.
pub const TRANSFER_GAS: u64 = 21_000;

/// An account that a plain transfer touches, before and after the transaction. None stands for a missing account.
pub struct Touched {
    pub address: Address,
    pub before: Option<AccountInfo>,
    pub after: Option<AccountInfo>,
}

/// Return the recipient of a transaction in the form of a plain transfer; None for any other transaction. The caller
/// must still check that the recipient has no code.
pub fn recipient(env: &BlockEnv, tx: &Tx) -> Option<Address> {
    let envelope = &tx.envelope;
    let TxKind::Call(to) = envelope.kind() else { return None };
    let is_plain = matches!(envelope.tx_type() as u8, 0..=2)
        && envelope.input().is_empty()
        && envelope.access_list().is_none_or(|list| list.is_empty())
        && envelope.gas_limit() >= TRANSFER_GAS
        && env.fork.has(SpecId::SPURIOUS_DRAGON);
    is_plain.then_some(to)
}

/// Apply a plain transfer and return the accounts that it touches, by ascending address. Returns None without a change
/// if the transaction needs the EVM.
pub fn apply(
    db: &mut ExecDb,
    env: &BlockEnv,
    tx: &Tx,
    (sender, to): (Address, Address),
) -> Result<Option<Vec<Touched>>> {
    let envelope = &tx.envelope;
    let (fees, tip) = fees(env, tx);
    let value = envelope.value();
    let mut accounts = Accounts(Vec::with_capacity(3));
    let from = accounts.load(db, sender)?;
    let balance = from.balance;
    let cost = value.checked_add(fees).filter(|cost| *cost <= balance);
    let Some(cost) = cost.filter(|_| from.nonce == envelope.nonce() && from.nonce < u64::MAX) else { return Ok(None) };
    if !from.is_empty_code_hash() || !accounts.load(db, to)?.is_empty_code_hash() {
        return Ok(None);
    }
    let from = accounts.load(db, sender)?;
    from.balance -= cost;
    from.nonce += 1;
    for (address, amount) in [(to, value), (env.beneficiary, tip)] {
        let account = accounts.load(db, address)?;
        let Some(balance) = account.balance.checked_add(amount) else { return Ok(None) };
        account.balance = balance;
    }
    let Accounts(mut touched) = accounts;
    touched.sort_unstable_by_key(|one| one.address);
    for one in &mut touched {
        // a transaction deletes an empty account that it touches (EIP-161)
        one.after.take_if(|info| info.is_empty());
        db.touch(&one.address, one.after.clone())?;
    }
    Ok(Some(touched))
}

/// Return, for each transaction of a stored block, whether its receipt proves that no code ran: the transaction
/// succeeded with exactly 21,000 gas. From London on, a refund cannot hide the gas of code, because the refund is less
/// than the gas of the instructions that earn it. The list is empty before London, and if the receipts are not stored.
pub fn proven(db: &ExecDb, env: &BlockEnv, hash: &B256) -> Result<Vec<bool>> {
    let mut found = Vec::new();
    if let Some(snapshot) = db.view.snapshot.as_ref().filter(|_| env.fork.has(SpecId::LONDON))
        && let Some(record) = snapshot.receipts_record(hash)?
    {
        let mut gas_before = 0;
        visit_heads(record, |head| {
            let gas_used = head.cumulative_gas.checked_sub(gas_before);
            found.push(head.has_succeeded == Some(true) && gas_used == Some(TRANSFER_GAS));
            gas_before = head.cumulative_gas;
        })?;
    }
    Ok(found)
}

/// Apply a plain transfer without reading the accounts. The receipt must have proven that no code ran (see `proven`).
pub fn apply_proven(
    journal: &mut Journal<ExecDb>,
    env: &BlockEnv,
    tx: &Tx,
    (sender, to): (Address, Address),
) -> Result<()> {
    let (fees, tip) = fees(env, tx);
    let value = tx.envelope.value();
    let spent = value.saturating_add(fees);
    kept_journal::add(journal, &sender, &AccountChange { spent, sent: 1, ..Default::default() })?;
    kept_journal::add(journal, &to, &AccountChange { received: value, ..Default::default() })?;
    kept_journal::add(journal, &env.beneficiary, &AccountChange { received: tip, ..Default::default() })
}

/// Return the fees of a plain transfer, and the part of them that the beneficiary of the block receives.
fn fees(env: &BlockEnv, tx: &Tx) -> (U256, U256) {
    let price = tx.envelope.effective_gas_price(env.base_fee);
    let base_fee = if env.fork.has(SpecId::LONDON) { u128::from(env.base_fee.unwrap_or(0)) } else { 0 };
    let gas = U256::from(TRANSFER_GAS);
    (gas * U256::from(price), gas * U256::from(price.saturating_sub(base_fee)))
}

struct Accounts(Vec<Touched>);

impl Accounts {
    /// Return an account after the changes so far; an empty account if it does not exist.
    fn load(&mut self, db: &mut ExecDb, address: Address) -> Result<&mut AccountInfo> {
        let at = match self.0.iter().position(|one| one.address == address) {
            Some(at) => at,
            None => {
                let before = db.info(&address)?;
                self.0.push(Touched { address, after: before.clone(), before });
                self.0.len() - 1
            }
        };
        Ok(self.0[at].after.get_or_insert_default())
    }
}
