//! Fast path of pool admission: accepts plain transactions that stay within a set of limits (`Bounds`).
//!
//! Slow path: `pool/admission.py`, which checks rule by rule and names the rule that a transaction breaks. A
//! transaction that passes the fast path must pass the slow path. A transaction that fails the fast path may still be
//! valid. Every case of `tests/unit/pool/test_admission.py` compares both.

use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::U256;
use ophion_storage::chain::body::Tx;

use super::transaction_rules;
use crate::evm::block_environment::Fork;

/// Types 0 to 2 (legacy, EIP-2930, EIP-1559), which carry no blobs and no authorizations.
const MAX_PLAIN_TYPE: u8 = 2;

/// Limits that the pool applies to plain transactions. They are valid until the head changes.
pub struct Bounds {
    pub fork: Fork,
    pub chain_id: u64,
    pub last_type: u8,
    pub max_gas: u64,
    pub base_fee: u128,
    /// Minimum `maxFeePerGas`, or `gasPrice` of a legacy transaction.
    pub min_fee: u128,
    /// Minimum of base fee plus `maxPriorityFeePerGas`.
    pub min_price: u128,
    /// Minimum `maxPriorityFeePerGas`.
    pub min_tip: u128,
    /// Maximum total fee of a transaction in wei: gas limit times `maxFeePerGas`.
    pub max_total_fee: U256,
    pub max_init_code: usize,
}

impl Bounds {
    pub fn hold(&self, tx: &Tx) -> bool {
        let envelope = &tx.envelope;
        let (tx_type, gas, fee) = (envelope.tx_type() as u8, envelope.gas_limit(), envelope.max_fee_per_gas());
        tx_type <= self.last_type.min(MAX_PLAIN_TYPE)
            && self.chain_id != 0
            && envelope.chain_id() == Some(self.chain_id)
            && gas <= self.max_gas
            && fee >= self.min_fee
            && envelope.max_priority_fee_per_gas().is_none_or(|tip| {
                tip <= fee && tip >= self.min_tip && self.base_fee.saturating_add(tip) >= self.min_price
            })
            && envelope.nonce() != u64::MAX
            && (envelope.to().is_some() || envelope.input().len() <= self.max_init_code)
            && tx.is_low_s()
            && U256::from(fee) * U256::from(gas) <= self.max_total_fee
            && transaction_rules::intrinsic_gas(&envelope.into(), self.fork) <= gas
    }
}
