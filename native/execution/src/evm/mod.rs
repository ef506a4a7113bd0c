//! revm: database, environment, precompiled contracts, deadlines.
//!
//! revm executes the instructions and defines their gas. The only exception is SSTORE under EIP-1283: the instruction
//! is in `evm_builder`, its gas prices are in `block_environment`.

pub mod block_environment;
pub mod console_log;
pub mod context;
pub mod create_collision;
pub mod database;
pub mod deadline_watch;
pub mod evm_builder;
pub mod overrides;
pub mod precompiles;
pub mod return_gas;
pub mod unread_accounts;
