//! Transactions, bodies, receipts, and who sent what.

pub mod body;
pub mod decoder;
pub mod ordered_root;
pub mod receipts;
pub mod sender_cache;
