//! Calls that leave no trace, and simulated blocks.

pub mod access_list;
pub mod calls;
pub mod estimate;
pub mod newest;
pub mod outcome;
pub mod request;
pub mod simulate;
pub mod trying;
pub mod usual;
