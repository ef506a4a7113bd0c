//! The database.
//!
//! | file                       | contents                                      |
//! |----------------------------|-----------------------------------------------|
//! | tables.rs                  | all tables with their keys and values         |
//! | opening.rs                 | opening, and diagnosis of failures            |
//! | database.rs                | caches, writer lock, commit                   |
//! | block_records.rs           | records of a block to be written              |
//! | block_history.rs           | blocks whose bodies follow their headers      |
//! | read_snapshot.rs           | reads of blocks, bodies and receipts          |
//! | records.rs                 | record formats                                |
//! | state_roots.rs             | list of stored states                         |
//! | preimages.rs               | addresses and slots by hash                   |
//! | preimage_runs.rs           | preimages in sorted runs                      |
//! | tx_index.rs                | position of a transaction on the chain        |
//! | tx_index_buffer.rs         | index rows of the last blocks, in memory      |
//! | key_value_tables.rs        | tables of other packages                      |
//! | known_rows.rs              | where a snapshot has found trie nodes         |
//! | log_index.rs               | blocks by log address and topic               |
//! | mapped_pages.rs            | memory that the map of the file takes         |
//! | memory_limit.rs            | memory of the machine or the control group    |
//! | missing_bodies.rs          | reads of bodies that may not be there yet     |
//! | private_results.rs         | results of private transactions               |
//! | reachability.rs            | trie nodes that the stored states need        |
//! | node_cache.rs              | trie nodes near the root, in memory           |
//! | node_writer.rs             | ids of new trie nodes                         |
//! | packed_nodes.rs            | rows of trie nodes                            |
//! | pruning.rs                 | deletion of old states                        |
//! | remove_unverified.rs       | removal of rows that the check does not cover |
//! | forked_state.rs            | state of the chain that a node forks          |
//! | state_download.rs          | states of other nodes, written in parts       |
//! | integrity_check.rs         | integrity of the database                     |
//! | private_integrity_check.rs | integrity of private data                     |

mod block_history;
mod block_records;
mod database;
pub mod forked_state;
mod integrity_check;
mod key_value_tables;
mod known_rows;
mod log_index;
mod mapped_pages;
mod memory_limit;
mod missing_bodies;
mod node_cache;
mod node_writer;
mod opening;
mod packed_nodes;
mod preimage_runs;
mod preimages;
mod private_integrity_check;
mod private_results;
mod pruning;
mod reachability;
mod read_snapshot;
mod records;
mod remove_unverified;
mod state_download;
mod state_roots;
mod tables;
mod tx_index;
mod tx_index_buffer;

pub use block_history::{ReceivedBlock, ReceivedHeader, addresses_in};
pub use block_records::{BlockRecord, Effects};
pub use database::Database;
pub use integrity_check::{Watch, check};
pub use key_value_tables::Change;
pub use log_index::{fold, folds};
pub use node_cache::MAX_CACHED_DEPTH;
pub use preimages::Preimages;
pub use private_results::{GroupState, GroupStates, Marker, PrivateReceipt, PrivateStatus, PrivateWrites, note_late};
pub use pruning::Pruning;
pub use read_snapshot::Snapshot;
pub use records::{decode_header, split_body};
pub use state_download::{AccountBatch, Named, account_of, following};
