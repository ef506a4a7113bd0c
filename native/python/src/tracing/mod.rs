//! Python bindings of transaction tracing.

pub mod trace;
