//! Call events: the instructions from which flat traces are derived, in order.
//!
//! Besu 21.10 derives flat traces from a list of all instructions
//! (docs/decisions/0030-besu-compatible-trace-output.md). A call event is an instruction that influences flat traces: a
//! call, a creation, the end of a frame or a halt. A frame without code is treated as a frame that stops at once.

use alloy_primitives::{Address, Bytes, U256};
use ophion_execution::evm::context::{EvmContext, created_address};
use revm::bytecode::opcode as op;
use revm::context::{ContextTr, JournalTr};
use revm::inspector::Inspector;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, LoopControl};
use revm::interpreter::{
    CallInputs, CallOutcome, CreateInputs, CreateOutcome, CreateScheme, FrameInput, InstructionResult, Interpreter,
    InterpreterAction, InterpreterResult,
};

use super::precompile_gas::price;
use crate::calls::call_frames::Kind;
use crate::output::text::is_lack_of_gas;
use crate::replay::recording::Recorder;
use crate::struct_logs::instruction_cost::CALL_STIPEND;

/// The frame of a callee at its first instruction.
pub struct Child {
    pub gas: u64,
    pub input: Bytes,
    pub recipient: Address,
    pub value: U256,
}

/// A call of a precompiled contract: gas, price, input, value, result and output.
pub struct Precompiled {
    pub gas: u64,
    pub price: u64,
    pub input: Bytes,
    pub value: U256,
    pub result: InstructionResult,
    pub output: Bytes,
}

pub enum CallEvent {
    Call {
        kind: Kind,
        to: Address,
        child: Option<Child>,
        precompiled: Option<Precompiled>,
    },
    /// CREATE or CREATE2. `child` is None if the creation was rejected before it started.
    Create {
        child: Option<Child>,
        init: Bytes,
    },
    /// CALLDATALOAD. At this instruction, the value (in wei) of the open trace entry becomes that of the running frame,
    /// as in Besu 21.10.
    Load,
    /// RETURN or STOP. `refund` is the transaction's refund so far.
    Return {
        is_stop: bool,
        output: Bytes,
        code: Bytes,
        refund: i64,
    },
    Revert,
    SelfDestruct {
        heir: Address,
        balance: U256,
    },
    /// Any other instruction, recorded because it halted.
    Other,
}

pub struct Step {
    pub event: CallEvent,
    pub depth: usize,
    pub gas: u64,
    /// Gas cost of the instruction, without the gas passed to a callee.
    pub cost: u64,
    /// Gas cost of all instructions so far, including this instruction.
    pub spent: u64,
    pub recipient: Address,
    /// Value in wei of the call or creation that opened the frame of this instruction.
    pub value: U256,
    pub halt: Option<InstructionResult>,
}

struct Live {
    number: usize,
    recipient: Address,
    value: U256,
    gas: u64,
    input: Bytes,
    code: Bytes,
    /// Index of the call event that called this frame.
    caller: Option<usize>,
    has_begun: bool,
    has_ended_well: bool,
}

/// The last instruction that is not RETURN. If the EVM rejects the code of a new contract, the trace shows the halt at
/// this instruction.
#[derive(Clone, Copy, Default)]
struct Plain {
    /// Number of call events up to and including this instruction.
    steps: usize,
    /// Whether this instruction is itself the last call event.
    is_event: bool,
    depth: usize,
    /// Index of the frame that runs the instruction.
    frame: usize,
}

#[derive(Default)]
pub struct CallEvents {
    pub steps: Vec<Step>,
    /// By call depth: whether the first RETURN or REVERT is a REVERT; None if there was neither.
    pub first_end_reverts: Vec<Option<bool>>,
    pub has_create2: bool,
    /// Gas limit and recipient of the outermost frame.
    pub root: (u64, Address),
    pub root_precompiled: Option<Precompiled>,
    live: Vec<Live>,
    held_bytes: usize,
    count: u64,
    spent: u64,
    plain: Plain,
    /// Recipient and value of every frame of the transaction.
    seen: Vec<(Address, U256)>,
    // opcode of the current instruction
    opcode: u8,
    gas: u64,
    target: Address,
    balance: U256,
}

impl CallEvents {
    fn push(&mut self, event: CallEvent, gas: u64, cost: u64, halt: Option<InstructionResult>) {
        let depth = self.live.len().saturating_sub(1);
        let (recipient, value) = self.live.last().map_or_else(Default::default, |frame| (frame.recipient, frame.value));
        self.steps.push(Step { event, depth, gas, cost, spent: self.spent, recipient, value, halt });
    }

    /// Count an instruction, and store it as the last instruction unless it is RETURN.
    fn count(&mut self, is_return: bool, is_event: bool) {
        self.count += 1;
        if !is_return {
            let frame = self.live.last().map_or(0, |frame| frame.number);
            self.plain = Plain { steps: self.steps.len(), is_event, depth: self.live.len() - 1, frame };
        }
    }

