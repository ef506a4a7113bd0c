//! Blocks, transactions, receipts and logs as the JSON text that JSON-RPC answers with.
//!
//! | folder   | question it answers                                         |
//! |----------|-------------------------------------------------------------|
//! | objects/ | which members has an object, in which order                 |
//! | chain/   | which objects answer a question to the database; log search |

pub mod chain;
pub mod objects;
