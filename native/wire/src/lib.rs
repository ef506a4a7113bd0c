//! Encoding and encryption of peer-to-peer messages. The crate needs no sockets, no clock, no random source and no
//! Python.
//!
//! ```text
//! handshake         RLPx handshake: node ids and session secrets (EIP-8)
//! frames            RLPx frames: encryption, authentication, compression
//! discovery_packet  discovery v4: signed datagrams
//! node_record       node records (EIP-778)
//! rlp               splits lists into their items
//! ```
//!
//! All input is untrusted. A function returns a value or an `Error` that names the invalid field; it never panics. The
//! size of a buffer is limited before its bytes arrive.

pub mod discovery_packet;
mod ecies;
mod error;
pub mod frames;
pub mod handshake;
mod keys;
mod mac;
pub mod node_record;
pub mod rlp;
pub mod snappy;
#[cfg(test)]
mod vectors;

pub use error::{Error, Result};
