//! Documents and their errors.

pub mod document_errors;
pub mod fields;
pub mod kinds;
pub mod plan;
pub mod planner;
pub mod shape;
