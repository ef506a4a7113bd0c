//! Python bindings of block execution, calls and simulations.

pub mod block;
pub mod call;
pub mod cancellation;
pub mod env;
pub mod ethash;
pub mod latest;
pub mod sandbox;
pub mod simulate;
pub mod vectors;
