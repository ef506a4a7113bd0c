//! revm: database, environment, precompiled contracts, deadlines.

pub mod collision;
pub mod console;
pub mod context;
pub mod database;
pub mod deadline_watch;
pub mod env;
pub mod machine;
pub mod overrides;
pub mod precompiles;
