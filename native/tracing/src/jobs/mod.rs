//! Runs trace requests: selects the tracer and streams its output.

pub mod block_observer;
pub mod streams;
pub mod tracer_selection;
