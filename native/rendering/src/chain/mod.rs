//! Objects of the stored chain.

pub mod blocks;
pub mod logs;
