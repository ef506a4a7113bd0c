//! Output stream and texts of traces.

mod bls12_381_errors;
pub mod opcode_names;
pub mod precompile_errors;
pub mod sink;
pub mod stream;
pub mod text;
pub mod word_list;
