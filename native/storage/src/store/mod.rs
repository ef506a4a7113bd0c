//! The database.
//!
//! | file         | question it answers                                  |
//! |--------------|------------------------------------------------------|
//! | tables.rs    | which tables are there, what are key and value       |
//! | opening.rs   | how is it opened, and what can be wrong with it      |
//! | database.rs  | what is kept in memory, how is anything written      |
//! | block.rs     | what of a block is written                           |
//! | snapshot.rs  | how are blocks, bodies and receipts read             |
//! | records.rs   | how they look in their tables                        |
//! | roots.rs     | which states are kept                                |
//! | flat.rs      | how do the tables of the head's state follow it      |
//! | positions.rs | where on the chain does a transaction lie            |
//! | waiting.rs   | and one of the last blocks                           |
//! | rows.rs      | which tables belong to other rooms, how they are used |
//! | log_index.rs | what does the index of logs hold                     |
//! | private.rs   | what do private transactions leave                   |
//! | reach.rs     | which trie nodes do the kept states need             |
//! | node_writer.rs | how do trie nodes get their numbers               |
//! | pruning.rs   | how are old states dropped                           |
//! | check.rs     | is everything as it should be                        |
//! | check_private.rs | and what private transactions have left         |

mod block;
mod check;
mod check_private;
mod database;
mod flat;
mod key_value_tables;
mod log_index;
mod mark;
mod node_writer;
mod opening;
mod private;
mod pruning;
mod records;
mod roots;
mod snapshot;
mod tables;
mod tx_index;
mod tx_index_buffer;

pub use block::{BlockRecord, Effects};
pub use check::{Watch, check};
pub use database::Database;
pub use flat::{AccountChange, FlatChanges, address_of, storage_key};
pub use key_value_tables::Change;
pub use log_index::{fold, folds};
pub use private::{GroupState, GroupStates, Marker, PrivateReceipt, PrivateStatus, PrivateWrites, note_late};
pub use pruning::Pruning;
pub use records::{decode_header, split_body};
pub use snapshot::Snapshot;
