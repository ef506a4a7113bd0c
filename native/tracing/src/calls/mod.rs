//! Calls as a tree.

pub mod frames;
pub mod tree;
