//! Call tree of a transaction: the input of the call tracer and of the flat traces.

use alloy_primitives::{Address, Bytes, Log, U256};
use ophion_execution::evm::context::{EvmContext, created_address, inheritance};
use revm::bytecode::opcode::SELFDESTRUCT;
use revm::inspector::Inspector;
use revm::interpreter::interpreter_types::{Jumps, LoopControl};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, CreateScheme, InstructionResult, Interpreter,
    InterpreterAction, InterpreterResult,
};
use revm::primitives::hardfork::SpecId;

use crate::output::precompile_errors::precompile_words;
use crate::output::text::halt_words;
use crate::replay::block::Ran;
use crate::replay::recording::Recorder;

const CODE_NOT_PAID: &str = "contract creation code storage out of gas";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Call,
    CallCode,
    DelegateCall,
    StaticCall,
    Create,
    Create2,
}

impl Kind {
    pub fn is_creation(self) -> bool {
        matches!(self, Kind::Create | Kind::Create2)
    }
}

pub struct Frame {
    pub kind: Kind,
    pub from: Address,
    /// Address of the callee, or of the created contract.
    pub to: Address,
    pub value: U256,
    pub gas: u64,
    pub gas_used: u64,
    pub input: Bytes,
    pub output: Bytes,
    pub result: InstructionResult,
    /// Reason why the call failed, in the wording of the call tracer.
    pub error: Option<String>,
    pub is_precompile: bool,
    /// Contract, beneficiary and balance, if the frame ended with SELFDESTRUCT; else None.
    pub end: Option<(Address, Address, U256)>,
    pub children: Vec<usize>,
    /// Each log, with the number of calls that the frame made before the log.
    pub logs: Vec<(usize, Log)>,
    /// Position in the code at which the frame failed; None if the frame succeeded or ran no code.
    pub failed_at: Option<usize>,
}

impl Frame {
    pub fn is_ok(&self) -> bool {
        self.result.is_ok()
    }

    /// Return whether the call or creation started; false if it was rejected because of its depth or a low balance.
    pub fn was_entered(&self) -> bool {
        use InstructionResult as R;
        !matches!(self.result, R::CallTooDeep | R::OutOfFunds | R::OverflowPayment | R::NonceOverflow)
    }
}

pub struct FrameRecorder {
    pub frames: Vec<Frame>,
    open: Vec<usize>,
    /// Whether only the outermost frame is recorded, without its calls.
    only_top: bool,
    with_logs: bool,
    /// Opcode of the current instruction, for error texts.
    opcode: u8,
    at: usize,
    stack: usize,
    ending: Option<(Address, Address, U256)>,
    error: Option<String>,
    depth: usize,
    held_bytes: usize,
}

impl FrameRecorder {
    pub fn new(only_top: bool, with_logs: bool) -> Self {
        FrameRecorder {
            frames: Vec::new(),
            open: Vec::new(),
            only_top,
            with_logs,
            opcode: 0,
            at: 0,
            stack: 0,
            ending: None,
            error: None,
            depth: 0,
            held_bytes: 0,
        }
    }

    /// Return the recorded frames of a finished transaction; empty if no frame ran. The outermost frame gets the gas of
    /// the whole transaction.
    pub fn settled(&mut self, ran: &Ran) -> &[Frame] {
        if let Some(root) = self.frames.first_mut() {
            root.gas = ran.tx.gas_limit;
            root.gas_used = ran.result.tx_gas_used();
        }
        &self.frames
    }

    /// Return the index of the innermost call frame that has not ended.
    pub fn current(&self) -> Option<usize> {
        self.open.last().copied()
    }

    fn enter(&mut self, frame: impl FnOnce(&Self) -> Frame) {
        self.depth += 1;
        if self.only_top && self.depth > 1 {
            return;
        }
        let index = self.frames.len();
        let frame = frame(self);
        self.held_bytes += frame.input.len();
        self.frames.push(frame);
        if let Some(parent) = self.open.last() {
            self.frames[*parent].children.push(index);
        }
        self.open.push(index);
    }

