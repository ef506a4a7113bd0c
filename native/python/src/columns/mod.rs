//! Tables of the chain as buffers that Python wraps without a copy.

pub mod tables;
