//! Blocks: run, grown, begun at genesis.

pub mod bounds;
mod dao;
pub mod genesis;
pub mod growth;
mod requests;
pub mod rules;
pub mod run;
