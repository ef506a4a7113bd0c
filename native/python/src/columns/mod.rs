//! Python bindings of the chain's tables, as buffers that Python wraps without a copy.

pub mod tables;
