//! Transactions run again.

pub mod block;
pub mod recording;
