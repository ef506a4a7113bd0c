//! Trace requests.

pub mod block_observer;
pub mod streams;
pub mod tracer_selection;
