//! Everything about one transaction at once.

pub mod tracer;
pub mod vm;
