//! Re-execution of transactions.

pub mod block;
pub mod recording;
