//! Transactions, bodies and receipts.

pub mod body;
pub mod receipts;
