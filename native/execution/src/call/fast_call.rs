//! Fast path of eth_call: decodes plain call objects from their JSON keys.
//!
//! Slow path: `rpc/services/call_object.py`, which decodes all other call objects.
//! `tests/unit/rpc/dispatch/test_fast_path.py` compares the replies.

use alloy_primitives::{TxKind, hex};
use ophion_primitives::json;
use revm::context::TxEnv;

/// A well-formed call object with only `to`, `data` or `input`, `from` and `gas`.
pub struct PlainCall {
    tx: TxEnv,
    has_to: bool,
    has_data: bool,
}

impl Default for PlainCall {
    fn default() -> Self {
        PlainCall { tx: TxEnv { gas_limit: 0, gas_price: 0, ..TxEnv::default() }, has_to: false, has_data: false }
    }
}

impl PlainCall {
    /// Set one field of the call from its JSON key. Returns None if the slow path must decode the call.
    pub fn take(&mut self, name: &str, value: &str) -> Option<()> {
        let digits = value.strip_prefix("0x")?;
        match name {
            "to" => {
                self.tx.kind = TxKind::Call(json::address(value)?);
                self.has_to = true;
            }
            "from" => self.tx.caller = json::address(value)?,
            "data" | "input" if !self.has_data => {
                self.tx.data = hex::decode(digits).ok()?.into();
                self.has_data = true;
            }
            "gas" => {
                let gas = u64::from_str_radix(digits, 16).ok()?;
                if gas == 0 || digits.starts_with('+') {
                    return None;
                }
                self.tx.gas_limit = gas;
            }
            _ => return None,
        }
        Some(())
    }

    /// Build the transaction of the call; None without `to`. `gas` is the default gas limit, `cap` the maximum.
    pub fn finish(mut self, gas: u64, cap: u64) -> Option<TxEnv> {
        if self.tx.gas_limit == 0 {
            self.tx.gas_limit = gas;
        }
        self.tx.gas_limit = self.tx.gas_limit.min(cap);
        self.has_to.then_some(self.tx)
    }
}
