//! Fast path of flat traces: entries from the start and the end of frames, without a hook per instruction.
//!
//! The slow path is `besu_flat_traces`, which knows the instructions. The fast path gives up on a transaction whose
//! entries depend on single instructions. Such a transaction has a halt, a creation by a contract, a self-destruct, a
//! transfer to a precompiled contract, or a reverted call with another value than its caller.
//! `tests/unit/chain/test_traced_block.py` compares both.

use std::marker::PhantomData;

use alloy_primitives::{Address, U256};
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::evm_builder::{Evm, db};
use ophion_execution::evm::return_gas;
use ophion_primitives::errors::Error;
use revm::context::TxEnv;
use revm::context_interface::result::{EVMError, ExecutionResult, HaltReason};
use revm::handler::{EvmTr, FrameResult, Handler, ItemOrResult};
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::{CallInputs, CallScheme, FrameInput, InstructionResult};

use super::entries::{Action, Entry, Outcome};
use crate::calls::call_frames::Kind;
use crate::replay::recording::MAX_RECORD_BYTES;

/// Gas left and refund at the end of the outermost frame.
#[derive(Default)]
struct RootEnd {
    gas: u64,
    refund: i64,
    has_returned: bool,
}

struct Live {
    entry: usize,
    value: U256,
}

/// A frame that is about to start.
struct Start {
    action: Action,
    gas: u64,
    value: U256,
}

/// The entries of one transaction.
#[derive(Default)]
pub struct FrameEntries {
    entries: Vec<Entry>,
    live: Vec<Live>,
    /// By call depth: whether the first RETURN or REVERT is a REVERT; None if there was neither.
    first_end_reverts: Vec<Option<bool>>,
    root_end: RootEnd,
    held_bytes: usize,
}

/// The transaction needs the slow path.
struct NeedsInstructions;

type Noted<T = ()> = Result<T, NeedsInstructions>;

impl FrameEntries {
    /// Complete the entries of a finished transaction.
    pub fn finish(mut self, tx: &TxEnv, result: &ExecutionResult) -> Vec<Entry> {
        let gas_left = tx.gas_limit.saturating_sub(result.tx_gas_used());
        if let (Some(root), true) = (self.entries.first_mut(), self.root_end.has_returned) {
            let RootEnd { gas, refund, .. } = self.root_end;
            let used =
                if gas_left > gas { root.gas as i64 - gas as i64 } else { root.gas as i64 - gas_left as i64 + refund };
            root.outcome.as_mut().expect("a frame has an outcome").gas_used = used;
        }
        for entry in &mut self.entries {
            // like Besu 21.10, treat all calls of a depth as reverted if the first RETURN or REVERT of this depth is a
            // REVERT
            let is_reverted = self.first_end_reverts.get(entry.address.len()).copied().flatten() == Some(true);
            if is_reverted && matches!(entry.action, Action::Call { .. }) {
                entry.error = Some("Reverted".into());
            }
        }
        self.entries
    }

    fn start_of(&mut self, evm: &mut EvmContext, input: &FrameInput) -> Noted<Start> {
        let is_root = self.live.is_empty();
        match input {
            FrameInput::Call(inputs) => {
                let data = if is_root { evm.tx.data.clone() } else { inputs.input.bytes(evm) };
                self.held_bytes += data.len();
                if self.held_bytes > MAX_RECORD_BYTES {
                    return Err(NeedsInstructions);
                }
                let from = if is_root { evm.tx.caller } else { self.calling_address() };
                let action = Action::Call { kind: kind_of(inputs), from, to: inputs.bytecode_address, input: data };
                Ok(Start { action, gas: inputs.gas_limit, value: inputs.call_value() })
            }
            FrameInput::Create(inputs) if is_root => {
                let (from, init) = (evm.tx.caller, evm.tx.data.clone());
                let address = from.create(evm.tx.nonce);
                let action = Action::Create { from, init, address, is_create2: false };
                Ok(Start { action, gas: inputs.gas_limit(), value: inputs.value() })
            }
            _ => Err(NeedsInstructions),
        }
    }

    /// Return the address whose code runs in the current frame.
    fn calling_address(&self) -> Address {
        match &self.entries[self.live.last().expect("a frame runs").entry].action {
            Action::Call { kind: Kind::DelegateCall | Kind::CallCode, from, .. } => *from,
            Action::Call { to, .. } => *to,
            Action::Create { address, .. } => *address,
            Action::End { .. } => Address::ZERO,
        }
    }

    fn begin(&mut self, start: Start) {
        let address = match self.live.last() {
            None => Vec::new(),
            Some(caller) => {
                let caller = &self.entries[caller.entry];
                let mut address = Vec::with_capacity(caller.address.len() + 1);
                address.extend_from_slice(&caller.address);
                address.push(caller.subtraces);
                address
            }
        };
        let mut entry = Entry::new(start.action, start.gas, start.value, address);
        entry.outcome = Some(Outcome::default());
        self.live.push(Live { entry: self.entries.len(), value: start.value });
        self.entries.push(entry);
    }

