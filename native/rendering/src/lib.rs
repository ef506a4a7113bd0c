//! Blocks, transactions, receipts and logs as JSON text of JSON-RPC.
//!
//! | folder   | contents                                                    |
//! |----------|-------------------------------------------------------------|
//! | objects/ | members of each object and their order                      |
//! | chain/   | objects of the stored chain; log search                     |

pub mod chain;
pub mod objects;
