//! Calls without lasting effects, and simulated blocks.

pub mod access_list;
pub mod call_cost_cache;
pub mod call_request;
pub mod estimate_gas;
pub mod eth_call;
pub mod fast_call;
pub mod latest_block;
pub mod outcome;
pub mod sandbox;
pub mod simulate;
