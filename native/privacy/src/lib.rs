//! Private transactions: every privacy group has its own state besides the public state.
//!
//! | file                     | content                                                          |
//! |--------------------------|------------------------------------------------------------------|
//! | transaction.rs           | encoding, hashes and signature of a private transaction          |
//! | flexible_groups.rs       | member lists of flexible groups                                  |
//! | contract_addresses.rs    | addresses of contracts that a group creates                      |
//! | marker_transaction.rs    | the public transaction that refers to a private one              |
//! | transaction_execution.rs | executes one transaction on the state of its group               |
//! | trace.rs                 | executes a transaction again with a tracer                       |
//! | batch_execution.rs       | executes the transactions of some blocks and collects the writes |

pub mod batch_execution;
pub mod contract_addresses;
pub mod flexible_groups;
pub mod marker_transaction;
pub mod trace;
pub mod transaction;
pub mod transaction_execution;
