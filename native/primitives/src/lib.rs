//! Code that all crates share: errors, deadlines, keys, JSON text, bytes. It is independent of blocks, states and
//! Python.

pub mod bytes;
pub mod deadline;
pub mod errors;
pub mod json;
pub mod keys;
pub mod memory;
pub mod signers;
