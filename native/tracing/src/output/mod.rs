//! Where a trace is written, and with which words.

pub mod precompiles;
pub mod sink;
pub mod stream;
pub mod text;
