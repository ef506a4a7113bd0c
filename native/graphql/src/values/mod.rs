//! Values of the arguments and variables of a query.

pub mod binding;
pub mod scalars;
pub mod sources;
pub mod value;
