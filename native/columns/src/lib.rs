//! Tables of the chain as columns in Arrow's memory layout.
//!
//! | file / folder | contents                                                   |
//! |---------------|------------------------------------------------------------|
//! | tables/       | columns, tables that are filled row by row, filter of rows |
//! | scan.rs       | stored blocks to rows                                      |
//! | parquet/      | columns to Parquet files                                   |
//! | replay.rs     | re-executed blocks to rows                                 |
//! | datasets/     | the columns of each dataset, and how a row is made         |
//!
//! Python wraps the buffers without a copy (docs/decisions/0149-columns-in-rust-files-by-pyarrow.md), or writes them as
//! Parquet (docs/decisions/0182-parquet-in-rust.md).

pub mod datasets;
pub mod parquet;
pub mod replay;
pub mod scan;
pub mod tables;
