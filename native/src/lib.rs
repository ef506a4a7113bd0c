//! The computing half of Ophion. This file is a table of contents: modules, version, registration.

mod account;
mod body;
mod call;
mod chain_json;
mod check;
mod collision;
mod convert;
mod crypto;
mod dao;
mod env;
mod errors;
mod ethash;
mod evm;
mod exec_db;
mod execute;
mod graphql;
mod json_text;
mod keccak512;
mod logs;
mod precompiles;
mod py_body;
mod py_simulate;
mod py_state;
mod py_store;
mod py_trace;
mod py_trie;
mod py_wire;
mod receipts;
mod render;
mod requests;
mod simulate;
mod state;
mod state_test;
mod store;
mod tables;
mod trace_cost;
mod trace_flat;
mod trace_frames;
mod trace_geth;
mod trace_listing;
mod trace_parity;
mod trace_precompile;
mod trace_prestate;
mod trace_replay;
mod trace_sink;
mod trace_standard;
mod trace_stream;
mod trace_struct;
mod trace_text;
mod trace_turns;
mod trace_vm;
mod transaction_test;
mod trie;
mod txrules;
mod watch;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // 16,384 hashes of addresses, slots and mapping keys, 2 MiB: the same ones are asked for again and again.
    let _ = alloy_primitives::utils::init_keccak_cache(1 << 14);
    errors::register(module)?;
    crypto::register(module)?;
    env::register(module)?;
    call::register(module)?;
    ethash::register(module)?;
    graphql::register(module)?;
    py_body::register(module)?;
    py_simulate::register(module)?;
    py_state::register(module)?;
    py_store::register(module)?;
    py_trace::register(module)?;
    py_trie::register(module)?;
    py_wire::register(module)?;
    trace_stream::register(module)?;
    state_test::register(module)?;
    transaction_test::register(module)?;
    watch::register(module)
}
