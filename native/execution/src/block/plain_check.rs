//! What nearly every transaction keeps to, compared in one go.
//!
//! The pool knows why a transaction is refused, rule by rule, and says so (pool/admission.py). Here is only said that none
//! of its rules could refuse this one: it is of a common type, signed for this chain, pays and asks for what is usual.
//! Whatever lies outside of these bounds is looked at closely there, and may be right all the same.

use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::U256;
use ophion_storage::chain::body::Tx;

use super::rules;
use crate::evm::env::Fork;

/// Legacy, access list, base fee and tip: types without parts of their own.
const LAST_COMMON_TYPE: u8 = 2;

/// Numbers to compare with; they hold between two heads.
pub struct Bounds {
    pub fork: Fork,
    pub chain_id: u64,
    pub last_type: u8,
    pub max_gas: u64,
    pub base_fee: u128,
    /// Least that must be offered for a unit of gas in all.
    pub least_fee: u128,
    /// Least that must be left of it beside the base fee, and that must be offered as such.
    pub least_price: u128,
    pub least_tip: u128,
    /// Most that may be paid for gas.
    pub max_paid: U256,
    pub max_init_code: usize,
}

impl Bounds {
    pub fn hold(&self, tx: &Tx) -> bool {
        let envelope = &tx.envelope;
        let (tx_type, gas, fee) = (envelope.tx_type() as u8, envelope.gas_limit(), envelope.max_fee_per_gas());
        tx_type <= self.last_type.min(LAST_COMMON_TYPE)
            && self.chain_id != 0
            && envelope.chain_id() == Some(self.chain_id)
            && gas <= self.max_gas
            && fee >= self.least_fee
            && envelope.max_priority_fee_per_gas().is_none_or(|tip| {
                tip <= fee && tip >= self.least_tip && self.base_fee.saturating_add(tip) >= self.least_price
            })
            && envelope.nonce() != u64::MAX
            && (envelope.to().is_some() || envelope.input().len() <= self.max_init_code)
            && tx.is_low_s()
            && U256::from(fee) * U256::from(gas) <= self.max_paid
            && rules::intrinsic_gas(&envelope.into(), self.fork) <= gas
    }
}
