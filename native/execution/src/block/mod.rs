//! Blocks: execution, incremental building, genesis.

mod dao;
pub mod edit;
pub mod empty_run;
pub mod genesis;
pub mod incremental_builder;
pub mod plain_check;
mod requests;
pub mod rules;
pub mod run;
mod system_calls;
