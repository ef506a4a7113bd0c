//! What every crate of Ophion uses. Nothing here knows of blocks, states or Python.

pub mod bytes;
pub mod deadline;
pub mod errors;
pub mod json;
pub mod keys;
pub mod memory;
pub mod signers;
