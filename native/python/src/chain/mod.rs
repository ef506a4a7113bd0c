//! Python bindings of blocks, states and the database.

pub mod block_history;
pub mod body;
pub mod fork;
pub mod log_stream;
pub mod state;
pub mod state_download;
pub mod store;
pub mod trie;
