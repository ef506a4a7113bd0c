//! What can be asked for.

pub mod kinds;
pub mod streams;
