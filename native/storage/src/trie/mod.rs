//! A persistent Merkle-Patricia trie.
//!
//! Nodes are shared (`Arc`) and immutable once shared, so several versions of a trie coexist in memory. A stored node
//! has an *id*; parents hold id and hash of their children, so an unloaded subtree takes forty bytes. Ids are
//! sequential, so every write is an append (docs/decisions/0010-sequential-trie-node-ids.md).
//!
//! | file            | contents                                |
//! |-----------------|-----------------------------------------|
//! | node.rs         | tries, nodes and their hashes           |
//! | hashing.rs      | hashes of many nodes at once            |
//! | node_storage.rs | interfaces to node storage              |
//! | lookup.rs       | key lookup                              |
//! | update.rs       | insertion and removal                   |
//! | evict.rs        | eviction of nodes from memory           |
//! | codec.rs        | stored form of nodes, saving            |
//! | node_parts.rs   | masks and children of stored nodes      |
//! | branch_delta.rs | branches stored as deltas               |
//! | proofs.rs       | proofs, iteration                       |
//! | paths.rs        | nodes by path                           |
//! | node_rlp.rs     | trie nodes in RLP, as peers send them   |
//! | range_proof.rs  | proofs that a range has all entries     |
//! | difference.rs   | differences from the trie of a peer     |
//! | account.rs      | values: accounts and slots              |
//! | memory_trie.rs  | tries of bytes, for tools               |

mod account;
mod branch_delta;
mod codec;
mod difference;
mod evict;
mod hashing;
mod lookup;
mod memory_trie;
mod node;
mod node_parts;
mod node_rlp;
mod node_storage;
mod paths;
mod proofs;
mod range_proof;
mod update;

#[cfg(test)]
mod tests;

pub use account::{Account, FlatAccount, Slot};
pub use branch_delta::{Version, load, version};
pub use codec::{references, save_root, stored_children};
pub use difference::Difference;
pub use memory_trie::{plain_root, proven};
pub use node::{Child, EMPTY_ROOT, Trie, Value, encoded_path};
pub use node_rlp::{hash as rlp_hash, list as rlp_list, string as rlp_string};
pub use node_storage::{NoSource, Saver, Source};
pub use paths::node_at;
pub use proofs::proof;
pub use range_proof::verify_range;
