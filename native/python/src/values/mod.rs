//! Conversions between Python and Rust values, exceptions, keys, memory.

pub mod convert;
pub mod errors;
pub mod keys;
pub mod memory;
