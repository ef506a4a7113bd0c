//! Calls as a tree.

pub mod four_byte;
pub mod frames;
pub mod tree;
