//! Arguments and variables.

pub mod binding;
pub mod scalars;
pub mod sources;
pub mod value;
