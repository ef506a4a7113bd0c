//! Calls without lasting effects, and simulated blocks.

pub mod access_list;
pub mod call_cost_cache;
pub mod calls;
pub mod estimate;
pub mod fast_call;
pub mod latest;
pub mod outcome;
pub mod request;
pub mod sandbox;
pub mod simulate;
