//! Private transactions: a state for every group of participants, beside the public one.
//!
//! | file           | question it answers                                                       |
//! |----------------|---------------------------------------------------------------------------|
//! | transaction.rs | what is a private transaction: bytes, hashes, signature                   |
//! | flexible.rs    | who belongs to a group whose members a contract keeps                     |
//! | group.rs       | where does a group create contracts                                       |
//! | marker.rs      | what stands for it on the public chain                                    |
//! | run.rs         | how is one run on the state of its group                                  |
//! | trace.rs       | how is one run again, with a tracer                                       |
//! | batch.rs       | how do the private transactions of some blocks become something to write  |

pub mod batch;
pub mod flexible;
pub mod group;
pub mod marker;
pub mod run;
pub mod trace;
pub mod transaction;
