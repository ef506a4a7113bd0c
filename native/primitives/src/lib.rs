//! Code that all crates share: errors, deadlines, keys, hashes, JSON text, bytes. Independent of blocks, states and
//! Python.

pub mod bytes;
pub mod deadline;
pub mod errors;
pub mod json;
pub mod keccak;
pub mod keys;
pub mod lazy_zeros;
pub mod memory;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod signer_keys;
pub mod signers;
