//! What peers say to each other.

pub mod peers;
