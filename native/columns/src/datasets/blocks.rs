//! Dataset `blocks`: one row per block.

use alloy_primitives::{B256, U256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::store::{Snapshot, decode_header};

use crate::tables::column::Kind::{Binary, Fixed, U32, U64};
use crate::tables::table::{Spec, Table, wide};

pub fn specs() -> Vec<Spec> {
    let mut specs = vec![
        ("block_hash", Fixed(32)),
        ("parent_hash", Fixed(32)),
        ("author", Fixed(20)),
        ("state_root", Fixed(32)),
        ("transactions_root", Fixed(32)),
        ("receipts_root", Fixed(32)),
        ("block_number", U32),
        ("gas_used", U64),
        ("gas_limit", U64),
        ("extra_data", Binary),
        ("logs_bloom", Fixed(256)),
        ("timestamp", U32),
    ];
    specs.extend(wide!(
        "total_difficulty_binary",
        "total_difficulty_string",
        "total_difficulty_f64",
        "total_difficulty_decimal"
    ));
    specs.extend([("size", U32), ("n_transactions", U32), ("base_fee_per_gas", U64), ("chain_id", U64)]);
    specs
}

pub fn append(table: &mut Table, snapshot: &Snapshot, hash: &B256, chain_id: u64) -> Result<()> {
    let missing = || Error::damaged(format!("block {hash} is incomplete"));
    let (number, total, rlp): (u64, U256, &[u8]) = snapshot.header(hash)?.ok_or_else(missing)?;
    let header = decode_header(rlp)?;
    let (transactions, body_bytes) = snapshot.body_size(hash)?.ok_or_else(missing)?;
    let content = rlp.len() + body_bytes;
    let mut row = table.row();
    row.bytes(hash);
    row.bytes(header.parent_hash);
    row.bytes(header.beneficiary);
    row.bytes(header.state_root);
    row.bytes(header.transactions_root);
    row.bytes(header.receipts_root);
    row.u32(number as u32);
    row.u64(header.gas_used);
    row.u64(header.gas_limit);
    row.bytes(&header.extra_data);
    row.bytes(header.logs_bloom);
    row.narrow(header.timestamp);
    row.wide(total);
    row.u32((alloy_rlp::length_of_length(content) + content) as u32);
    row.u32(transactions as u32);
    row.maybe_u64(header.base_fee_per_gas);
    row.u64(chain_id);
    row.end();
    Ok(())
}
