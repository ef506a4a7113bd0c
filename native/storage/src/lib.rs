//! The database: what is in it, how it is written, and the states that can be read from it.
//!
//! | folder | question it answers                                                       |
//! |--------|---------------------------------------------------------------------------|
//! | trie/  | what is a Merkle-Patricia trie, in memory and stored; what do tries hold  |
//! | chain/ | what is a transaction, a body, a receipt; how are they decoded and kept   |
//! | store/ | which tables are there, how are blocks written and read, is it all sound  |
//! | state/ | where an account, a slot or a code of some state root is read from        |

pub mod chain;
pub mod state;
pub mod store;
pub mod trie;
