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
//! | messages/  | outlines of JSON texts and frames of WebSockets                  |

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

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
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
    execution::simulate::register(module)?;
    execution::vectors::register(module)?;
    tracing::trace::register(module)?;
    privacy::register(module)?;
    graphql::register(module)?;
    enclave::keyring::register(module)?;
    messages::clients::register(module)?;
    wire::peers::register(module)
}
