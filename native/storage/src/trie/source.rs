//! Where the nodes of a trie come from, and where they go.

use ophion_primitives::errors::{Error, Result};

use super::branch_delta::Version;

/// Where nodes that are not in memory come from.
pub trait Source {
    /// Hand the whole stored form of a node to `read`.
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T>;
}

/// A source without nodes, for tries that live in memory only.
pub struct NoSource;

impl Source for NoSource {
    fn load<T>(&self, id: u64, _: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        Err(Error::damaged(format!("trie node {id} is missing")))
    }
}

/// Takes new nodes and gives them numbers.
pub trait Saver {
    fn put(&mut self, stored: &[u8]) -> Result<u64>;
    /// The number of the next one.
    fn next(&self) -> u64;
    /// A node that was put before.
    fn version(&self, id: u64) -> Result<Version>;
}
