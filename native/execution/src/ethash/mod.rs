//! Proof of work.

pub mod ethash;
mod keccak512;
