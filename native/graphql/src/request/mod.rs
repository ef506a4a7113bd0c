//! From the text of a request to a checked query.

mod check;
pub mod engine;
