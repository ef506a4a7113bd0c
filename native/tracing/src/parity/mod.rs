//! Everything about one transaction at once.

pub mod diff;
pub mod tracer;
pub mod vm;
