//! revm: database, environment, precompiled contracts, deadlines.
//!
//! Instructions and their gas are those of revm. The only instruction of our own is SSTORE under EIP-1283: the
//! instruction is in `evm_builder`, its prices are in `block_environment`.

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
