//! Calls that end at a deadline, watched without an inspector.
//!
//! Whatever runs long passes a JUMPDEST, makes calls, or repeats one of the few instructions that are dear. There the gas
//! is compared with what was left when somebody last looked at the clock, which costs a nanosecond where an inspector
//! would cost as much as the instructions themselves. Time is told by gas because everything else can be stretched: code
//! without a single jump, or hundreds of instructions between two of them.
//!
//! What cannot be ended once it runs (a large hash, a precompiled contract) is not begun where the time that is left may
//! not suffice for it.

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

/// Gas between two looks at the clock: some ten microseconds, a hundred where the database is asked for everything.
const INTERVAL: u64 = 8192;
/// Bytes from which on it matters how long hashing or analysing them takes.
const LARGE: usize = 16 << 10;
/// What that takes at most, for a byte.
const PER_BYTE: Duration = Duration::from_nanos(4);

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Gas that was left at the last look; 0: look at once.
    static SEEN: Cell<u64> = const { Cell::new(0) };
    static EXPIRED: Cell<bool> = const { Cell::new(false) };
}

/// For as long as it lives, what this thread runs must end in time. Afterwards it may take as long as it needs: a block
/// that is verified on this thread has to come to the same result whoever made a call here before.
#[must_use]
pub struct Watching(());

impl Drop for Watching {
    fn drop(&mut self) {
        DEADLINE.set(None);
        EXPIRED.set(false);
    }
}

/// What this thread runs must end by then.
pub fn until(deadline: Instant) -> Watching {
    move_deadline(deadline);
    Watching(())
}

/// While somebody watches: it must end by then instead, and has not been late so far.
pub fn move_deadline(deadline: Instant) {
    DEADLINE.set(Some(deadline));
    SEEN.set(0);
    EXPIRED.set(false);
}

/// Whether a call had to be stopped since the deadline was set.
pub fn has_expired() -> bool {
    EXPIRED.get()
}

/// Whether something that cannot be ended may be begun; where it may not, the call has expired.
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

/// Gas is counted for each frame: a caller that goes on has more of it than what it called had, which is a reason to look,
/// too.
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
    // Once time is up every frame ends at its next tick; what the frames above make of it does not matter any more.
    if EXPIRED.get() {
        return Err(InstructionResult::OutOfGas);
    }
    SEEN.set(left);
    Ok(())
}

/// As `tick`, before something that takes the longer the more bytes it is given; the stack says how many, so deep.
fn tick_for_bytes(interpreter: &Interpreter<EthInterpreter>, depth: usize) -> InstructionExecResult {
    let size = interpreter.stack.peek(depth).map_or(0, |size| size.saturating_to::<usize>());
    if size > LARGE && !has_time_for(PER_BYTE.saturating_mul(u32::try_from(size).unwrap_or(u32::MAX))) {
        return Err(InstructionResult::OutOfGas);
    }
    tick(interpreter)
}

/// Put the clock before the instructions that every long run goes through. Their gas stays as it is; SSTORE, of which there
/// are several (machine.rs), is dear enough in gas to do without.
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
