//! Datasets `logs`, `erc20_transfers` and `erc721_transfers`: rows from the stored receipts, without decoding
//! transactions.

use alloy_primitives::{B256, U256, b256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::receipts::{StoredLog, visit_logs};
use ophion_storage::store::{Snapshot, decode_header};

use super::Dataset;
use crate::tables::column::Kind::{Binary, Fixed, U32, U64};
use crate::tables::filter::Filter;
use crate::tables::table::{Row, Spec, Table, wide};

/// First topic of ERC-20 and ERC-721 transfers: keccak256("Transfer(address,address,uint256)").
pub const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

const PLACE: [Spec; 6] = [
    ("block_number", U32),
    ("block_hash", Fixed(32)),
    ("timestamp", U32),
    ("transaction_index", U32),
    ("log_index", U32),
    ("transaction_hash", Fixed(32)),
];

fn with_place(own: impl IntoIterator<Item = Spec>) -> Vec<Spec> {
    PLACE.into_iter().chain(own).chain([("chain_id", U64)]).collect()
}

pub fn specs() -> Vec<Spec> {
    with_place([
        ("address", Fixed(20)),
        ("topic0", Fixed(32)),
        ("topic1", Fixed(32)),
        ("topic2", Fixed(32)),
        ("topic3", Fixed(32)),
        ("data", Binary),
        ("n_data_bytes", U32),
    ])
}

const PARTIES: [Spec; 3] = [("erc20", Fixed(20)), ("from_address", Fixed(20)), ("to_address", Fixed(20))];

pub fn erc20_specs() -> Vec<Spec> {
    with_place(PARTIES.into_iter().chain(wide!("value_binary", "value_string", "value_f64", "value_decimal")))
}

pub fn erc721_specs() -> Vec<Spec> {
    let token = wide!("token_id_binary", "token_id_string", "token_id_f64", "token_id_decimal");
    with_place(PARTIES.into_iter().chain(token))
}

pub fn is_erc20(log: &StoredLog<'_>) -> bool {
    log.topics.len() == 3 * 32 && log.data.len() == 32 && log.topics[..32] == TRANSFER[..]
}

pub fn is_erc721(log: &StoredLog<'_>) -> bool {
    log.topics.len() == 4 * 32 && log.data.is_empty() && log.topics[..32] == TRANSFER[..]
}

pub fn append(
    table: &mut Table,
    dataset: Dataset,
    snapshot: &Snapshot,
    hash: &B256,
    filter: &Filter,
    chain_id: u64,
) -> Result<()> {
    let missing = || Error::damaged(format!("block {hash} is incomplete"));
    let record = snapshot.receipts_record(hash)?.ok_or_else(missing)?;
    // Header and transaction hashes of the block. They are read only when the first log of the block is selected.
    let mut block: Option<(u32, u64, Vec<B256>)> = None;
    let mut failure = None;
    visit_logs(record, |log| {
        let is_kind = match dataset {
            Dataset::Erc20Transfers => is_erc20(&log),
            Dataset::Erc721Transfers => is_erc721(&log),
            _ => true,
        };
        if !is_kind || !filter.selects_log(log.address, log.topics) || failure.is_some() {
            return;
        }
        if block.is_none() {
            match place(snapshot, hash) {
                Ok(found) => block = Some(found),
                Err(cause) => {
                    failure = Some(cause);
                    return;
                }
            }
        }
        let Some((number, timestamp, hashes)) = &block else { return };
        let Some(transaction) = hashes.get(log.transaction) else {
            failure = Some(missing());
            return;
        };
        let mut row = table.row();
        row.u32(*number);
        row.bytes(hash);
        row.narrow(*timestamp);
        row.u32(log.transaction as u32);
        row.u32(log.index as u32);
        row.bytes(transaction);
        row.bytes(log.address);
        match dataset {
            Dataset::Logs => {
                (0..4).for_each(|at| row.maybe_bytes(log.topics.get(32 * at..32 * (at + 1))));
                row.bytes(log.data);
                row.u32(log.data.len() as u32);
            }
            Dataset::Erc20Transfers => parties(&mut row, &log, U256::from_be_slice(log.data)),
            _ => parties(&mut row, &log, U256::from_be_slice(&log.topics[96..])),
        }
        row.u64(chain_id);
        row.end();
    })?;
    failure.map_or(Ok(()), Err)
}

fn parties(row: &mut Row<'_>, log: &StoredLog<'_>, value: U256) {
    row.bytes(&log.topics[32 + 12..64]);
    row.bytes(&log.topics[64 + 12..96]);
    row.wide(value);
}

/// Return number, timestamp and transaction hashes of a block.
fn place(snapshot: &Snapshot, hash: &B256) -> Result<(u32, u64, Vec<B256>)> {
    let missing = || Error::damaged(format!("block {hash} is incomplete"));
    let (number, _, rlp) = snapshot.header(hash)?.ok_or_else(missing)?;
    let (known, _) = snapshot.stored_body(hash)?.ok_or_else(missing)?;
    let hashes = known.into_iter().map(|known| known.hash).collect();
    Ok((number as u32, decode_header(rlp)?.timestamp, hashes))
}
