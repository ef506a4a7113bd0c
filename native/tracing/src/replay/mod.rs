//! Re-execution of transactions.

pub mod block;
pub mod plain_transfer;
pub mod recording;
