//! Blocks, transactions, receipts and logs as JSON text.
//!
//! The functions write the text directly into the response buffer: a block of 4,000 transactions has 2.3 MB of text,
//! and building intermediate values would take longer. JSON keys and their order follow json-rpc.md 4 and 7.2. A key
//! appears from the fork that introduced it.

mod blocks;
mod receipts;
mod transactions;

#[cfg(test)]
mod public_cases;
#[cfg(test)]
mod tests;

pub use blocks::{BlockParts, Transactions, write_block};
pub use receipts::{BlockReceipts, LogPlace, ReceiptParts, write_log, write_receipt, write_stored_log};
pub use transactions::{Place, write_transaction};
