//! The revm context over our database.

use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::{Address, U256};
use ophion_storage::chain::body::Tx;
use revm::context::{BlockEnv as EvmBlock, CfgEnv, Context, ContextTr, Journal, JournalTr, TxEnv};
use revm::context_interface::either::Either;
use revm::interpreter::interpreter_types::InputsTr;
use revm::interpreter::{CreateInputs, Interpreter};

use super::database::ExecDb;

pub type EvmContext = Context<EvmBlock, TxEnv, CfgEnv, ExecDb, Journal<ExecDb>, ()>;
/// Convert a transaction to revm's transaction type.
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

/// Return the address of the contract that a creation is about to make.
pub fn created_address(context: &mut EvmContext, inputs: &CreateInputs) -> Address {
    let caller = context.journal_mut().load_account(inputs.caller());
    inputs.created_address(caller.map_or(0, |account| account.info.nonce))
}

/// Return contract, beneficiary and balance of the SELFDESTRUCT that runs next; None if the stack is empty.
pub fn inheritance(interpreter: &Interpreter, context: &EvmContext) -> Option<(Address, Address, U256)> {
    let contract = interpreter.input.target_address();
    let heir = interpreter.stack.data().last().map(|top| Address::from_word((*top).into()))?;
    let account = context.journal().evm_state().get(&contract);
    Some((contract, heir, account.map_or(U256::ZERO, |account| account.info.balance)))
}
