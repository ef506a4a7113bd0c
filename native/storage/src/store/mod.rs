//! The database.
//!
//! | file                | contents                                                  |
//! |---------------------|-----------------------------------------------------------|
//! | tables.rs           | all tables with their keys and values                     |
//! | opening.rs          | opening, and diagnosis of failures                        |
//! | database.rs         | caches, writer lock, commit                               |
//! | block.rs            | records of a block to be written                          |
//! | snapshot.rs         | reads of blocks, bodies and receipts                      |
//! | records.rs          | record formats                                            |
//! | roots.rs            | list of stored states                                     |
//! | preimages.rs        | addresses and slots by hash                               |
//! | tx_index.rs         | position of a transaction on the chain                    |
//! | tx_index_buffer.rs  | index rows of the last blocks, in memory                  |
//! | key_value_tables.rs | tables of other packages                                  |
//! | log_index.rs        | blocks by log address and topic                           |
//! | private.rs          | results of private transactions                           |
//! | mark.rs             | trie nodes that the stored states need                    |
//! | node_cache.rs       | trie nodes near the root, in memory                       |
//! | node_writer.rs      | ids of new trie nodes                                     |
//! | pruning.rs          | deletion of old states                                    |
//! | retain.rs           | removal of rows that the check does not cover             |
//! | state_download.rs   | states of other nodes, written in parts                   |
//! | check.rs            | integrity of the database                                 |
//! | check_private.rs    | integrity of private data                                 |

mod block;
mod check;
mod check_private;
mod database;
pub mod fork;
mod key_value_tables;
mod log_index;
mod mark;
mod node_cache;
mod node_writer;
mod opening;
mod preimages;
mod private;
mod pruning;
mod records;
mod retain;
mod roots;
mod snapshot;
mod state_download;
mod tables;
mod tx_index;
mod tx_index_buffer;

pub use block::{BlockRecord, Effects};
pub use check::{Watch, check};
pub use database::Database;
pub use key_value_tables::Change;
pub use log_index::{fold, folds};
pub use node_cache::MAX_CACHED_DEPTH;
pub use preimages::address_of;
pub use private::{GroupState, GroupStates, Marker, PrivateReceipt, PrivateStatus, PrivateWrites, note_late};
pub use pruning::Pruning;
pub use records::{decode_header, split_body};
pub use snapshot::Snapshot;
pub use state_download::{AccountBatch, Named, account_of, following};
