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
mod documents;
mod engine;
mod exchange;
mod fields;
mod kinds;
mod objects;
mod plan;
mod planner;
mod py_asks;
mod py_engine;
mod py_query;
mod py_text;
mod root;
mod run;
mod scalars;
mod shape;
mod sources;
mod transactions;
mod values;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<py_engine::GraphqlEngine>()?;
    module.add_class::<py_query::GraphqlQuery>()?;
    module.add_class::<py_query::GraphqlRound>()?;
    module.add_class::<py_text::GraphqlText>()?;
    module.add_class::<py_asks::GraphqlAsk>()?;
    module.add_class::<py_asks::GraphqlReply>()
}
