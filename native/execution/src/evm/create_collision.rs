//! EIP-7610: a contract cannot be created at an address with storage, even without code and nonce.
//!
//! revm checks only code and nonce. Accounts with only storage are rare, so the database only records that a
//! transaction has read such an account. The transaction then runs again with this check.

use alloy_primitives::Bytes;
use revm::context::{ContextTr, JournalTr};
use revm::context_interface::journaled_state::account::JournaledAccountTr;
use revm::inspector::Inspector;
use revm::interpreter::{CreateInputs, CreateOutcome, Gas, InstructionResult, InterpreterResult};

use super::context::EvmContext;

pub struct CollisionGuard;

impl Inspector<EvmContext> for CollisionGuard {
    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        let (nonce, balance) = {
            let caller = context.journal_mut().load_account_mut(inputs.caller()).ok()?;
            (caller.nonce(), *caller.balance())
        };
        let target = inputs.created_address(nonce);
        if balance < inputs.value() || nonce == u64::MAX || !context.db_mut().holds_storage_alone(&target) {
            return None;
        }
        // Any address collision increments the caller's nonce, makes the new address warm and consumes the gas.
        context.journal_mut().load_account_mut(inputs.caller()).ok()?.bump_nonce();
        context.journal_mut().load_account(target).ok()?;
        let result = InterpreterResult {
            result: InstructionResult::CreateCollision,
            gas: Gas::new(inputs.gas_limit()),
            output: Bytes::new(),
        };
        Some(CreateOutcome { result, address: None, charged_create_state_gas: inputs.charged_create_state_gas() })
    }
}
