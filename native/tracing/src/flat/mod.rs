//! Calls as a list.

pub mod blocks;
pub mod calls;
pub mod entries;
pub mod listing;
pub mod precompile;
pub mod turns;
