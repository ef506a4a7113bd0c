//! Blocks: run, built, begun at genesis.

mod dao;
pub mod genesis;
mod requests;
pub mod rules;
pub mod run;
