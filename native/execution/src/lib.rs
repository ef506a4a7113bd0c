//! Everything that runs: blocks, calls, simulations; and the work of proof-of-work.
//!
//! | folder   | question it answers                                                             |
//! |----------|---------------------------------------------------------------------------------|
//! | evm/     | how is revm set up: database, environment, precompiled contracts, deadlines     |
//! | block/   | in which order does a block run, what does each fork accept                     |
//! | call/    | calls, gas estimation, access lists, simulated blocks                           |
//! | work/    | light ethash                                                                    |
//! | vectors/ | the public vectors                                                              |

pub mod block;
pub mod call;
pub mod evm;
pub mod vectors;
pub mod work;
