//! Private transactions: every privacy group has its own state besides the public state.
//!
//! | file           | content                                                          |
//! |----------------|------------------------------------------------------------------|
//! | transaction.rs | encoding, hashes and signature of a private transaction          |
//! | flexible.rs    | member lists of flexible groups                                  |
//! | group.rs       | addresses of contracts that a group creates                      |
//! | marker.rs      | the public transaction that refers to a private one              |
//! | run.rs         | executes one transaction on the state of its group               |
//! | trace.rs       | executes a transaction again with a tracer                       |
//! | batch.rs       | executes the transactions of some blocks and collects the writes |

pub mod batch;
pub mod flexible;
pub mod group;
pub mod marker;
pub mod run;
pub mod trace;
pub mod transaction;
