//! Where a trace is written, and with which words.

mod curve;
pub mod precompiles;
pub mod repeated;
pub mod sink;
pub mod stream;
pub mod text;
