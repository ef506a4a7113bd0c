//! stateDiff: state changes of a transaction by account.

use std::collections::BTreeMap;

use alloy_primitives::{Address, KECCAK256_EMPTY};
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, quantity, raw, wide};
use revm::state::{Account, AccountInfo, EvmState};

use crate::output::sink::Sink;

/// Write changed accounts only.
pub fn write_state_diff(sink: &mut Sink, db: &mut ExecDb, changes: &EvmState) -> Result<()> {
    let accounts: BTreeMap<&Address, &Account> = changes.iter().filter(|(_, account)| account.is_touched()).collect();
    let mut comma = "";
    raw(&mut sink.out, "{");
    for (address, account) in accounts {
        let before = db.info(address)?;
        let is_gone = account.is_selfdestructed() || (account.info.is_empty() && !account.is_created());
        let after = (!is_gone).then_some(&account.info);
        let changed_slots = account.storage.values().any(|slot| slot.is_changed());
        if !differ(before.as_ref(), after) && (is_gone || !changed_slots) {
            continue;
        }
        let out = &mut sink.out;
        data(out, comma, address);
        comma = ",";
        raw(out, ":{\"balance\":");
        let balance = |info: &AccountInfo, out: &mut Vec<u8>| wide(out, "", info.balance);
        delta(out, before.as_ref(), after, |a, b| a.balance == b.balance, balance);
        raw(out, ",\"nonce\":");
        let nonce = |info: &AccountInfo, out: &mut Vec<u8>| quantity(out, "", info.nonce);
        delta(out, before.as_ref(), after, |a, b| a.nonce == b.nonce, nonce);
        raw(out, ",\"code\":");
        let code_before = before.as_ref().map(|info| code_text(db, info)).transpose()?;
        let code_after = after.map(|info| code_text(db, info)).transpose()?;
        delta(out, code_before.as_ref(), code_after.as_ref(), |a, b| a == b, |code, out| out.extend_from_slice(code));
        raw(out, ",\"storage\":{");
        if after.is_some() {
            write_slots(out, account, before.is_none());
        }
        raw(out, "}}");
        sink.settle();
    }
    raw(&mut sink.out, "}");
    Ok(())
}

fn write_slots(out: &mut Vec<u8>, account: &Account, is_new: bool) {
    let slots: BTreeMap<_, _> = account.storage.iter().filter(|(_, slot)| slot.is_changed()).collect();
    for (at, (key, slot)) in slots.into_iter().enumerate() {
        data(out, if at > 0 { "," } else { "" }, key.to_be_bytes::<32>());
        let value = slot.present_value.to_be_bytes::<32>();
        if is_new {
            data(out, ":{\"+\":", value);
            out.push(b'}');
        } else {
            data(out, ":{\"*\":{\"from\":", slot.original_value.to_be_bytes::<32>());
            data(out, ",\"to\":", value);
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

fn code_text(db: &mut ExecDb, info: &AccountInfo) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match info.code_hash == KECCAK256_EMPTY {
        true => data(&mut out, "", []),
        false => data(&mut out, "", db.code_of(info)?),
    }
    Ok(out)
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
