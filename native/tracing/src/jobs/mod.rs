//! Trace requests.

pub mod kinds;
pub mod streams;
pub mod visits;
