//! Execution of blocks, calls and simulations; ethash.
//!
//! | folder   | contents                                                                |
//! |----------|-------------------------------------------------------------------------|
//! | evm/     | revm: database, environment, precompiled contracts, deadlines           |
//! | block/   | block execution, incremental building, fork rules, genesis              |
//! | call/    | calls, gas estimation, access lists, simulated blocks                   |
//! | ethash/  | proof of work                                                           |
//! | vectors/ | public Ethereum tests                                                   |

pub mod block;
pub mod call;
pub mod ethash;
pub mod evm;
pub mod vectors;
