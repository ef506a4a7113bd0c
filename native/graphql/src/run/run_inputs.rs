//! Inputs and outputs of a query run.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{B256, Bytes, U256};
use ophion_storage::chain::body::{Known, Tx};

use crate::values::value::CallArguments;

/// A transaction of the pool.
#[derive(Clone)]
pub struct Pooled {
    pub tx: Arc<Tx>,
    pub known: Known,
}

/// Data that the node supplies to a query, besides the database.
pub struct Inputs {
    /// Hash and number of the head that the node has announced to clients.
    pub head: (B256, u64),
    /// Number of the oldest block whose state is stored. The genesis state always exists.
    pub oldest_state: u64,
    pub chain_id: u64,
    pub protocol_version: u32,
    /// Whether integers are written as hex strings instead of JSON numbers.
    pub shows_hex: bool,
    pub gas_price: U256,
    pub priority_fee: U256,
    /// Base fee of the next block; None before London.
    pub next_base_fee: Option<u64>,
    pub syncing: Option<(u64, u64, u64)>,
    pub pool: Vec<Pooled>,
    /// Transactions of the pool whose hashes the request contains.
    pub named: Vec<Pooled>,
}

/// Cost limits of one query run.
#[derive(Clone)]
pub struct Bounds {
    pub budget: u64,
    pub max_bytes: usize,
    pub max_blocks: u64,
    pub max_logs_range: u64,
    pub max_logs: usize,
    pub max_asks: usize,
    pub deadline: Instant,
}

/// A task that a query passes to the node: a call, an estimate or a transaction to send.
pub enum Ask {
    /// A call at a block, or at the pending block.
    Call {
        block: Option<B256>,
        is_estimate: bool,
        call: Arc<CallArguments>,
    },
    Send(Bytes),
}

/// Result of a task that the node has done for a query.
#[derive(Clone)]
pub enum Reply {
    /// The node has no result, because it does not have the state of the block.
    Nothing,
    Call {
        succeeded: bool,
        gas_used: u64,
        output: Bytes,
    },
    Gas(u64),
    Sent(B256),
    Failed {
        code: Option<i64>,
        message: String,
        data: Option<String>,
    },
}

pub enum Outcome {
    Answer {
        is_ok: bool,
        body: Vec<u8>,
    },
    Asks(Vec<Ask>),
    /// The query exceeded a limit of cost, response size or time. The request itself is valid.
    Exhausted(&'static str),
}
