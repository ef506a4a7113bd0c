//! Public Ethereum tests, run with the code that executes blocks.

pub mod state;
pub mod transaction;
mod verdict;

pub use verdict::Verdict;
