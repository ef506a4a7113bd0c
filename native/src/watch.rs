//! What ends long work early: its deadline, or that nobody waits for it any more.
//!
//! Searches ask between two steps (`is_over`). Calls are watched without an inspector:
//!
//! Whatever runs long passes a JUMPDEST or makes a call again and again, so the clock is looked at there: once in some
//! hundred times, which costs a nanosecond where an inspector would cost as much as the instructions themselves.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pyo3::prelude::*;

use revm::bytecode::opcode::{CALL, CALLCODE, CREATE, CREATE2, DELEGATECALL, JUMPDEST, STATICCALL};
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::contract;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
};

/// Ticks between two looks at the clock.
const INTERVAL: u32 = 256;

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    static TICKS: Cell<u32> = const { Cell::new(0) };
    static EXPIRED: Cell<bool> = const { Cell::new(false) };
    /// Set by whoever gave this thread its work.
    static GIVEN_UP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Whether work with this deadline shall stop.
pub fn is_over(deadline: Instant) -> bool {
    is_given_up() || Instant::now() >= deadline
}

fn is_given_up() -> bool {
    GIVEN_UP.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)))
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
pub fn install<H: Host>(instructions: &mut EthInstructions<EthInterpreter, H>) {
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

/// Lets another thread end what this one computes.
#[pyclass(frozen, module = "ophion._native")]
pub struct Cancellation {
    flag: Arc<AtomicBool>,
}

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Cancellation { flag: Arc::default() }
    }

    fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// From here on calls, searches and simulations of this thread end soon after `cancel`.
    fn __enter__(&self) {
        GIVEN_UP.set(Some(self.flag.clone()));
    }

    #[pyo3(signature = (kind, error, trace, /))]
    fn __exit__(&self, kind: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>, trace: &Bound<'_, PyAny>) {
        let _ = (kind, error, trace);
        GIVEN_UP.set(None);
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Cancellation>()
}
