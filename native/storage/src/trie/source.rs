//! Where the nodes of a trie come from, and where they go.

use ophion_primitives::errors::{Error, Result};

/// Where nodes that are not in memory come from.
pub trait Source {
    /// Hand the stored form of a node to `read`.
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
}
