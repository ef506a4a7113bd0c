//! Blocks, transactions, receipts and logs as JSON text.
//!
//! Written directly into the response buffer: a block of 4,000 transactions is 2.3 MB of text, and intermediate values
//! would cost more than the text. Members and order follow json-rpc.md 4 and 7.2: a member exists from its fork on.

mod blocks;
mod receipts;
mod transactions;

#[cfg(test)]
mod public_cases;
#[cfg(test)]
mod tests;

pub use blocks::{BlockParts, Transactions, write_block};
pub use receipts::{BlockReceipts, ReceiptParts, write_log, write_receipt};
pub use transactions::{Place, write_transaction};
