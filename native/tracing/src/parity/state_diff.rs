//! stateDiff: state changes of a transaction by account.

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256};
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, quantity, raw, wide};
use revm::state::{Account, AccountInfo, EvmState};

use crate::output::sink::Sink;

/// An account that a transaction has changed. In `before` and `after`, None stands for a missing account.
pub struct AccountDiff<'a> {
    pub address: &'a Address,
    pub before: Option<AccountInfo>,
    pub after: Option<&'a AccountInfo>,
    /// The account after the transaction, for its changed slots. None for a plain transfer, because it changes no
    /// slots.
    account: Option<&'a Account>,
}

impl<'a> AccountDiff<'a> {
    /// Return the change of an account by a plain transfer; None if the account has not changed.
    pub fn of_transfer(
        address: &'a Address,
        before: Option<AccountInfo>,
        after: Option<&'a AccountInfo>,
    ) -> Option<Self> {
        differ(before.as_ref(), after).then_some(AccountDiff { address, before, after, account: None })
    }

    /// Return the changed slots in ascending order, with the values before and after; empty for a deleted account.
    pub fn slots(&self) -> Vec<(U256, (U256, U256))> {
        let all = self.account.filter(|_| self.after.is_some()).into_iter().flat_map(|account| &account.storage);
        let slots = all.filter(|(_, slot)| slot.is_changed());
        let mut found: Vec<_> = slots.map(|(key, slot)| (*key, (slot.original_value, slot.present_value))).collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found
    }
}

/// Visit changed accounts by ascending address.
pub fn visit_diff(
    db: &mut ExecDb,
    changes: &EvmState,
    mut see: impl FnMut(&mut ExecDb, &AccountDiff<'_>) -> Result<()>,
) -> Result<()> {
    let mut accounts: Vec<(&Address, &Account)> = changes.iter().filter(|(_, one)| one.is_touched()).collect();
    accounts.sort_unstable_by_key(|(address, _)| *address);
    for (address, account) in accounts {
        let before = db.info(address)?;
        let is_gone = account.is_selfdestructed() || (account.info.is_empty() && !account.is_created());
        let after = (!is_gone).then_some(&account.info);
        let changed_slots = account.storage.values().any(|slot| slot.is_changed());
        if differ(before.as_ref(), after) || (!is_gone && changed_slots) {
            see(db, &AccountDiff { address, before, after, account: Some(account) })?;
        }
    }
    Ok(())
}

/// Return the code of an account; empty for an account without code.
pub fn code_of(db: &mut ExecDb, info: &AccountInfo) -> Result<Bytes> {
    if info.code_hash == KECCAK256_EMPTY { Ok(Bytes::new()) } else { db.code_of(info) }
}

/// Write the stateDiff of the changed accounts.
pub fn write_state_diff(sink: &mut Sink, db: &mut ExecDb, changes: &EvmState) -> Result<()> {
    let mut comma = "";
    raw(&mut sink.out, "{");
    visit_diff(db, changes, |db, diff| {
        let (before, after) = (diff.before.as_ref(), diff.after);
        let out = &mut sink.out;
        data(out, comma, diff.address);
        comma = ",";
        raw(out, ":{\"balance\":");
        let balance = |info: &AccountInfo, out: &mut Vec<u8>| wide(out, "", info.balance);
        delta(out, before, after, |a, b| a.balance == b.balance, balance);
        raw(out, ",\"nonce\":");
        let nonce = |info: &AccountInfo, out: &mut Vec<u8>| quantity(out, "", info.nonce);
        delta(out, before, after, |a, b| a.nonce == b.nonce, nonce);
        raw(out, ",\"code\":");
        let code_before = before.map(|info| code_of(db, info)).transpose()?;
        let code_after = after.map(|info| code_of(db, info)).transpose()?;
        delta(out, code_before.as_ref(), code_after.as_ref(), |a, b| a == b, |code, out| data(out, "", code));
        raw(out, ",\"storage\":{");
        write_slots(out, diff);
        raw(out, "}}");
        sink.settle();
        Ok(())
    })?;
    raw(&mut sink.out, "}");
    Ok(())
}

fn write_slots(out: &mut Vec<u8>, diff: &AccountDiff<'_>) {
    for (at, (key, (before, after))) in diff.slots().into_iter().enumerate() {
        data(out, if at > 0 { "," } else { "" }, key.to_be_bytes::<32>());
        if diff.before.is_none() {
            data(out, ":{\"+\":", after.to_be_bytes::<32>());
            out.push(b'}');
        } else {
            data(out, ":{\"*\":{\"from\":", before.to_be_bytes::<32>());
            data(out, ",\"to\":", after.to_be_bytes::<32>());
            raw(out, "}}");
        }
    }
}

fn differ(before: Option<&AccountInfo>, after: Option<&AccountInfo>) -> bool {
    match (before, after) {
        (Some(a), Some(b)) => a.balance != b.balance || a.nonce != b.nonce || a.code_hash != b.code_hash,
        (None, None) => false,
        _ => true,
    }
}

fn delta<T>(
    out: &mut Vec<u8>,
    before: Option<&T>,
    after: Option<&T>,
    is_same: impl Fn(&T, &T) -> bool,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    match (before, after) {
        (Some(a), Some(b)) if is_same(a, b) => raw(out, "\"=\""),
        (Some(a), Some(b)) => {
            raw(out, "{\"*\":{\"from\":");
            write(a, out);
            raw(out, ",\"to\":");
            write(b, out);
            raw(out, "}}");
        }
        (None, Some(b)) => {
            raw(out, "{\"+\":");
            write(b, out);
            raw(out, "}");
        }
        (Some(a), None) => {
            raw(out, "{\"-\":");
            write(a, out);
            raw(out, "}");
        }
        (None, None) => raw(out, "\"=\""),
    }
}
