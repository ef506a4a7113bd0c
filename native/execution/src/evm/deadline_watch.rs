//! Deadlines for calls, without an inspector.
//!
//! Every long run executes JUMPDEST, calls or expensive instructions many times, so these instructions check the
//! deadline. A check compares the remaining gas with the gas at the last clock check, and reads the clock only if
//! enough gas was used. The comparison takes a nanosecond. An inspector would double the execution time. A counter of
//! executed checks would not measure time, because hundreds of other instructions can run between two checks.
//!
//! Work that cannot be interrupted (a large hash, a precompiled contract) does not start if the remaining time may be
//! too short.

use std::cell::Cell;
use std::time::{Duration, Instant};

use ophion_primitives::deadline::is_over;
use revm::bytecode::opcode::{
    BALANCE, CALL, CALLCODE, CALLDATACOPY, CODECOPY, CREATE, CREATE2, DELEGATECALL, EXP, EXTCODECOPY, EXTCODEHASH,
    EXTCODESIZE, JUMPDEST, KECCAK256, LOG0, LOG1, LOG2, LOG3, LOG4, MCOPY, RETURNDATACOPY, SLOAD, STATICCALL,
};
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::{arithmetic, contract, host, memory, system};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionExecResult, InstructionResult, Interpreter};

use super::context::EvmContext;

/// Gas used between two clock checks: about 10 µs of execution, or 100 µs if every instruction reads the database.
const INTERVAL: u64 = 8192;
/// Input size in bytes above which hashing or code analysis takes a noticeable time.
const LARGE: usize = 16 << 10;
/// Maximum time to hash or analyse one byte.
const PER_BYTE: Duration = Duration::from_nanos(4);

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Gas that was left when the clock was last checked; 0 forces a check at the next instruction that checks.
    static SEEN: Cell<u64> = const { Cell::new(0) };
    static EXPIRED: Cell<bool> = const { Cell::new(false) };
}

/// Guard of this thread's deadline, which applies while the guard lives. Without a guard there is no deadline, so that
/// block verification does not depend on earlier calls of the thread.
#[must_use]
pub struct Watching(());

impl Drop for Watching {
    fn drop(&mut self) {
        DEADLINE.set(None);
        EXPIRED.set(false);
    }
}

/// Set the deadline of this thread.
pub fn until(deadline: Instant) -> Watching {
    move_deadline(deadline);
    Watching(())
}

/// Replace the deadline of this thread, and forget that an earlier deadline has expired.
pub fn move_deadline(deadline: Instant) {
    DEADLINE.set(Some(deadline));
    SEEN.set(0);
    EXPIRED.set(false);
}

/// Return whether a call of this thread was aborted since the deadline was set.
pub fn has_expired() -> bool {
    EXPIRED.get()
}

/// Return whether work that takes `cost` would end before the deadline of this thread. If not, the call is aborted.
pub fn has_time_for(cost: Duration) -> bool {
    let Some(deadline) = DEADLINE.get() else { return true };
    if !EXPIRED.get() && Instant::now() + cost >= deadline {
        expire();
    }
    !EXPIRED.get()
}

fn expire() {
    EXPIRED.set(true);
    SEEN.set(0);
}

/// Check the clock if enough gas was used. Gas is counted per frame. When a caller resumes, it has more gas than its
/// callee had, which also triggers a check.
#[inline]
fn tick(interpreter: &Interpreter<EthInterpreter>) -> InstructionExecResult {
    let left = interpreter.gas.remaining();
    if SEEN.get().wrapping_sub(left) < INTERVAL { Ok(()) } else { look(left) }
}

#[inline(never)]
fn look(left: u64) -> InstructionExecResult {
    if !EXPIRED.get() && DEADLINE.get().is_some_and(is_over) {
        expire();
    }
    // Once the deadline has passed, every open frame ends with an error, and the caller discards the results.
    if EXPIRED.get() {
        return Err(InstructionResult::OutOfGas);
    }
    SEEN.set(left);
    Ok(())
}

/// Check the clock before an instruction whose duration depends on a byte count. `depth` is the stack position of the
/// count, from the top.
fn tick_for_bytes(interpreter: &Interpreter<EthInterpreter>, depth: usize) -> InstructionExecResult {
    let size = interpreter.stack.peek(depth).map_or(0, |size| size.saturating_to::<usize>());
    if size > LARGE && !has_time_for(PER_BYTE.saturating_mul(u32::try_from(size).unwrap_or(u32::MAX))) {
        return Err(InstructionResult::OutOfGas);
    }
    tick(interpreter)
}

/// Add the clock check to the instructions that every long run executes. Their gas stays the same. SSTORE has several
/// variants (evm_builder.rs) and gets no check, because it costs much gas.
pub fn install(instructions: &mut EthInstructions<EthInterpreter, EvmContext>) {
    let table = instructions.instruction_table_mut();
    macro_rules! watched {
        ($($opcode:ident => $instruction:expr,)*) => {
            $(table[$opcode as usize] = Instruction::new(|context| {
                tick(context.interpreter)?;
                $instruction(context)
            });)*
        };
    }
    macro_rules! watched_for_bytes {
        ($($opcode:ident [$depth:literal] => $instruction:expr,)*) => {
            $(table[$opcode as usize] = Instruction::new(|context| {
                tick_for_bytes(context.interpreter, $depth)?;
                $instruction(context)
            });)*
        };
    }
    table[JUMPDEST as usize] = Instruction::new(|context| tick(context.interpreter));
    watched! {
        CALL => contract::call::<CALL, _, _>,
        CALLCODE => contract::call::<CALLCODE, _, _>,
        DELEGATECALL => contract::call::<DELEGATECALL, _, _>,
        STATICCALL => contract::call::<STATICCALL, _, _>,
        BALANCE => host::balance,
        EXTCODESIZE => host::extcodesize,
        EXTCODEHASH => host::extcodehash,
        EXTCODECOPY => host::extcodecopy,
        SLOAD => host::sload,
        LOG0 => host::log::<0, _>,
        LOG1 => host::log::<1, _>,
        LOG2 => host::log::<2, _>,
        LOG3 => host::log::<3, _>,
        LOG4 => host::log::<4, _>,
        EXP => arithmetic::exp,
        CALLDATACOPY => system::calldatacopy,
        CODECOPY => system::codecopy,
        RETURNDATACOPY => system::returndatacopy,
        MCOPY => memory::mcopy,
    }
    watched_for_bytes! {
        KECCAK256 [1] => system::keccak256,
        CREATE [2] => contract::create::<false, _, _>,
        CREATE2 [2] => contract::create::<true, _, _>,
    }
}
