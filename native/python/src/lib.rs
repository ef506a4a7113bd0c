//! The door to Python: this crate alone knows the interpreter. No logic; classes, conversions and the release of the
//! interpreter's lock.
//!
//! | folder     | question it answers                                              |
//! |------------|------------------------------------------------------------------|
//! | values/    | how do numbers, bytes and errors cross; Keccak and keys; memory  |
//! | chain/     | transactions, bodies, states and the store as Python sees them   |
//! | execution/ | environments, calls, simulations, ethash, the public vectors     |
//! | tracing/   | traces as streams                                                |
//! | privacy/   | private transactions, and what they leave                         |
//! | graphql/   | engine, queries and what they ask of the node                    |
//! | wire/      | handshakes, sessions, packets and records of peers               |
//! | enclave/   | keys of the enclave, sealed payloads                             |
//! | messages/  | usual requests, outlines of JSON texts, frames of WebSockets     |

mod chain;
mod enclave;
mod execution;
mod graphql;
mod messages;
mod privacy;
mod tracing;
mod values;
mod wire;

use pyo3::prelude::*;

/// What Python was told of this extension when it was built.
const CONTRACT: &str = include_str!("../../../src/ophion/_native.pyi");

/// Whether these are the declarations of our contract. What is said about them may have changed.
#[pyfunction]
#[pyo3(signature = (contract, /))]
fn keeps(contract: &str) -> bool {
    contract == CONTRACT || declarations(contract).eq(declarations(CONTRACT))
}

fn declarations(contract: &str) -> impl Iterator<Item = &str> {
    let code = contract.split("\"\"\"").step_by(2).flat_map(str::lines);
    let bare = code.map(|line| line.trim_end_matches("...").trim());
    bare.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(keeps, module)?)?;
    // 16,384 hashes of addresses, slots and mapping keys, 2 MiB: the same ones are asked for again and again.
    let _ = alloy_primitives::utils::init_keccak_cache(1 << 14);
    values::errors::register(module)?;
    values::keys::register(module)?;
    values::memory::register(module)?;
    chain::body::register(module)?;
    chain::state::register(module)?;
    chain::store::register(module)?;
    chain::trie::register(module)?;
    execution::block::register(module)?;
    execution::call::register(module)?;
    execution::cancellation::register(module)?;
    execution::env::register(module)?;
    execution::ethash::register(module)?;
    execution::latest::register(module)?;
    execution::simulate::register(module)?;
    execution::vectors::register(module)?;
    tracing::trace::register(module)?;
    privacy::register(module)?;
    graphql::register(module)?;
    enclave::keyring::register(module)?;
    messages::clients::register(module)?;
    messages::requests::register(module)?;
    wire::peers::register(module)
}
