//! Call trees.

pub mod call_tracer;
pub mod four_byte;
pub mod frames;
pub mod validation;
