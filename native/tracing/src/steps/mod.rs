//! Struct logs.

pub mod cost;
pub mod original;
pub mod rows;
pub mod standard;