    fn leave(&mut self, spec: SpecId, result: &InterpreterResult, address: Option<Address>, is_precompile: bool) {
        self.depth -= 1;
        let error = self.error.take();
        if self.only_top && self.depth > 0 {
            return;
        }
        let Some(index) = self.open.pop() else { return };
        self.held_bytes += result.output.len();
        let frame = &mut self.frames[index];
        frame.result = result.result;
        frame.output = result.output.clone();
        frame.is_precompile = is_precompile;
        // a halt consumes all gas of its frame, even if the interpreter still counts some gas
        frame.gas_used = if result.result.is_ok_or_revert() { frame.gas - result.gas.remaining() } else { frame.gas };
        if let Some(address) = address {
            frame.to = address;
        }
        if !result.result.is_ok() {
            frame.error = Some(error.unwrap_or_else(|| match result.result {
                // no instruction halted, so the gas did not suffice to store the contract code
                InstructionResult::OutOfGas if frame.kind.is_creation() => CODE_NOT_PAID.into(),
                InstructionResult::PrecompileError => precompile_words(spec, &frame.to, &frame.input),
                other => halt_words(other, 0, 0),
            }));
        }
    }
}

impl Recorder for FrameRecorder {
    fn clear(&mut self) {
        self.frames.clear();
        self.open.clear();
        self.depth = 0;
        self.ending = None;
        self.error = None;
        self.held_bytes = 0;
    }

    fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

impl Inspector<EvmContext> for FrameRecorder {
    #[inline]
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.opcode = interpreter.bytecode.opcode();
        self.at = interpreter.bytecode.pc();
        self.stack = interpreter.stack.len();
        if self.opcode == SELFDESTRUCT {
            self.ending = inheritance(interpreter, context);
        }
    }

    #[inline]
    fn step_end(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        let Some(InterpreterAction::Return(result)) = interpreter.bytecode.action() else { return };
        if !result.result.is_ok()
            && let (Some(index), false) = (self.open.last(), self.only_top && self.depth > 1)
        {
            self.frames[*index].failed_at = Some(self.at);
        }
        match result.result {
            InstructionResult::SelfDestruct => {
                if let (Some(index), false) = (self.open.last(), self.only_top) {
                    self.frames[*index].end = self.ending.take();
                }
            }
            failed if !failed.is_ok_or_revert() => self.error = Some(halt_words(failed, self.opcode, self.stack)),
            _ => {}
        }
    }

    fn log(&mut self, _: &mut EvmContext, log: Log) {
        if self.with_logs
            && let (Some(index), false) = (self.open.last(), self.only_top && self.depth > 1)
        {
            let frame = &mut self.frames[*index];
            frame.logs.push((frame.children.len(), log));
        }
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        let (kind, from, to) = match inputs.scheme {
            CallScheme::Call => (Kind::Call, inputs.caller, inputs.target_address),
            CallScheme::StaticCall => (Kind::StaticCall, inputs.caller, inputs.target_address),
            CallScheme::CallCode => (Kind::CallCode, inputs.target_address, inputs.bytecode_address),
            CallScheme::DelegateCall => (Kind::DelegateCall, inputs.target_address, inputs.bytecode_address),
        };
        self.enter(|recorder| Frame {
            kind,
            from,
            to,
            // DELEGATECALL transfers no value, so show the value of the call that encloses it.
            value: match (kind, recorder.open.last()) {
                (Kind::DelegateCall, Some(parent)) => recorder.frames[*parent].value,
                _ => inputs.call_value(),
            },
            input: inputs.input.bytes(context),
            ..empty(inputs.gas_limit)
        });
        None
    }

    fn call_end(&mut self, context: &mut EvmContext, _: &CallInputs, outcome: &mut CallOutcome) {
        self.leave(*context.cfg.spec(), &outcome.result, None, outcome.was_precompile_called);
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        let address = created_address(context, inputs);
        self.enter(|_| Frame {
            kind: if matches!(inputs.scheme(), CreateScheme::Create2 { .. }) { Kind::Create2 } else { Kind::Create },
            from: inputs.caller(),
            to: address,
            value: inputs.value(),
            input: inputs.init_code().clone(),
            ..empty(inputs.gas_limit())
        });
        None
    }

    fn create_end(&mut self, context: &mut EvmContext, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.leave(*context.cfg.spec(), &outcome.result, outcome.address, false);
    }
}

fn empty(gas: u64) -> Frame {
    Frame {
        kind: Kind::Call,
        from: Address::ZERO,
        to: Address::ZERO,
        value: U256::ZERO,
        gas,
        gas_used: 0,
        input: Bytes::new(),
        output: Bytes::new(),
        result: InstructionResult::Stop,
        error: None,
        is_precompile: false,
        end: None,
        children: Vec::new(),
        logs: Vec::new(),
        failed_at: None,
    }
}
