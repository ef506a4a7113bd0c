//! JSON-RPC objects of stored blocks, and log search.

pub mod blocks;
pub mod log_stream;
pub mod logs;
