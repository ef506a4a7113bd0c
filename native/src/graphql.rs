//! GraphQL: documents checked against the schema, planned once, and run over one snapshot of the database.
//!
//! ```text
//! text -> shape (literals out) -> kept plan, or parse, validate, plan -> values bound -> run -> JSON text
//! ```

mod accounts;
mod asks;
mod binding;
mod blocks;
mod complaints;
mod engine;
mod fields;
mod objects;
mod plan;
mod python;
mod root;
mod run;
mod scalars;
mod shape;
mod transactions;

pub use python::register;
