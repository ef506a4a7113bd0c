//! Struct logs: one row per executed instruction.

pub mod besu_struct_log;
pub mod geth_struct_log;
pub mod instruction_cost;
pub mod rows;
