//! Calls as a list.

pub mod blocks;
pub mod listing;
pub mod precompile;
pub mod turns;
