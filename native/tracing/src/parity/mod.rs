//! trace_replay* and trace_call*.

pub mod diff;
pub mod tracer;
pub mod vm;
