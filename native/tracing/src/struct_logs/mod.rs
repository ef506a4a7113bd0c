//! Struct logs.

pub mod besu_struct_log;
pub mod cost;
pub mod geth_struct_log;
pub mod rows;
