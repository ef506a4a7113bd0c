//! Tracing.

pub mod trace;
