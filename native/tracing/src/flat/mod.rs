//! Call lists.

pub mod blocks;
pub mod call_events;
pub mod calls;
pub mod entries;
pub mod listing;
pub mod precompile;
