//! JSON-RPC objects of stored blocks, and log search.

pub mod blocks;
pub mod logs;
