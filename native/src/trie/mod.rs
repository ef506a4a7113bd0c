//! A persistent Merkle-Patricia trie.
//!
//! Nodes are shared (`Arc`) and never changed once somebody else can see them, so several versions of one
//! trie live side by side in memory: the head, a proposal on it, the block after an uncommitted block.
//! A node that was written to the database has a number (its *id*); parents remember id and hash of their
//! children, so an unloaded subtree costs forty bytes. Ids are handed out in order of writing, which makes
//! every write an append; docs/decisions says why that matters.
//!
//! | file      | question it answers                                    |
//! |-----------|--------------------------------------------------------|
//! | node.rs   | what is a node, how is it hashed                       |
//! | update.rs | read, insert, remove                                   |
//! | codec.rs  | how a node looks in the database, how a trie is saved  |
//! | walk.rs   | proofs, iteration, difference of two versions          |

mod codec;
mod node;
mod update;
mod walk;

#[cfg(test)]
mod tests;

pub use codec::{Reader, Saver, put_bytes, put_varint, save_root, stored_children};
pub use node::{Child, EMPTY_ROOT, Value};
pub use walk::proof;

use crate::errors::Result;

/// Where nodes that are not in memory come from.
pub trait Source {
    /// Hand the stored form of a node to `read`.
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T>;
}

/// A source without nodes, for tries that live in memory only.
pub struct NoSource;

impl Source for NoSource {
    fn load<T>(&self, id: u64, _: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        Err(crate::errors::Error::damaged(format!("trie node {id} is missing")))
    }
}

/// A trie: nothing, or a root node.
#[derive(Clone)]
pub struct Trie<V> {
    pub root: Option<Child<V>>,
}

impl<V> Default for Trie<V> {
    fn default() -> Self {
        Trie { root: None }
    }
}
