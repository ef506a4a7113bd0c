//! revm: database, environment, precompiled contracts, deadlines.

pub mod block_environment;
pub mod console_log;
pub mod context;
pub mod create_collision;
pub mod database;
pub mod deadline_watch;
pub mod evm_builder;
pub mod overrides;
pub mod precompiles;
