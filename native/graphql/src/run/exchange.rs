//! What a run is given and what comes out of it.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{B256, Bytes, U256};
use ophion_storage::chain::body::{Known, Tx};

use crate::values::value::CallArguments;

/// What a transaction of the pool is.
#[derive(Clone)]
pub struct Pooled {
    pub tx: Arc<Tx>,
    pub known: Known,
}

/// What the node knows beside the database.
pub struct Inputs {
    /// The block that the node has announced as its head.
    pub head: (B256, u64),
    /// The first block from which on the node keeps states; that of the genesis is always there.
    pub oldest_state: u64,
    pub chain_id: u64,
    pub protocol_version: u32,
    /// Integers are written as hex text.
    pub shows_hex: bool,
    pub gas_price: U256,
    pub priority_fee: U256,
    /// Base fee of the block after the head; None before London.
    pub next_base_fee: Option<u64>,
    pub syncing: Option<(u64, u64, u64)>,
    pub pool: Vec<Pooled>,
    /// Transactions of the pool that the request names.
    pub named: Vec<Pooled>,
}

/// What a run may cost.
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

/// Something for the node to do.
pub enum Ask {
    /// At a block, or in the next one.
    Call {
        block: Option<B256>,
        is_estimate: bool,
        call: Arc<CallArguments>,
    },
    Send(Bytes),
}

/// What became of it.
#[derive(Clone)]
pub enum Reply {
    /// The state is not there.
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
    /// More than the budget; nothing is wrong with the request itself.
    Exhausted(&'static str),
}
