//! The data of a block that a commit writes to the database.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes, U256};

use crate::chain::body::BodyData;
use crate::chain::receipts::ReceiptData;
use crate::trie::{Account, Trie};

/// Results of executing a block, to be written to the database.
pub struct Effects {
    pub parent_root: B256,
    pub state_root: B256,
    pub receipts: Vec<ReceiptData>,
    /// Blob gas price of the block; zero before Cancun.
    pub blob_price: u128,
    pub trie: Trie<Account>,
    /// Estimated memory of the state's trie nodes, in bytes.
    pub weight: usize,
    /// Preimages of hashed keys: addresses of new accounts and keys of new slots.
    pub preimages: Vec<(B256, Vec<u8>)>,
    pub codes: Vec<(B256, Bytes)>,
}

/// A block with its execution results, ready to be written to the database.
pub struct BlockRecord {
    pub hash: B256,
    pub number: u64,
    pub header: Bytes,
    pub body: Arc<BodyData>,
    pub effects: Arc<Effects>,
    pub total_difficulty: U256,
}
