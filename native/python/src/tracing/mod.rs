//! Traces.

pub mod trace;
