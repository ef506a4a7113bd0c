//! Dataset `transactions`: one row per transaction, with the fields of its receipt.

use alloy_primitives::{Address, B256, keccak256_uncached};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::Known;
use ophion_storage::chain::receipts::{ReceiptHead, visit_heads};
use ophion_storage::store::{Snapshot, decode_header};

use super::stored_transaction::{StoredTransaction, StoredTransactions};
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
    let mut lines = Vec::with_capacity(known.len());
    for (index, (known, head)) in known.iter().zip(&heads).enumerate() {
        let tx = transactions.next()?.ok_or_else(missing)?;
        let gas_used = head.cumulative_gas.saturating_sub(gas_before);
        gas_before = head.cumulative_gas;
        if filter.selects_parties(Some(known.sender), tx.to) {
            let zeros = tx.input.iter().filter(|byte| **byte == 0).count();
            let effective = price(tx.effective_price(header.base_fee_per_gas));
            let created = tx.to.is_none().then(|| created(&known.sender, tx.nonce));
            lines.push(Line { index: index as u64, known, tx, head, gas_used, effective, zeros, created });
        }
    }
    let lines = lines.iter();
    let mut rows = table.block_rows(lines.len());
    rows.all_u32(number as u32);
    rows.u64s(lines.clone().map(|line| line.index));
    rows.arrays(lines.clone().map(|line| line.known.hash.0));
    rows.u64s(lines.clone().map(|line| line.tx.nonce));
    rows.arrays(lines.clone().map(|line| line.known.sender.0.0));
    rows.maybe_arrays(lines.clone().map(|line| line.tx.to.map(|to| to.0.0)));
    rows.wides(lines.clone().map(|line| line.tx.value));
    rows.strings(lines.clone().map(|line| line.tx.input));
    rows.u64s(lines.clone().map(|line| line.tx.gas_limit));
    rows.u64s(lines.clone().map(|line| line.gas_used));
    rows.maybe_u64s(lines.clone().map(|line| line.effective));
    rows.maybe_u64s(lines.clone().map(|line| line.effective));
    rows.u32s(lines.clone().map(|line| u32::from(line.tx.kind)));
    rows.maybe_u64s(lines.clone().map(|line| line.tx.max_tip.and_then(price)));
    rows.maybe_u64s(lines.clone().map(|line| price(line.tx.max_fee).filter(|_| line.tx.max_tip.is_some())));
    rows.bools(lines.clone().map(|line| line.head.has_succeeded));
    rows.maybe_arrays(lines.clone().map(|line| line.created));
    rows.maybe_strings(lines.clone().map(|line| Some(line.head.revert_data).filter(|data| !data.is_empty())));
    rows.u32s(lines.clone().map(|line| line.head.logs as u32));
    rows.u32s(lines.clone().map(|line| line.tx.input.len() as u32));
    rows.u32s(lines.clone().map(|line| line.zeros as u32));
    rows.u32s(lines.clone().map(|line| (line.tx.input.len() - line.zeros) as u32));
    rows.u32s(lines.map(|line| line.tx.size as u32));
    rows.all_arrays(hash.0);
    rows.all_narrow(header.timestamp);
    rows.all_u64(chain_id);
    rows.end();
    Ok(())
}

/// A selected transaction of the block.
struct Line<'a> {
    index: u64,
    known: &'a Known,
    tx: StoredTransaction<'a>,
    head: &'a ReceiptHead<'a>,
    gas_used: u64,
    effective: Option<u64>,
    /// Number of zero bytes of the input.
    zeros: usize,
    /// Address of the contract that the transaction creates; None for a call.
    created: Option<[u8; 20]>,
}

/// Return the address of the contract that an account creates. `Address::create` does the same with the cache of
/// hashes, whose pages a scan would be the first to touch.
fn created(sender: &Address, nonce: u64) -> [u8; 20] {
    const LIST: u8 = 0xc0;
    const STRING: u8 = 0x80;
    let mut out = [0; 31];
    out[1] = STRING + 20;
    out[2..22].copy_from_slice(sender.as_slice());
    let digits = nonce.to_be_bytes();
    let digits = &digits[nonce.leading_zeros() as usize / 8..];
    let size = match digits {
        [digit] if *digit < STRING => {
            out[22] = *digit;
            23
        }
        _ => {
            out[22] = STRING + digits.len() as u8;
            out[23..23 + digits.len()].copy_from_slice(digits);
            23 + digits.len()
        }
    };
    out[0] = LIST + size as u8 - 1;
    Address::from_word(keccak256_uncached(&out[..size])).0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_addresses_agree_with_those_of_the_library() {
        let sender = Address::repeat_byte(0xa7);
        let nonces = (0..64).flat_map(|shift| [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1]);
        for nonce in nonces.chain([u64::MAX, 127, 128, 255, 256]) {
            assert_eq!(created(&sender, nonce), sender.create(nonce).0.0, "{nonce}");
        }
    }
}
