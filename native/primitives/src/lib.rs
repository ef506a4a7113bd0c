//! Shared by all crates: errors, deadlines, keys, JSON text, bytes. Independent of blocks, states and Python.

pub mod bytes;
pub mod deadline;
pub mod errors;
pub mod json;
pub mod keys;
pub mod memory;
pub mod signers;
