//! Query execution.

mod accounts;
mod blocks;
mod chain;
pub mod exchange;
mod logs;
mod node_requests;
mod objects;
mod root;
#[allow(clippy::module_inception)]
pub mod run;
mod transactions;
mod values;
