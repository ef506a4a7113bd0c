//! Blocks, transactions, receipts and logs as the JSON text that JSON-RPC answers with.
//!
//! Written straight into the answer's buffer: a block of 4,000 transactions is 2.3 MB of text, and any value built
//! in between would cost more than the text itself. Members and their order follow json-rpc.md 4 and 7.2: a member
//! exists from the fork that defines it, and is missing before.

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
