//! Datasets `logs`, `erc20_transfers` and `erc721_transfers`: rows from the stored receipts, without decoding
//! transactions.

use alloy_primitives::{B256, U256, b256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::Known;
use ophion_storage::chain::receipts::{StoredLog, visit_logs};
use ophion_storage::store::{Snapshot, decode_header};

use super::Dataset;
use crate::tables::block_rows::BlockRows;
use crate::tables::column::Kind::{Binary, Fixed, U32, U64};
use crate::tables::filter::Filter;
use crate::tables::table::{Spec, Table, wide};

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
    let mut logs = Vec::new();
    visit_logs(snapshot.receipts_record(hash)?.ok_or_else(missing)?, |log| {
        let is_kind = match dataset {
            Dataset::Erc20Transfers => is_erc20(&log),
            Dataset::Erc721Transfers => is_erc721(&log),
            _ => true,
        };
        if is_kind && filter.selects_log(log.address, log.topics) {
            logs.push(log);
        }
    })?;
    let Some(last) = logs.last() else { return Ok(()) };
    // Header and body are read only if a log of the block is selected.
    let (number, timestamp, transactions) = place(snapshot, hash)?;
    if last.transaction >= transactions.len() {
        return Err(missing());
    }
    let logs = logs.iter();
    let mut rows = table.block_rows(logs.len());
    rows.all_u32(number);
    rows.all_arrays(hash.0);
    rows.all_narrow(timestamp);
    rows.u32s(logs.clone().map(|log| log.transaction as u32));
    rows.u32s(logs.clone().map(|log| log.index as u32));
    rows.arrays(logs.clone().map(|log| transactions[log.transaction].hash.0));
    rows.arrays(logs.clone().map(|log| array::<20>(log.address)));
    match dataset {
        Dataset::Logs => {
            for at in 0..4 {
                rows.maybe_arrays(logs.clone().map(|log| topic(log, at)));
            }
            rows.strings(logs.clone().map(|log| log.data));
            rows.u32s(logs.map(|log| log.data.len() as u32));
        }
        Dataset::Erc20Transfers => {
            parties(&mut rows, logs.clone());
            rows.wides(logs.map(|log| U256::from_be_slice(log.data)));
        }
        _ => {
            parties(&mut rows, logs.clone());
            rows.wides(logs.map(|log| U256::from_be_slice(&log.topics[96..])));
        }
    }
    rows.all_u64(chain_id);
    rows.end();
    Ok(())
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a stored log has parts of fixed length")
}

fn topic(log: &StoredLog<'_>, at: usize) -> Option<[u8; 32]> {
    log.topics.get(32 * at..32 * (at + 1)).map(array)
}

fn parties<'a>(rows: &mut BlockRows<'_>, logs: impl Iterator<Item = &'a StoredLog<'a>> + Clone) {
    rows.arrays(logs.clone().map(|log| array::<20>(&log.topics[32 + 12..64])));
    rows.arrays(logs.map(|log| array::<20>(&log.topics[64 + 12..96])));
}

/// Return number, timestamp and transactions of a block.
fn place(snapshot: &Snapshot, hash: &B256) -> Result<(u32, u64, Vec<Known>)> {
    let missing = || Error::damaged(format!("block {hash} is incomplete"));
    let (number, _, rlp) = snapshot.header(hash)?.ok_or_else(missing)?;
    let (known, _) = snapshot.stored_body(hash)?.ok_or_else(missing)?;
    Ok((number as u32, decode_header(rlp)?.timestamp, known))
}
