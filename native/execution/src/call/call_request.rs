//! Call requests and their EVM configuration.

use revm::context::{CfgEnv, TxEnv};
use revm::primitives::hardfork::SpecId;

use crate::evm::block_environment::{BlockEnv, Fork};

pub struct CallRequest {
    /// Fields of the call request. `typed` chooses the transaction type.
    pub members: TxEnv,
    pub check_balance: bool,
    pub check_base_fee: bool,
}

impl CallRequest {
    pub fn cfg(&self, env: &BlockEnv) -> CfgEnv {
        cfg(env, &self.members, self.check_balance, self.check_base_fee)
    }

    pub fn transaction(&self, fork: Fork) -> TxEnv {
        typed(self.members.clone(), fork)
    }
}

/// Return the EVM configuration for calls at a block: without the transaction rules that do not apply to calls.
pub fn cfg(env: &BlockEnv, members: &TxEnv, check_balance: bool, check_base_fee: bool) -> CfgEnv {
    let mut cfg = env.cfg();
    cfg.tx_chain_id_check = false;
    cfg.disable_nonce_check = true;
    cfg.disable_eip3607 = true;
    cfg.disable_block_gas_limit = true;
    cfg.disable_base_fee = !has_fees(members) || !check_base_fee;
    cfg.disable_balance_check = !check_balance;
    cfg.tx_gas_limit_cap = Some(u64::MAX);
    cfg
}

/// Return whether a call sets a gas price or a priority fee above zero.
pub fn has_fees(tx: &TxEnv) -> bool {
    tx.gas_price > 0 || tx.gas_priority_fee.is_some_and(|tip| tip > 0)
}

/// Set the transaction type: the latest type that the fork supports and that one of the given fields requires.
pub fn typed(mut tx: TxEnv, fork: Fork) -> TxEnv {
    tx.tx_type = if !tx.authorization_list.is_empty() && fork.has(SpecId::PRAGUE) {
        4
    } else if !tx.blob_hashes.is_empty() && fork.has(SpecId::CANCUN) {
        3
    } else if tx.gas_priority_fee.is_some() && fork.has(SpecId::LONDON) {
        2
    } else {
        u8::from(!tx.access_list.is_empty() && fork.has(SpecId::BERLIN))
    };
    tx
}
