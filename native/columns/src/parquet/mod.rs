//! Parquet files from columns (docs/decisions/0182-parquet-in-rust.md).
//!
//! | file          | contents                                                        |
//! |---------------|-----------------------------------------------------------------|
//! | thrift.rs     | Thrift's compact protocol, in which Parquet writes its metadata |
//! | levels.rs     | runs of small numbers: validity and positions in a dictionary   |
//! | dictionary.rs | distinct values of a column that repeats                        |
//! | chunk.rs      | the values of one column in one row group, as compressed pages  |
//! | metadata.rs   | page headers and the footer                                     |
//! | file.rs       | row groups and footer, in the order of the file                 |

pub mod file;

mod chunk;
mod dictionary;
mod levels;
mod metadata;
mod thrift;
