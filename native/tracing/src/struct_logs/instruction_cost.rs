//! Gas cost of an instruction that failed before the EVM computed its cost.

use alloy_primitives::{Address, U256};
use ophion_execution::evm::context::EvmContext;
use revm::bytecode::opcode::{self as op, OpCode};
use revm::context::{Cfg, ContextTr, JournalTr};
use revm::context_interface::cfg::gas_params::{GasParams, num_words};
use revm::context_interface::context::SStoreResult;
use revm::database_interface::Database;
use revm::interpreter::Interpreter;
use revm::interpreter::instructions::{GasTable, gas_table_spec};
use revm::interpreter::interpreter_types::{InputsTr, MemoryTr, RuntimeFlag};
use revm::primitives::hardfork::SpecId;

/// Free gas for the callee of a call that transfers value.
pub const CALL_STIPEND: u64 = 2300;
/// Maximum gas that one access to an account or a slot can cost. With more gas left, such an access cannot run out of
/// gas, and fails only if it writes in a static call.
const MAX_ACCESS_GAS: u64 = 60_000;

pub struct Costs {
    table: GasTable,
    spec: SpecId,
}

impl Costs {
    pub fn of(spec: SpecId) -> Self {
        Costs { table: gas_table_spec(spec), spec }
    }

    /// Return the gas cost of the next instruction, without the gas passed to a callee.
    pub fn next(&self, opcode: u8, gas: u64, interpreter: &Interpreter, context: &mut EvmContext) -> u64 {
        let fixed = u64::from(self.table[opcode as usize]);
        let has_variable_part = matches!(
            opcode,
            op::EXP
                | op::KECCAK256
                | op::BALANCE
                | op::CALLDATACOPY
                | op::CODECOPY
                | op::EXTCODESIZE..=op::EXTCODEHASH
                | op::MLOAD..=op::SSTORE
                | op::MCOPY
                | op::LOG0..=op::LOG4
                | op::CREATE..=op::SELFDESTRUCT
        );
        if !has_variable_part {
            return fixed;
        }
        let stack = interpreter.stack.data();
        if stack.len() < OpCode::new(opcode).map_or(0, |known| usize::from(known.inputs())) {
            return 0;
        }
        let params = context.cfg().gas_params().clone();
        let top = |at: usize| stack.len().checked_sub(at + 1).map_or(U256::ZERO, |index| stack[index]);
        let size = |at: usize| usize::try_from(top(at)).unwrap_or(usize::MAX);
        let memory = |offset: usize, length: usize| expansion(&params, interpreter, size(offset), size(length));
        let word = |offset: usize, length: usize| expansion(&params, interpreter, size(offset), length);
        let may_fail = gas < MAX_ACCESS_GAS || interpreter.runtime_flag.is_static();
        let access = |context: &mut EvmContext, at: usize| match may_fail {
            true => self.account(&params, context, Address::from_word(top(at).into())),
            false => 0,
        };
        let variable = match opcode {
            op::EXP => params.exp_cost(top(1)),
            op::KECCAK256 => memory(0, 1).saturating_add(params.keccak256_cost(size(1))),
            op::CALLDATACOPY | op::CODECOPY | op::RETURNDATACOPY => {
                memory(0, 2).saturating_add(params.copy_cost(size(2)))
            }
            op::MCOPY => memory(0, 2).max(memory(1, 2)).saturating_add(params.mcopy_cost(size(2))),
            op::EXTCODECOPY => {
                access(context, 0).saturating_add(memory(1, 3)).saturating_add(params.extcodecopy(size(3)))
            }
            op::BALANCE | op::EXTCODESIZE | op::EXTCODEHASH => access(context, 0),
            op::MLOAD | op::MSTORE => word(0, 32),
            op::MSTORE8 => word(0, 1),
            op::SLOAD | op::SSTORE if may_fail => {
                self.slot(&params, context, interpreter.input.target_address(), opcode, top(0), top(1))
            }
            op::LOG0..=op::LOG4 => {
                memory(0, 1).saturating_add(params.log_cost(opcode - op::LOG0, top(1).saturating_to()))
            }
            op::CREATE => {
                memory(1, 2).saturating_add(params.create_cost()).saturating_add(self.init_code(&params, size(2)))
            }
            op::CREATE2 => {
                let fee = params.create2_cost(size(2)).saturating_add(self.init_code(&params, size(2)));
                memory(1, 2).saturating_add(fee)
            }
            op::CALL | op::CALLCODE => {
                let has_value = !top(2).is_zero();
                let transfer = if has_value { params.transfer_value_cost() } else { 0 };
                let creation = match opcode == op::CALL && may_fail {
                    true => self.creation(&params, context, Address::from_word(top(1).into()), has_value),
                    false => 0,
                };
                memory(3, 4).max(memory(5, 6)).saturating_add(transfer + creation + access(context, 1))
            }
            op::DELEGATECALL | op::STATICCALL => memory(2, 3).max(memory(4, 5)).saturating_add(access(context, 1)),
            op::RETURN | op::REVERT => memory(0, 1),
            // SELFDESTRUCT has no extra cost if the beneficiary account is warm
            op::SELFDESTRUCT => match access(context, 0) {
                0 => 0,
                _ => params.selfdestruct_cold_cost(),
            },
            _ => 0,
        };
        fixed.saturating_add(variable)
    }

