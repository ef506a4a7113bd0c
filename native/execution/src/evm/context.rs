//! What revm computes with: our database beside its own block, transaction and configuration.

use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::Address;
use ophion_storage::chain::body::Tx;
use revm::context::{BlockEnv as EvmBlock, CfgEnv, Context, Journal, TxEnv};
use revm::context_interface::either::Either;

use super::database::ExecDb;

pub type EvmContext = Context<EvmBlock, TxEnv, CfgEnv, ExecDb, Journal<ExecDb>, ()>;
/// A transaction as revm wants it.
pub fn tx_env(tx: &Tx, sender: Address) -> TxEnv {
    let envelope = &tx.envelope;
    TxEnv {
        tx_type: envelope.tx_type() as u8,
        caller: sender,
        gas_limit: envelope.gas_limit(),
        gas_price: envelope.max_fee_per_gas(),
        kind: envelope.kind(),
        value: envelope.value(),
        data: envelope.input().clone(),
        nonce: envelope.nonce(),
        chain_id: envelope.chain_id(),
        access_list: envelope.access_list().cloned().unwrap_or_default(),
        gas_priority_fee: envelope.max_priority_fee_per_gas(),
        blob_hashes: envelope.blob_versioned_hashes().map(<[_]>::to_vec).unwrap_or_default(),
        max_fee_per_blob_gas: envelope.max_fee_per_blob_gas().unwrap_or_default(),
        authorization_list: envelope
            .authorization_list()
            .map(|list| list.iter().cloned().map(Either::Left).collect())
            .unwrap_or_default(),
    }
}
