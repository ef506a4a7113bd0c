//! What peers say to each other, as bytes: no sockets, no clock, no randomness of its own, no Python.
//!
//! ```text
//! handshake   RLPx: who is there, and the secrets of a session (EIP-8)
//! session     frames both ways: encryption, authentication, compression
//! packet      discovery version 4: signed datagrams
//! record      node records (EIP-778)
//! rlp         cutting lists into their items
//! ```
//!
//! Everything here reads what strangers send. A function answers with a value or with one `Error` that names the place;
//! it never panics, and what it holds is bounded before the bytes that would fill it have arrived.

mod ecies;
mod error;
pub mod handshake;
mod keys;
mod mac;
pub mod packet;
pub mod record;
pub mod rlp;
pub mod session;
#[cfg(test)]
mod vectors;

pub use error::{Error, Result};