    fn note_end(&mut self, is_revert: bool) {
        let depth = self.live.len() - 1;
        if self.count == 0 {
            return;
        }
        if self.first_end_reverts.len() <= depth {
            self.first_end_reverts.resize(depth + 1, None);
        }
        self.first_end_reverts[depth].get_or_insert(is_revert);
    }

    fn enter(&mut self, recipient: Address, value: U256, gas: u64, input: Bytes, code: Bytes) {
        let caller = self.live.last().map(|_| self.steps.len() - 1);
        if caller.is_none() {
            self.root = (gas, recipient);
        }
        self.held_bytes += input.len() + code.len();
        let number = self.seen.len();
        self.seen.push((recipient, value));
        self.live.push(Live {
            number,
            recipient,
            value,
            gas,
            input,
            code,
            caller,
            has_begun: false,
            has_ended_well: false,
        });
    }

    fn leave(&mut self, result: &InterpreterResult, precompile_price: Option<u64>, is_creation: bool) {
        use InstructionResult as R;
        self.held_bytes += result.output.len();
        let Some(frame) = self.live.last_mut() else { return };
        let child = Child {
            gas: frame.gas,
            input: std::mem::take(&mut frame.input),
            recipient: frame.recipient,
            value: frame.value,
        };
        let (caller, has_begun, has_ended_well) = (frame.caller, frame.has_begun, frame.has_ended_well);
        let was_refused =
            matches!(result.result, R::CallTooDeep | R::OutOfFunds | R::OverflowPayment | R::NonceOverflow);
        if let Some(price) = precompile_price {
            let precompiled = Precompiled {
                gas: child.gas,
                price,
                input: child.input,
                value: child.value,
                result: result.result,
                output: result.output.clone(),
            };
            self.spent += price;
            match caller.map(|at| &mut self.steps[at].event) {
                Some(CallEvent::Call { precompiled: place, .. }) => *place = Some(precompiled),
                _ => self.root_precompiled = Some(precompiled),
            }
        } else if result.result == R::CreateCollision {
            match caller {
                Some(at) => self.steps[at].halt = Some(result.result),
                None => {
                    self.push(CallEvent::Other, child.gas, 0, Some(result.result));
                    self.count(false, true);
                }
            }
        } else if !was_refused {
            let gas = child.gas;
            if let Some(CallEvent::Call { child: place, .. } | CallEvent::Create { child: place, .. }) =
                caller.map(|at| &mut self.steps[at].event)
            {
                *place = Some(child);
            }
            if !has_begun {
                let code = Bytes::new();
                self.push(CallEvent::Return { is_stop: true, output: Bytes::new(), code, refund: 0 }, gas, 0, None);
                self.count(false, true);
            } else if is_creation && has_ended_well && !result.result.is_ok() {
                self.refuse_code(result.result);
            }
        }
        self.live.pop();
    }

    /// Handle the rejected code of a creation: assign the halt to the last instruction before RETURN.
    fn refuse_code(&mut self, reason: InstructionResult) {
        let Plain { steps, is_event, depth, frame } = self.plain;
        if is_event {
            self.steps[steps - 1].halt = Some(reason);
        } else {
            let (recipient, value) = self.seen[frame];
            let halted = Step {
                event: CallEvent::Other,
                depth,
                gas: 0,
                cost: 0,
                spent: 0,
                recipient,
                value,
                halt: Some(reason),
            };
            self.steps.insert(steps, halted);
        }
    }
}

/// Return the gas price of a call to a precompiled contract; None for other calls.
pub fn precompile_price(context: &EvmContext, inputs: &CallInputs, outcome: &CallOutcome) -> Option<u64> {
    let used = inputs.gas_limit.saturating_sub(outcome.result.gas.remaining());
    match (outcome.was_precompile_called, outcome.result.result.is_ok()) {
        (false, _) => None,
        (true, true) => Some(used),
        (true, false) => {
            let input = inputs.input.bytes(context);
            Some(price(&inputs.bytecode_address, &input, context.cfg.spec).unwrap_or(used))
        }
    }
}

impl Recorder for CallEvents {
    fn clear(&mut self) {
        *self = CallEvents::default();
    }

    fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

impl Inspector<EvmContext> for CallEvents {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        if let Some(frame) = self.live.last_mut() {
            frame.code = interpreter.bytecode.original_bytes();
            frame.has_begun = true;
        }
    }

