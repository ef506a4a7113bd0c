//! The public vectors, through the same code that runs blocks.

pub mod state;
pub mod transaction;
mod verdict;

pub use verdict::Verdict;
