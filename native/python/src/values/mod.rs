//! Values that cross, and what is raised.

pub mod convert;
pub mod errors;
pub mod keys;
pub mod memory;
