//! Tracers of trace_replay* and trace_call*.

pub mod state_diff;
pub mod tracer;
pub mod vm_trace;
