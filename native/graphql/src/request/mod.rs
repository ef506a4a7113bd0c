//! From the text of a request to a checked query.

pub mod body;
mod check;
pub mod engine;
