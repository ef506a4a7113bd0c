//! GraphQL documents: shape, plan and error entries.

pub mod error_entries;
pub mod fields;
pub mod kinds;
pub mod plan;
pub mod planner;
pub mod shape;
