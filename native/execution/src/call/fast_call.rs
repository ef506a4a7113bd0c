//! The usual eth_call, read straight from its JSON members.

use alloy_primitives::{TxKind, hex};
use ophion_primitives::json;
use revm::context::TxEnv;

/// A call object of nothing but `to`, `data` or `input`, `from` and `gas`, all well formed.
pub struct UsualCall {
    tx: TxEnv,
    has_to: bool,
    has_data: bool,
}

impl Default for UsualCall {
    fn default() -> Self {
        UsualCall { tx: TxEnv { gas_limit: 0, gas_price: 0, ..TxEnv::default() }, has_to: false, has_data: false }
    }
}

impl UsualCall {
    /// Take a member; None for any that needs a closer look.
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

    /// The transaction, with `gas` where none was given, and `cap` at most.
    pub fn finish(mut self, gas: u64, cap: u64) -> Option<TxEnv> {
        if self.tx.gas_limit == 0 {
            self.tx.gas_limit = gas;
        }
        self.tx.gas_limit = self.tx.gas_limit.min(cap);
        self.has_to.then_some(self.tx)
    }
}
