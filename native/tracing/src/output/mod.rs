//! Output stream and texts of traces.

mod curve;
pub mod opcode_names;
pub mod precompiles;
pub mod repeated;
pub mod sink;
pub mod stream;
pub mod text;
