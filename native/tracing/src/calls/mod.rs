//! Call trees.

pub mod four_byte;
pub mod frames;
pub mod call_tracer;
