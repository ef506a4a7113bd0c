//! Struct logs.

pub mod cost;
pub mod original;
pub mod standard;
