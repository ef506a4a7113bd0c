//! Transactions, bodies and receipts.

pub mod body;
pub mod decoder;
pub mod receipts;
