//! Dataset `transactions`: one row per transaction, with the fields of its receipt.

use alloy_primitives::B256;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::receipts::{ReceiptHead, visit_heads};
use ophion_storage::store::{Snapshot, decode_header};

use super::stored_transaction::StoredTransactions;
use crate::tables::column::Kind::{Binary, Bool, Fixed, U32, U64};
use crate::tables::filter::Filter;
use crate::tables::table::{Spec, Table, wide};

pub fn specs() -> Vec<Spec> {
    let mut specs = vec![
        ("block_number", U32),
        ("transaction_index", U64),
        ("transaction_hash", Fixed(32)),
        ("nonce", U64),
        ("from_address", Fixed(20)),
        ("to_address", Fixed(20)),
    ];
    specs.extend(wide!("value_binary", "value_string", "value_f64", "value_decimal"));
    specs.extend([
        ("input", Binary),
        ("gas_limit", U64),
        ("gas_used", U64),
        ("gas_price", U64),
        ("effective_gas_price", U64),
        ("transaction_type", U32),
        ("max_priority_fee_per_gas", U64),
        ("max_fee_per_gas", U64),
        ("success", Bool),
        ("contract_address", Fixed(20)),
        ("revert_reason", Binary),
        ("n_logs", U32),
        ("n_input_bytes", U32),
        ("n_input_zero_bytes", U32),
        ("n_input_nonzero_bytes", U32),
        ("n_rlp_bytes", U32),
        ("block_hash", Fixed(32)),
        ("timestamp", U32),
        ("chain_id", U64),
    ]);
    specs
}

/// Convert a gas price to 64 bits; None (null in the table) if the price is larger.
fn price(value: u128) -> Option<u64> {
    u64::try_from(value).ok()
}

pub fn append(table: &mut Table, snapshot: &Snapshot, hash: &B256, filter: &Filter, chain_id: u64) -> Result<()> {
    let missing = || Error::damaged(format!("block {hash} is incomplete"));
    let (known, body) = snapshot.stored_body(hash)?.ok_or_else(missing)?;
    if known.is_empty() {
        return Ok(());
    }
    let (number, _, rlp) = snapshot.header(hash)?.ok_or_else(missing)?;
    let header = decode_header(rlp)?;
    let mut heads: Vec<ReceiptHead<'_>> = Vec::with_capacity(known.len());
    visit_heads(snapshot.receipts_record(hash)?.ok_or_else(missing)?, |head| heads.push(head))?;
    if heads.len() != known.len() {
        return Err(missing());
    }
    let mut gas_before = 0;
    let mut transactions = StoredTransactions::of(body)?;
    for (index, (known, head)) in known.iter().zip(&heads).enumerate() {
        let tx = transactions.next()?.ok_or_else(missing)?;
        let gas_used = head.cumulative_gas.saturating_sub(gas_before);
        gas_before = head.cumulative_gas;
        if !filter.selects_parties(Some(known.sender), tx.to) {
            continue;
        }
        let zeros = tx.input.iter().filter(|byte| **byte == 0).count();
        let effective = tx.effective_price(header.base_fee_per_gas);
        let mut row = table.row();
        row.u32(number as u32);
        row.u64(index as u64);
        row.bytes(known.hash);
        row.u64(tx.nonce);
        row.bytes(known.sender);
        row.maybe_bytes(tx.to);
        row.wide(tx.value);
        row.bytes(tx.input);
        row.u64(tx.gas_limit);
        row.u64(gas_used);
        row.maybe_u64(price(effective));
        row.maybe_u64(price(effective));
        row.u32(u32::from(tx.kind));
        row.maybe_u64(tx.max_tip.and_then(price));
        row.maybe_u64(price(tx.max_fee).filter(|_| tx.max_tip.is_some()));
        row.bool(head.has_succeeded);
        row.address(tx.to.is_none().then(|| known.sender.create(tx.nonce)));
        row.maybe_bytes(Some(head.revert_data).filter(|data| !data.is_empty()));
        row.u32(head.logs as u32);
        row.u32(tx.input.len() as u32);
        row.u32(zeros as u32);
        row.u32((tx.input.len() - zeros) as u32);
        row.u32(tx.size as u32);
        row.bytes(hash);
        row.narrow(header.timestamp);
        row.u64(chain_id);
        row.end();
    }
    Ok(())
}
