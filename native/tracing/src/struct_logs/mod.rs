//! Struct logs: one row per executed instruction.

pub mod besu_struct_log;
pub mod cost;
pub mod geth_struct_log;
pub mod rows;
