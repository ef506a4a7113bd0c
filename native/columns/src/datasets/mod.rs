//! The datasets and their columns. `src/ophion/data/datasets.py` documents every column. A test checks that Rust and
//! Python name the same columns.

pub mod blocks;
pub mod logs;
pub mod state_diffs;
mod stored_transaction;
pub mod traces;
pub mod transactions;

use crate::tables::table::Spec;

/// A table that this crate can fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dataset {
    Blocks,
    Transactions,
    Logs,
    Erc20Transfers,
    Erc721Transfers,
    Traces,
    NativeTransfers,
    Contracts,
    AddressAppearances,
    BalanceDiffs,
    NonceDiffs,
    CodeDiffs,
    StorageDiffs,
}

use Dataset::{
    AddressAppearances, BalanceDiffs, Blocks, CodeDiffs, Contracts, Erc20Transfers, Erc721Transfers, Logs,
    NativeTransfers, NonceDiffs, StorageDiffs, Traces, Transactions,
};

pub const ALL: [(&str, Dataset); 13] = [
    ("blocks", Blocks),
    ("transactions", Transactions),
    ("logs", Logs),
    ("erc20_transfers", Erc20Transfers),
    ("erc721_transfers", Erc721Transfers),
    ("traces", Traces),
    ("native_transfers", NativeTransfers),
    ("contracts", Contracts),
    ("address_appearances", AddressAppearances),
    ("balance_diffs", BalanceDiffs),
    ("nonce_diffs", NonceDiffs),
    ("code_diffs", CodeDiffs),
    ("storage_diffs", StorageDiffs),
];

impl Dataset {
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|(known, _)| *known == name).map(|(_, dataset)| *dataset)
    }

    /// Whether the rows of this dataset are state changes. Such rows are made without a trace of instructions.
    pub fn is_diff(self) -> bool {
        matches!(self, BalanceDiffs | NonceDiffs | CodeDiffs | StorageDiffs)
    }

    /// Whether most transactions have a row in this dataset.
    pub fn is_frequent(self) -> bool {
        !matches!(self, CodeDiffs | Contracts)
    }

    /// Return the columns in the order in which a row is written.
    pub fn specs(self) -> Vec<Spec> {
        match self {
            Blocks => blocks::specs(),
            Transactions => transactions::specs(),
            Logs => logs::specs(),
            Erc20Transfers => logs::erc20_specs(),
            Erc721Transfers => logs::erc721_specs(),
            Traces => traces::specs(),
            NativeTransfers => traces::native_transfer_specs(),
            Contracts => traces::contract_specs(),
            AddressAppearances => traces::appearance_specs(),
            BalanceDiffs => state_diffs::balance_specs(),
            NonceDiffs => state_diffs::nonce_specs(),
            CodeDiffs => state_diffs::code_specs(),
            StorageDiffs => state_diffs::storage_specs(),
        }
    }
}
