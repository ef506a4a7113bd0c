//! Calls that end at a deadline, watched without an inspector.
//!
//! Whatever runs long passes a JUMPDEST or makes a call again and again, so the clock is looked at there: once in some
//! hundred times, which costs a nanosecond where an inspector would cost as much as the instructions themselves.

use std::cell::Cell;
use std::time::Instant;

use ophion_primitives::deadline::is_over;
use revm::bytecode::opcode::{CALL, CALLCODE, CREATE, CREATE2, DELEGATECALL, JUMPDEST, STATICCALL};
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::contract;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
};

use super::context::EvmContext;

/// Ticks between two looks at the clock.
const INTERVAL: u32 = 256;

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    static TICKS: Cell<u32> = const { Cell::new(0) };
    static EXPIRED: Cell<bool> = const { Cell::new(false) };
}

/// The calls of this thread must end by then.
pub fn set_deadline(deadline: Instant) {
    DEADLINE.set(Some(deadline));
    TICKS.set(0);
    EXPIRED.set(false);
}

/// What this thread runs from now on may take as long as it needs.
pub fn stop() {
    DEADLINE.set(None);
    EXPIRED.set(false);
}

/// Whether a call had to be stopped since the deadline was set.
pub fn has_expired() -> bool {
    EXPIRED.get()
}

fn tick() -> InstructionExecResult {
    let ticks = TICKS.get().wrapping_add(1);
    TICKS.set(ticks);
    if ticks.is_multiple_of(INTERVAL) && DEADLINE.get().is_some_and(is_over) {
        EXPIRED.set(true);
    }
    // Once time is up every frame ends at its next tick; what the frames above make of it does not matter any more.
    if EXPIRED.get() { Err(InstructionResult::OutOfGas) } else { Ok(()) }
}

/// Put the clock behind the instructions that every long run goes through. Their gas stays as it is.
pub fn install(instructions: &mut EthInstructions<EthInterpreter, EvmContext>) {
    let table = instructions.instruction_table_mut();
    table[JUMPDEST as usize] = Instruction::new(|_| tick());
    table[CALL as usize] = Instruction::new(call::<CALL, _, _>);
    table[CALLCODE as usize] = Instruction::new(call::<CALLCODE, _, _>);
    table[DELEGATECALL as usize] = Instruction::new(call::<DELEGATECALL, _, _>);
    table[STATICCALL as usize] = Instruction::new(call::<STATICCALL, _, _>);
    table[CREATE as usize] = Instruction::new(create::<false, _, _>);
    table[CREATE2 as usize] = Instruction::new(create::<true, _, _>);
}

fn call<const KIND: u8, W: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, W>,
) -> InstructionExecResult {
    tick()?;
    contract::call::<KIND, W, H>(context)
}

fn create<const IS_CREATE2: bool, W: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, W>,
) -> InstructionExecResult {
    tick()?;
    contract::create::<IS_CREATE2, W, H>(context)
}
