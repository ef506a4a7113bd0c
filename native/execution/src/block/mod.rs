//! Blocks: execution, incremental building, genesis.

pub mod admission_fast_path;
pub mod block_execution;
mod dao_fork;
pub mod empty_blocks;
mod execution_requests;
pub mod genesis;
pub mod incremental_builder;
pub mod state_edits;
mod system_calls;
pub mod transaction_rules;
