//! Converts re-executed blocks to rows. One execution of a block fills the tables of all datasets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use alloy_primitives::{Address, Bytes, Log, U256};
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_tracing::flat::entries::Entry;
use ophion_tracing::jobs::block_observer::{BlockObserver, Parts, Transfer, Visited, visit};
use ophion_tracing::jobs::streams::TracedBlock;
use ophion_tracing::parity::state_diff::{AccountDiff, code_of};
use ophion_tracing::replay::block::Place;

use crate::datasets::Dataset;
use crate::datasets::state_diffs;
use crate::datasets::traces::TracedRows;
use crate::tables::filter::Filter;
use crate::tables::table::Table;

/// Append the rows of one re-executed block to the table of each dataset. `previous` is the result for an earlier
/// block; if that block is the parent, its accounts are not read again. Without `is_fast`, all transactions run on the
/// slow path of `block_observer`.
pub fn replay(
    tables: &mut [(Dataset, Table)],
    block: &TracedBlock,
    previous: Option<Visited>,
    filter: &Filter,
    chain_id: u64,
    is_stopped: &Arc<AtomicBool>,
    is_fast: bool,
) -> Result<Visited> {
    let parts = Parts {
        entries: tables.iter().any(|(dataset, _)| !dataset.is_diff()),
        changes: tables.iter().any(|(dataset, _)| dataset.is_diff()),
    };
    let rows = TracedRows {
        hash: block.hash,
        number: block.env.number as u32,
        beneficiary: block.env.beneficiary,
        chain_id,
        filter,
        entries: 0,
        creations: 0,
    };
    let mut filler = Filler { tables, rows };
    let visited = visit(block, previous, is_stopped, parts, is_fast, &mut filler)?;
    for (at, (author, value)) in block.rewards.iter().enumerate() {
        filler.reward(*author, *value, at > 0);
    }
    tables.iter().try_for_each(|(_, table)| table.check_fit(block.env.number))?;
    Ok(visited)
}

/// Receives the transactions of one re-executed block and appends their rows to the tables.
struct Filler<'a> {
    tables: &'a mut [(Dataset, Table)],
    rows: TracedRows<'a>,
}

impl Filler<'_> {
    fn reward(&mut self, author: Address, value: U256, is_uncle: bool) {
        let rows = &mut self.rows;
        for (dataset, table) in self.tables.iter_mut() {
            match dataset {
                Dataset::Traces => rows.trace_reward(table, author, value, is_uncle),
                Dataset::NativeTransfers => rows.native_transfer(table, None, Address::ZERO, author, value),
                _ => {}
            }
        }
    }
}

impl BlockObserver for Filler<'_> {
    fn entries(&mut self, place: &Place, logs: &[Log], entries: &[Entry]) {
        let rows = &mut self.rows;
        for (dataset, table) in self.tables.iter_mut() {
            match dataset {
                Dataset::Traces => rows.traces(table, place, entries),
                Dataset::NativeTransfers => rows.native_transfers(table, place, entries),
                Dataset::Contracts => rows.contracts(table, place, entries),
                Dataset::AddressAppearances => rows.appearances(table, place, logs, entries),
                _ => {}
            }
        }
    }

    fn transfer(&mut self, place: &Place, transfer: &Transfer) {
        let rows = &mut self.rows;
        for (dataset, table) in self.tables.iter_mut() {
            match dataset {
                Dataset::Traces => rows.trace_transfer(table, place, transfer),
                Dataset::NativeTransfers => {
                    rows.native_transfer(table, Some(place), transfer.from, transfer.to, transfer.value);
                }
                Dataset::AddressAppearances => rows.transfer_appearances(table, place, transfer),
                _ => {}
            }
        }
    }

    fn change(&mut self, place: &Place, db: &mut ExecDb, diff: &AccountDiff<'_>) -> Result<()> {
        let TracedRows { filter, chain_id, .. } = self.rows;
        if !filter.addresses.is_empty() && !filter.addresses.contains(diff.address) {
            return Ok(());
        }
        for (dataset, table) in self.tables.iter_mut().filter(|(dataset, _)| dataset.is_diff()) {
            let code = || {
                let from = diff.before.as_ref().map_or(Ok(Bytes::new()), |info| code_of(db, info))?;
                Ok((from, diff.after.map_or(Ok(Bytes::new()), |info| code_of(db, info))?))
            };
            state_diffs::append(table, *dataset, place, diff, chain_id, code)?;
        }
        Ok(())
    }
}
