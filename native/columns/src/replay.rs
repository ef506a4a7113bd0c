//! Converts re-executed blocks to rows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use alloy_primitives::{Address, Bytes};
use ophion_primitives::errors::Result;
use ophion_tracing::jobs::streams::TracedBlock;
use ophion_tracing::jobs::visits::{visit_changes, visit_entries};
use ophion_tracing::parity::diff::code_of;
use ophion_tracing::replay::block::{Place, Ran};

use crate::datasets::Dataset;
use crate::datasets::state_diffs;
use crate::datasets::traces::TracedRows;
use crate::tables::filter::Filter;
use crate::tables::table::Table;

/// Append the rows of one re-executed block to the table.
pub fn replay(
    table: &mut Table,
    dataset: Dataset,
    block: &TracedBlock,
    filter: &Filter,
    chain_id: u64,
    is_stopped: &Arc<AtomicBool>,
) -> Result<()> {
    match dataset {
        Dataset::BalanceDiffs | Dataset::NonceDiffs | Dataset::CodeDiffs | Dataset::StorageDiffs => {
            visit_changes(&block.block(), is_stopped, |ran, db, diff| {
                if !filter.addresses.is_empty() && !filter.addresses.contains(diff.address) {
                    return Ok(());
                }
                let code = || {
                    let from = diff.before.as_ref().map_or(Ok(Bytes::new()), |info| code_of(db, info))?;
                    Ok((from, diff.after.map_or(Ok(Bytes::new()), |info| code_of(db, info))?))
                };
                state_diffs::append(table, dataset, place_of(ran), diff, chain_id, code)
            })
        }
        _ => replay_entries(table, dataset, block, filter, chain_id, is_stopped),
    }
}

fn replay_entries(
    table: &mut Table,
    dataset: Dataset,
    block: &TracedBlock,
    filter: &Filter,
    chain_id: u64,
    is_stopped: &Arc<AtomicBool>,
) -> Result<()> {
    let mut rows = TracedRows {
        hash: block.hash,
        number: block.env.number as u32,
        beneficiary: block.env.beneficiary,
        chain_id,
        filter,
        entries: 0,
        creations: 0,
    };
    visit_entries(&block.block(), is_stopped, |ran, entries| {
        let place = place_of(ran);
        match dataset {
            Dataset::NativeTransfers => rows.native_transfers(table, place, entries),
            Dataset::Contracts => rows.contracts(table, place, entries),
            Dataset::AddressAppearances => rows.appearances(table, place, ran, entries),
            _ => rows.traces(table, place, entries),
        }
    })?;
    for (at, (author, value)) in block.rewards.iter().enumerate() {
        match dataset {
            Dataset::Traces => rows.trace_reward(table, *author, *value, at > 0),
            Dataset::NativeTransfers => rows.native_transfer(table, None, Address::ZERO, *author, *value),
            _ => {}
        }
    }
    Ok(())
}

fn place_of(ran: &Ran) -> &Place {
    ran.place.as_ref().expect("a transaction of a block has a position")
}
