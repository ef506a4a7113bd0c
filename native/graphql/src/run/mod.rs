//! Query execution.

mod account_fields;
mod block_cache;
mod block_fields;
mod block_lookup;
mod json_scalars;
mod log_fields;
mod node_requests;
#[allow(clippy::module_inception)]
pub mod plan_execution;
mod query_root;
pub mod run_inputs;
mod transaction_fields;
