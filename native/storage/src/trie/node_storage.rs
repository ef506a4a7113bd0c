//! Interfaces to the storage of trie nodes.

use ophion_primitives::errors::{Error, Result};

use super::branch_delta::Version;

/// Loads trie nodes that are not in memory.
pub trait Source {
    /// Load the node `id`: call `read` with its full stored form.
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T>;

    /// Same as `load`, for a node whose path from the root has `_depth` nibbles. A source may cache nodes near the
    /// root.
    fn load_at<T>(&self, id: u64, _depth: usize, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        self.load(id, read)
    }
}

/// A source that has no nodes. Tries that are completely in memory use it.
pub struct NoSource;

impl Source for NoSource {
    fn load<T>(&self, id: u64, _: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        Err(Error::damaged(format!("trie node {id} is missing")))
    }
}

/// Stores new trie nodes in the database and assigns their ids.
pub trait Saver {
    /// Return the buffer to whose end the stored form of the next trie node is written. A call of `put` must follow.
    fn out(&mut self) -> &mut Vec<u8>;
    /// Store what was written to the end of the buffer since the last call, as the trie node with the id `next`.
    fn put(&mut self) -> Result<()>;
    /// Return the id of the next new trie node.
    fn next(&self) -> u64;
    /// Load a stored trie node as the base of a delta.
    fn version(&self, id: u64) -> Result<Version>;
}