    #[inline]
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.opcode = interpreter.bytecode.opcode();
        self.gas = interpreter.gas.remaining();
        let item = |at: usize| {
            let stack = interpreter.stack.data();
            let found = stack.len().checked_sub(at).map(|index| stack[index]);
            Address::from_word(found.unwrap_or_default().into())
        };
        match self.opcode {
            op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL => self.target = item(2),
            op::SELFDESTRUCT => {
                self.target = item(1);
                let contract = interpreter.input.target_address();
                let account = context.journal().evm_state().get(&contract);
                self.balance = account.map_or(U256::ZERO, |account| account.info.balance);
            }
            _ => {}
        }
    }

    #[inline]
    fn step_end(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        let left = interpreter.gas.remaining();
        if interpreter.bytecode.action().is_none() && self.opcode != op::CALLDATALOAD {
            // fast path: most instructions are no call events
            self.spent += self.gas.saturating_sub(left);
            self.count(false, false);
            return;
        }
        let (mut halt, mut output, mut handed) = (None, Bytes::new(), 0);
        match interpreter.bytecode.action() {
            Some(InterpreterAction::Return(result)) if result.result.is_ok_or_revert() => {
                output = result.output.clone();
                if let Some(frame) = self.live.last_mut() {
                    frame.has_ended_well = result.result.is_ok();
                }
            }
            Some(InterpreterAction::Return(result)) => halt = Some(result.result),
            Some(InterpreterAction::NewFrame(FrameInput::Call(inputs))) => {
                handed = inputs.gas_limit.saturating_sub(if inputs.transfers_value() { CALL_STIPEND } else { 0 });
            }
            Some(InterpreterAction::NewFrame(FrameInput::Create(inputs))) => handed = inputs.gas_limit(),
            _ => {}
        }
        let cost = if halt.is_some() { self.gas } else { self.gas.saturating_sub(left).saturating_sub(handed) };
        // like Besu 21.10, count the cost of a halted instruction only if it halted for lack of gas
        self.spent += if halt.is_none_or(is_lack_of_gas) { cost } else { 0 };
        let call = |kind| CallEvent::Call { kind, to: self.target, child: None, precompiled: None };
        let own_code = || self.live.last().map_or_else(Bytes::new, |frame| frame.code.clone());
        let event = match self.opcode {
            op::CALL => Some(call(Kind::Call)),
            op::CALLCODE => Some(call(Kind::CallCode)),
            op::DELEGATECALL => Some(call(Kind::DelegateCall)),
            op::STATICCALL => Some(call(Kind::StaticCall)),
            op::CREATE | op::CREATE2 => {
                self.has_create2 |= self.opcode == op::CREATE2;
                Some(CallEvent::Create { child: None, init: own_code() })
            }
            op::CALLDATALOAD => match self.steps.last() {
                // record only the first CALLDATALOAD after another call event, because further ones do not change the
                // trace entry
                Some(Step { event: CallEvent::Load, depth, halt: None, .. }) if *depth + 1 == self.live.len() => None,
                _ => Some(CallEvent::Load),
            },
            op::RETURN | op::STOP => {
                let (is_stop, code, refund) = (self.opcode == op::STOP, own_code(), interpreter.gas.refunded());
                if !is_stop {
                    self.note_end(false);
                }
                Some(CallEvent::Return { is_stop, output, code, refund })
            }
            op::REVERT => {
                self.note_end(true);
                Some(CallEvent::Revert)
            }
            op::SELFDESTRUCT => Some(CallEvent::SelfDestruct { heir: self.target, balance: self.balance }),
            _ => halt.map(|_| CallEvent::Other),
        };
        let is_event = event.is_some() || halt.is_some();
        if is_event {
            self.push(event.unwrap_or(CallEvent::Other), self.gas, cost, halt);
        }
        self.count(self.opcode == op::RETURN, is_event);
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        let input = inputs.input.bytes(context);
        self.enter(inputs.target_address, inputs.call_value(), inputs.gas_limit, input, Bytes::new());
        None
    }

    fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.leave(&outcome.result, precompile_price(context, inputs, outcome), false);
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        let address = created_address(context, inputs);
        self.has_create2 |= matches!(inputs.scheme(), CreateScheme::Create2 { .. });
        let code = inputs.init_code().clone();
        self.enter(address, inputs.value(), inputs.gas_limit(), Bytes::new(), code);
        None
    }

    fn create_end(&mut self, _: &mut EvmContext, _: &CreateInputs, outcome: &mut CreateOutcome) {
        // like Besu, show the code of the topmost frame as init code. This is the frame of the creation if its code has
        // started.
        let frame = self.live.last();
        let refused = matches!(
            outcome.result.result,
            InstructionResult::CallTooDeep | InstructionResult::OutOfFunds | InstructionResult::NonceOverflow
        );
        if let (Some(frame), false) = (frame, refused)
            && let Some(at) = frame.caller
        {
            let code = frame.code.clone();
            if let CallEvent::Create { init, .. } = &mut self.steps[at].event {
                *init = code;
            }
        }
        self.leave(&outcome.result, None, true);
    }
}