    /// Handle a call that gets no frame: a refused call, or a call of a precompiled contract or of an account without
    /// code.
    fn pass(&mut self, start: Start, result: &FrameResult) -> Noted {
        use InstructionResult as R;
        let FrameResult::Call(outcome) = result else { return Err(NeedsInstructions) };
        let is_root = self.live.is_empty();
        match outcome.result.result {
            _ if outcome.was_precompile_called => {
                if is_root || !start.value.is_zero() {
                    return Err(NeedsInstructions);
                }
            }
            R::Stop => {
                self.begin(start);
                self.end(result)?;
            }
            R::CallTooDeep | R::OutOfFunds if !is_root => {}
            _ => return Err(NeedsInstructions),
        }
        Ok(())
    }

    fn end(&mut self, result: &FrameResult) -> Noted {
        let returned = return_gas::take();
        let result = result.interpreter_result();
        let depth = self.live.len() - 1;
        let Live { entry, value } = self.live.pop().expect("a frame runs");
        let is_revert = match result.result {
            InstructionResult::Return | InstructionResult::Stop => false,
            InstructionResult::Revert => true,
            _ => return Err(NeedsInstructions),
        };
        self.held_bytes += result.output.len();
        if is_revert || returned.is_some() {
            if self.first_end_reverts.len() <= depth {
                self.first_end_reverts.resize(depth + 1, None);
            }
            self.first_end_reverts[depth].get_or_insert(is_revert);
        }
        if let Some(caller) = self.live.last() {
            if is_revert && caller.value != value {
                return Err(NeedsInstructions);
            }
            self.entries[caller.entry].subtraces += 1;
        }
        let entry = &mut self.entries[entry];
        if is_revert {
            entry.error = Some("Reverted".into());
            return Ok(());
        }
        let gas = returned.unwrap_or(result.gas.remaining());
        if depth == 0 {
            self.root_end = RootEnd { gas, refund: result.gas.refunded(), has_returned: true };
        }
        let outcome = entry.outcome.as_mut().expect("a frame has an outcome");
        outcome.gas_used = entry.gas as i64 - gas as i64;
        match entry.action {
            Action::Create { .. } => outcome.set_code(result.output.clone()),
            _ => outcome.output = Some(result.output.clone()),
        }
        Ok(())
    }
}

fn kind_of(inputs: &CallInputs) -> Kind {
    match inputs.scheme {
        CallScheme::Call => Kind::Call,
        CallScheme::CallCode => Kind::CallCode,
        CallScheme::DelegateCall => Kind::DelegateCall,
        CallScheme::StaticCall => Kind::StaticCall,
    }
}

/// Runs a transaction like revm's mainnet handler, and records its frames.
pub struct FrameHandler<'a, I> {
    frames: &'a mut FrameEntries,
    inspector: PhantomData<I>,
}

impl<'a, I> FrameHandler<'a, I> {
    /// Return a handler for an EVM on which `return_gas::install` was called.
    pub fn new(frames: &'a mut FrameEntries) -> Self {
        return_gas::take();
        FrameHandler { frames, inspector: PhantomData }
    }

    /// Start a frame. Returns the result of a call that needs no frame, else None.
    fn start(&mut self, evm: &mut Evm<I>, init: FrameInit) -> Result<Option<FrameResult>, EVMError<Error>> {
        let start = self.frames.start_of(&mut evm.ctx, &init.frame_input).map_err(unsuitable)?;
        match evm.frame_init(init)? {
            ItemOrResult::Item(_) => {
                self.frames.begin(start);
                Ok(None)
            }
            ItemOrResult::Result(result) => {
                self.frames.pass(start, &result).map_err(unsuitable)?;
                Ok(Some(result))
            }
        }
    }
}

/// Return whether the init code of a creation has ended with SELFDESTRUCT. The result of such a creation looks like
/// that of a creation without code.
fn has_deleted_itself<I>(evm: &Evm<I>, result: &FrameResult) -> bool {
    let FrameResult::Create(outcome) = result else { return false };
    let state = &evm.ctx.journaled_state.inner.state;
    outcome.address.and_then(|address| state.get(&address)).is_some_and(|account| account.is_selfdestructed())
}

/// Return the error that rolls back the transaction, which then runs again on the slow path.
fn unsuitable(_: NeedsInstructions) -> EVMError<Error> {
    EVMError::Custom("the trace depends on instructions".into())
}

impl<I> Handler for FrameHandler<'_, I> {
    type Evm = Evm<I>;
    type Error = EVMError<Error>;
    type HaltReason = HaltReason;

    fn run_exec_loop(&mut self, evm: &mut Self::Evm, first: FrameInit) -> Result<FrameResult, Self::Error> {
        let result = self.run_frames(evm, first)?;
        // a creation may collide with an account that has only storage (create_collision.rs)
        if db(evm).has_storage_only_account() { Err(unsuitable(NeedsInstructions)) } else { Ok(result) }
    }
}

impl<I> FrameHandler<'_, I> {
    fn run_frames(&mut self, evm: &mut Evm<I>, first: FrameInit) -> Result<FrameResult, EVMError<Error>> {
        if let Some(result) = self.start(evm, first)? {
            return Ok(result);
        }
        loop {
            let result = match evm.frame_run()? {
                ItemOrResult::Item(init) => match self.start(evm, init)? {
                    None => continue,
                    Some(result) => result,
                },
                ItemOrResult::Result(result) => {
                    if has_deleted_itself(evm, &result) {
                        return Err(unsuitable(NeedsInstructions));
                    }
                    self.frames.end(&result).map_err(unsuitable)?;
                    result
                }
            };
            if let Some(result) = evm.frame_return_result(result)? {
                return Ok(result);
            }
        }
    }
}
