//! Output stream and texts of traces.

mod curve;
pub mod precompiles;
pub mod repeated;
pub mod sink;
pub mod stream;
pub mod text;
