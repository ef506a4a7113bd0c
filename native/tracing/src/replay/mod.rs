//! Re-execution of transactions.

pub mod block;
pub mod kept_journal;
pub mod plain_transfer;
pub mod recording;
