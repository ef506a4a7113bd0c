//! Runs the public Ethereum tests with the code that executes blocks.

pub mod state;
pub mod transaction;
mod verdict;

pub use verdict::Verdict;
