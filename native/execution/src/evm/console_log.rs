//! Detects calls of `console.log`: Solidity libraries print text by calling an address without code.

use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::{Address, address};

/// The address that `console.log` of Hardhat and Foundry calls.
pub const CONSOLE: Address = address!("000000000000000000636F6e736F6c652e6c6f67");

/// Number of executions in this process that have read the account of `console.log`.
static READS: AtomicU64 = AtomicU64::new(0);

pub fn note_read() {
    READS.fetch_add(1, Ordering::Relaxed);
}

/// Return the number of executions that have called `console.log`. If an execution increases the number, a trace of
/// this execution contains the printed text.
pub fn reads() -> u64 {
    READS.load(Ordering::Relaxed)
}
