//! Proof of work (ethash).

mod keccak512;
pub mod light;
