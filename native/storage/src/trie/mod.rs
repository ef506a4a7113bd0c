//! A persistent Merkle-Patricia trie.
//!
//! Nodes are shared (`Arc`) and never changed once somebody else can see them, so several versions of one
//! trie live side by side in memory: the head, a proposal on it, the block after an uncommitted block.
//! A node that was written to the database has a number (its *id*); parents remember id and hash of their
//! children, so an unloaded subtree costs forty bytes. Ids are handed out in order of writing, which makes
//! every write an append; docs/decisions says why that matters.
//!
//! | file       | question it answers                                    |
//! |------------|--------------------------------------------------------|
//! | node.rs    | what is a trie, what is a node, how is it hashed       |
//! | source.rs  | where do nodes come from and go to                     |
//! | lookup.rs  | what a key holds                                       |
//! | update.rs  | insert, remove                                         |
//! | cooling.rs | which nodes need not stay in memory                    |
//! | codec.rs   | how a node looks in the database, how a trie is saved  |
//! | pieces.rs  | masks and children in stored nodes                     |
//! | change.rs  | how a branch stands as what has changed in it         |
//! | walk.rs    | proofs, iteration, difference of two versions          |
//! | account.rs | what the two kinds of tries hold                       |
//! | plain.rs   | tries of bytes, proofs: for tools                      |

mod account;
mod branch_delta;
mod codec;
mod evict;
mod lookup;
mod node;
mod node_parts;
mod plain;
mod source;
mod update;
mod walk;

#[cfg(test)]
mod tests;

pub use account::{Account, FlatAccount, Slot};
pub use branch_delta::{Version, load, version};
pub use codec::{references, save_root, stored_children};
pub use node::{Child, EMPTY_ROOT, Trie, Value};
pub use plain::{plain_root, proven};
pub use source::{NoSource, Saver, Source};
pub use walk::proof;
