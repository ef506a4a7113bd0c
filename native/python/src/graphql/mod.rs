//! Python bindings of the GraphQL engine.

mod engine;
mod node_requests;
mod query;
mod text;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<engine::GraphqlEngine>()?;
    module.add_class::<query::GraphqlQuery>()?;
    module.add_class::<query::GraphqlRound>()?;
    module.add_class::<text::GraphqlText>()?;
    module.add_class::<node_requests::GraphqlAsk>()?;
    module.add_class::<node_requests::GraphqlReply>()
}
