//! Running things.

pub mod block;
pub mod call;
pub mod cancellation;
pub mod env;
pub mod ethash;
pub mod newest;
pub mod simulate;
pub mod vectors;
