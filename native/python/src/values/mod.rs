//! Value conversion, exceptions, keys, memory.

pub mod convert;
pub mod errors;
pub mod keys;
pub mod memory;
