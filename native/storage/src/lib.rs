//! The database: tables, tries, blocks, and access to states.
//!
//! | folder | contents                                                       |
//! |--------|----------------------------------------------------------------|
//! | trie/  | Merkle-Patricia tries, in memory and stored                    |
//! | chain/ | transactions, bodies, receipts, sender cache                   |
//! | store/ | tables, commits, snapshots, pruning, integrity                 |
//! | state/ | accounts, slots and code of a state root                       |

pub mod chain;
pub mod state;
pub mod store;
pub mod trie;
