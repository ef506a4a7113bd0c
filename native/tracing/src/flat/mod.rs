//! Flat traces: the calls of a transaction as a list.

pub mod besu_flat_traces;
pub mod blocks;
pub mod call_events;
pub mod entries;
pub mod flat_call_tracer;
pub mod frame_entries;
pub mod precompile_gas;
