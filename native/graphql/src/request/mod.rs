//! Converts the text of a request to a validated query.

pub mod body;
pub mod engine;
mod validation_errors;
