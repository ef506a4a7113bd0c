//! Converts the text of a request to a validated query.

pub mod body;
mod check;
pub mod engine;