    /// Return the gas that CALL or CALLCODE would pass to its callee; 0 for other instructions.
    pub fn handed_on(&self, opcode: u8, gas: u64, cost: u64, interpreter: &Interpreter) -> u64 {
        let stack = interpreter.stack.data();
        match (opcode, stack.last()) {
            (op::CALL | op::CALLCODE, Some(asked)) if gas > cost => {
                let rest = gas - cost;
                let max = if self.spec.is_enabled_in(SpecId::TANGERINE) { rest - rest / 64 } else { rest };
                max.min(asked.saturating_to())
            }
            _ => 0,
        }
    }

    fn init_code(&self, params: &GasParams, length: usize) -> u64 {
        if self.spec.is_enabled_in(SpecId::SHANGHAI) { params.initcode_cost(length) } else { 0 }
    }

    fn account(&self, params: &GasParams, context: &EvmContext, address: Address) -> u64 {
        let is_cold = self.spec.is_enabled_in(SpecId::BERLIN)
            && !context.journal().evm_state().contains_key(&address)
            && !context.journal().precompile_addresses().contains(&address);
        if is_cold { params.cold_account_additional_cost() } else { 0 }
    }

    fn creation(&self, params: &GasParams, context: &mut EvmContext, address: Address, has_value: bool) -> u64 {
        let is_empty = match context.journal().evm_state().get(&address) {
            Some(account) => account.is_empty(),
            None => context.db_mut().basic(address).is_ok_and(|info| info.is_none()),
        };
        if is_empty { params.new_account_cost(self.spec.is_enabled_in(SpecId::SPURIOUS_DRAGON), has_value) } else { 0 }
    }

    fn slot(
        &self,
        params: &GasParams,
        context: &mut EvmContext,
        account: Address,
        opcode: u8,
        slot: U256,
        value: U256,
    ) -> u64 {
        let known = context.journal().evm_state().get(&account).and_then(|account| account.storage.get(&slot));
        let known = known.map(|known| (known.original_value, known.present_value));
        let is_cold = self.spec.is_enabled_in(SpecId::BERLIN) && known.is_none();
        if opcode == op::SLOAD {
            return if is_cold { params.cold_storage_additional_cost() } else { 0 };
        }
        let (original_value, present_value) = known.unwrap_or_else(|| {
            let value = context.db_mut().storage(account, slot).unwrap_or_default();
            (value, value)
        });
        let original_value = context.db().original_value_of(&account, &slot).unwrap_or(original_value);
        let change = SStoreResult { original_value, present_value, new_value: value };
        let is_net_metered = self.spec.is_enabled_in(SpecId::ISTANBUL);
        params.sstore_static_gas() + params.sstore_dynamic_gas(is_net_metered, &change, is_cold)
    }
}

/// Return the gas for expanding memory to the end of an access.
fn expansion(params: &GasParams, interpreter: &Interpreter, offset: usize, length: usize) -> u64 {
    let now = interpreter.memory.size() / 32;
    let end = if length == 0 { 0 } else { num_words(offset.saturating_add(length)) };
    if end <= now { 0 } else { params.memory_cost(end) - params.memory_cost(now) }
}
