//! Transactions run again.

pub mod block;
