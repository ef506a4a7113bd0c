//! Tracers that record the calls of a transaction as a tree.

pub mod call_frames;
pub mod call_tracer;
pub mod erc7562_tracer;
pub mod four_byte_tracer;
