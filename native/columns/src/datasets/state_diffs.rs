//! Datasets `balance_diffs`, `nonce_diffs`, `code_diffs` and `storage_diffs`: state changes of each transaction.

use alloy_primitives::{Bytes, KECCAK256_EMPTY};
use ophion_primitives::errors::Result;
use ophion_tracing::parity::state_diff::AccountDiff;
use ophion_tracing::replay::block::Place;

use super::Dataset;
use crate::tables::column::Kind::{Binary, Fixed, U32, U64};
use crate::tables::table::{Row, Spec, Table, wide};

const PLACE: [Spec; 4] =
    [("block_number", U32), ("transaction_index", U32), ("transaction_hash", Fixed(32)), ("address", Fixed(20))];

fn with_place(own: impl IntoIterator<Item = Spec>) -> Vec<Spec> {
    PLACE.into_iter().chain(own).chain([("chain_id", U64)]).collect()
}

pub fn balance_specs() -> Vec<Spec> {
    let from = wide!("from_value_binary", "from_value_string", "from_value_f64", "from_value_decimal");
    with_place(from.into_iter().chain(wide!("to_value_binary", "to_value_string", "to_value_f64", "to_value_decimal")))
}

pub fn nonce_specs() -> Vec<Spec> {
    with_place([("from_value", U64), ("to_value", U64)])
}

pub fn code_specs() -> Vec<Spec> {
    with_place([("from_value", Binary), ("to_value", Binary)])
}

pub fn storage_specs() -> Vec<Spec> {
    with_place([("slot", Fixed(32)), ("from_value", Fixed(32)), ("to_value", Fixed(32))])
}

fn start<'t>(table: &'t mut Table, place: &Place, diff: &AccountDiff<'_>) -> Row<'t> {
    let mut row = table.row();
    row.u32(place.block_number as u32);
    row.u32(place.index as u32);
    row.bytes(place.hash);
    row.bytes(diff.address);
    row
}

/// Append a row if the transaction has changed the account. `code` reads the account's code before and after the
/// transaction.
pub fn append(
    table: &mut Table,
    dataset: Dataset,
    place: &Place,
    diff: &AccountDiff<'_>,
    chain_id: u64,
    code: impl FnOnce() -> Result<(Bytes, Bytes)>,
) -> Result<()> {
    let (before, after) = (diff.before.as_ref(), diff.after);
    let is_new_or_gone = before.is_some() != after.is_some();
    match dataset {
        Dataset::BalanceDiffs => {
            let values = [before, after].map(|info| info.map(|info| info.balance).unwrap_or_default());
            if values[0] != values[1] || is_new_or_gone {
                let mut row = start(table, place, diff);
                values.into_iter().for_each(|value| row.wide(value));
                row.u64(chain_id);
                row.end();
            }
        }
        Dataset::NonceDiffs => {
            let values = [before, after].map(|info| info.map_or(0, |info| info.nonce));
            if values[0] != values[1] || is_new_or_gone {
                let mut row = start(table, place, diff);
                values.into_iter().for_each(|value| row.u64(value));
                row.u64(chain_id);
                row.end();
            }
        }
        Dataset::CodeDiffs => {
            // A missing account has the hash of empty code. So the creation or deletion of an account without code is
            // no code change.
            let hashes = [before, after].map(|info| info.map_or(KECCAK256_EMPTY, |info| info.code_hash));
            if hashes[0] != hashes[1] {
                let (from, to) = code()?;
                let mut row = start(table, place, diff);
                row.bytes(from);
                row.bytes(to);
                row.u64(chain_id);
                row.end();
            }
        }
        _ => {
            for (slot, (from, to)) in diff.slots() {
                let mut row = start(table, place, diff);
                row.bytes(slot.to_be_bytes::<32>());
                row.bytes(from.to_be_bytes::<32>());
                row.bytes(to.to_be_bytes::<32>());
                row.u64(chain_id);
                row.end();
            }
        }
    }
    Ok(())
}
