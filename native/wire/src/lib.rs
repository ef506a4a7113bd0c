//! Encoding and encryption of peer-to-peer messages. The crate needs no sockets, no clock, no random source and no
//! Python.
//!
//! ```text
//! handshake   RLPx handshake: node ids and session secrets (EIP-8)
//! session     RLPx frames: encryption, authentication, compression
//! packet      discovery v4: signed datagrams
//! record      node records (EIP-778)
//! rlp         splits lists into their items
//! ```
//!
//! All input is untrusted. A function returns a value or an `Error` that names the invalid field; it never panics. The
//! size of a buffer is limited before its bytes arrive.

mod ecies;
mod error;
pub mod handshake;
mod keys;
mod mac;
pub mod packet;
pub mod record;
pub mod rlp;
pub mod session;
pub mod snappy;
#[cfg(test)]
mod vectors;

pub use error::{Error, Result};
