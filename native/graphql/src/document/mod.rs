//! Documents and their errors.

pub mod error_entries;
pub mod fields;
pub mod kinds;
pub mod plan;
pub mod planner;
pub mod shape;
