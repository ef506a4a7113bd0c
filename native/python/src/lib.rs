//! Python bindings: classes, conversions and release of the GIL, without logic. No other crate depends on Python.
//!
//! | folder     | contents                                                         |
//! |------------|------------------------------------------------------------------|
//! | values/    | conversions, exceptions, Keccak, keys, memory                    |
//! | chain/     | transactions, bodies, states, the database                       |
//! | execution/ | environments, blocks, calls, simulations, ethash, public tests   |
//! | tracing/   | traces as streams                                                |
//! | columns/   | tables of the chain as buffers of columns                        |
//! | privacy/   | private transactions                                             |
//! | graphql/   | engine, queries and their tasks for the node                     |
//! | wire/      | handshakes, sessions, packets and records of peers               |
//! | enclave/   | keys of the enclave, sealed payloads                             |
//! | messages/  | plain requests, JSON outlines, WebSocket frames                  |

mod chain;
mod columns;
mod enclave;
mod execution;
mod graphql;
mod messages;
mod privacy;
mod tracing;
mod values;
mod wire;

use ophion_primitives::lazy_zeros::LazyZeros;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: LazyZeros = LazyZeros;

/// The type stub with which this extension was built.
const STUB: &str = include_str!("../../../src/ophion/_native.pyi");

/// Return whether a type stub has the same declarations as `STUB`. Comments and docstrings may differ.
#[pyfunction]
#[pyo3(signature = (stub, /))]
fn keeps(stub: &str) -> bool {
    stub == STUB || declarations(stub).eq(declarations(STUB))
}

fn declarations(stub: &str) -> impl Iterator<Item = &str> {
    let code = stub.split("\"\"\"").step_by(2).flat_map(str::lines);
    let bare = code.map(|line| line.trim_end_matches("...").trim());
    bare.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(keeps, module)?)?;
    // Cache 16,384 hashes of addresses, slots and mapping keys. The cache occupies memory only as it fills
    // (`LazyZeros`), up to 2 MiB.
    let _ = alloy_primitives::utils::init_keccak_cache(1 << 14);
    values::errors::register(module)?;
    values::keys::register(module)?;
    values::memory::register(module)?;
    chain::body::register(module)?;
    chain::fork::register(module)?;
    chain::log_stream::register(module)?;
    chain::state::register(module)?;
    chain::state_download::register(module)?;
    chain::block_history::register(module)?;
    chain::store::register(module)?;
    chain::trie::register(module)?;
    execution::block::register(module)?;
    execution::call::register(module)?;
    execution::cancellation::register(module)?;
    execution::env::register(module)?;
    execution::ethash::register(module)?;
    execution::latest::register(module)?;
    execution::sandbox::register(module)?;
    execution::simulate::register(module)?;
    execution::vectors::register(module)?;
    tracing::trace::register(module)?;
    columns::tables::register(module)?;
    privacy::register(module)?;
    graphql::register(module)?;
    enclave::keyring::register(module)?;
    messages::clients::register(module)?;
    messages::requests::register(module)?;
    wire::peers::register(module)
}
