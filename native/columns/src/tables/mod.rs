//! Columns, tables, and the filter of their rows.

pub mod block_rows;
pub mod column;
pub mod filter;
pub mod table;
