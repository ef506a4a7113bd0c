//! Code that the struct logs of Besu and of geth share.

use alloy_primitives::Bytes;
use ophion_primitives::json::{decimal, raw};
use revm::bytecode::opcode::REVERT;
use revm::context_interface::result::ExecutionResult;
use revm::interpreter::interpreter_types::LoopControl;
use revm::interpreter::{FrameInput, InstructionResult, Interpreter, InterpreterAction};

use super::instruction_cost::CALL_STIPEND;
use crate::output::text::halt_name;
use crate::replay::block::Ran;

/// How the instruction of a struct log row ended.
#[derive(Default)]
pub struct StepEnd {
    pub cost: u64,
    /// Revert data, if the instruction was REVERT.
    pub reason: Option<Bytes>,
    /// Error name of a failed instruction.
    pub error: Option<&'static str>,
}

/// Whether the cost of a call includes the gas passed to its callee.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CalleeGas {
    IsApart,
    Counts,
}

impl StepEnd {
    #[inline]
    pub fn of(interpreter: &mut Interpreter, opcode: u8, before: u64, whole_cost: u64, callee_gas: CalleeGas) -> Self {
        let mut ended = StepEnd { cost: before.saturating_sub(interpreter.gas.remaining()), reason: None, error: None };
        match interpreter.bytecode.action() {
            Some(InterpreterAction::NewFrame(FrameInput::Call(inputs))) if callee_gas == CalleeGas::IsApart => {
                let stipend = if inputs.transfers_value() { CALL_STIPEND } else { 0 };
                ended.cost = ended.cost.saturating_sub(inputs.gas_limit.saturating_sub(stipend));
            }
            Some(InterpreterAction::NewFrame(FrameInput::Create(inputs))) => {
                ended.cost = ended.cost.saturating_sub(inputs.gas_limit());
            }
            Some(InterpreterAction::Return(result)) if result.result == InstructionResult::Revert => {
                ended.reason = (opcode == REVERT).then(|| result.output.clone());
            }
            Some(InterpreterAction::Return(result)) if !result.result.is_ok() => {
                let name = halt_name(result.result);
                ended.error = Some(name);
                ended.cost = match name {
                    // Besu defines no cost for these two errors
                    "INVALID_OPERATION" | "INSUFFICIENT_STACK_ITEMS" => 0,
                    _ => whole_cost,
                };
            }
            _ => {}
        }
        ended
    }

    /// Write the end of a struct log row.
    #[inline]
    pub fn close(&self, out: &mut Vec<u8>) {
        if let Some(name) = self.error {
            raw(out, ",\"error\":[\"");
            raw(out, name);
            raw(out, "\"]");
        }
        out.push(b'}');
    }
}

/// Write the gas and the status of the transaction after the rows. Returns the output, which is empty if the
/// transaction failed.
pub fn verdict<'a>(out: &mut Vec<u8>, ran: &'a Ran) -> &'a [u8] {
    decimal(out, "],\"gas\":", ran.result.tx_gas_used());
    raw(out, if ran.result.is_success() { ",\"failed\":false" } else { ",\"failed\":true" });
    match &ran.result {
        ExecutionResult::Success { output, .. } => output.data(),
        _ => &[],
    }
}
