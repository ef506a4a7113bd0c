//! Records the gas left before RETURN, without an inspector. Flat traces show this gas.
//!
//! The result of a frame only has the gas left after RETURN. RETURN may cost gas, because it can expand the memory.

use std::cell::Cell;

use revm::bytecode::opcode::RETURN;
use revm::interpreter::instructions::control;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionContext, InstructionExecResult};

use super::context::EvmContext;
use super::evm_builder::Evm;

thread_local! {
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Replace RETURN by an instruction that also records the gas left before it.
pub fn install<I>(evm: &mut Evm<I>) {
    evm.instruction.insert_instruction(RETURN, Instruction::new(noting_return), 0);
    LEFT.set(None);
}

/// Return the gas left before the last RETURN of this thread; None if no frame ended with RETURN since the previous
/// `take`.
pub fn take() -> Option<u64> {
    LEFT.take()
}

fn noting_return(context: InstructionContext<'_, EvmContext, EthInterpreter>) -> InstructionExecResult {
    LEFT.set(Some(context.interpreter.gas.remaining()));
    control::ret(context)
}
