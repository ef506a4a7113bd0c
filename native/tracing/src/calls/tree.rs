//! The tracers that are made from frames: callTracer, 4byteTracer (json-rpc.md 7.3).

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, list, quantity, raw, wide};
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter};
use revm::state::AccountInfo;

use crate::calls::frames::{Frame, FrameRecorder, Kind};
use crate::output::sink::{Sink, halt};
use crate::output::text::{decimal, revert_reason, text};
use crate::replay::block::{Ran, Tracer};

/// Hand every hook of an inspector to a member of it, stopping the run when the sink says so.
macro_rules! record_frames {
    ($tracer:ty) => {
        impl Inspector<EvmContext> for $tracer {
            fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
                self.recorder.initialize_interp(interpreter, context);
            }

            #[inline]
            fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
                if self.sink.tick() {
                    halt(interpreter);
                    return;
                }
                self.recorder.step(interpreter, context);
            }

            #[inline]
            fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
                self.recorder.step_end(interpreter, context);
            }

            fn log(&mut self, context: &mut EvmContext, log: alloy_primitives::Log) {
                self.recorder.log(context, log);
            }

            fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
                self.recorder.call(context, inputs)
            }

            fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
                self.recorder.call_end(context, inputs, outcome);
            }

            fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
                self.recorder.create(context, inputs)
            }

            fn create_end(&mut self, context: &mut EvmContext, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
                self.recorder.create_end(context, inputs, outcome);
            }
        }
    };
}
pub(crate) use record_frames;

// --- callTracer ----------------------------------------------------------------------------------

pub struct CallTracer<'s> {
    sink: &'s mut Sink,
    recorder: FrameRecorder,
    with_log: bool,
}

impl<'s> CallTracer<'s> {
    pub fn new(sink: &'s mut Sink, only_top_call: bool, with_log: bool) -> Self {
        CallTracer { sink, recorder: FrameRecorder::new(only_top_call, with_log), with_log }
    }
}

record_frames!(CallTracer<'_>);

impl Tracer for CallTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.recorder.clear();
    }

    fn finish(&mut self, _: &mut ExecDb, ran: &Ran) -> Result<()> {
        let frames = &mut self.recorder.frames;
        if let Some(root) = frames.first_mut() {
            root.gas = ran.tx.gas_limit;
            root.gas_used = ran.result.tx_gas_used();
            write_call(&mut self.sink.out, frames, 0, self.with_log);
        } else {
            raw(&mut self.sink.out, "null");
        }
        self.sink.settle();
        Ok(())
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Call => "CALL",
        Kind::CallCode => "CALLCODE",
        Kind::DelegateCall => "DELEGATECALL",
        Kind::StaticCall => "STATICCALL",
        Kind::Create => "CREATE",
        Kind::Create2 => "CREATE2",
    }
}

fn write_call(out: &mut Vec<u8>, frames: &[Frame], index: usize, logs_are_kept: bool) {
    let frame = &frames[index];
    raw(out, "{\"type\":\"");
    raw(out, kind_name(frame.kind));
    data(out, "\",\"from\":", frame.from);
    if frame.is_ok() || !frame.kind.is_creation() {
        data(out, ",\"to\":", frame.to);
    }
    if frame.kind != Kind::StaticCall {
        wide(out, ",\"value\":", frame.value);
    }
    quantity(out, ",\"gas\":", frame.gas);
    quantity(out, ",\"gasUsed\":", frame.gas_used);
    data(out, ",\"input\":", &frame.input);
    let has_output = frame.is_ok() || frame.result == InstructionResult::Revert;
    if has_output && !frame.output.is_empty() {
        data(out, ",\"output\":", &frame.output);
    }
    if let Some(error) = &frame.error {
        text(out, ",\"error\":", error);
        if let Some(reason) = revert_reason(&frame.output).filter(|_| frame.result == InstructionResult::Revert) {
            text(out, ",\"revertReason\":", &reason);
        }
    }
    // What a failed frame logged has not happened, nor what was logged below it.
    let logs_are_kept = logs_are_kept && frame.is_ok();
    // Calls that were refused at the door are shown like any other that failed.
    if !frame.children.is_empty() || frame.end.is_some() {
        raw(out, ",\"calls\":[");
        let mut comma = "";
        for child in &frame.children {
            raw(out, std::mem::replace(&mut comma, ","));
            write_call(out, frames, *child, logs_are_kept);
        }
        if let Some((contract, heir, balance)) = &frame.end {
            raw(out, comma);
            data(out, "{\"type\":\"SELFDESTRUCT\",\"from\":", contract);
            data(out, ",\"to\":", heir);
            wide(out, ",\"value\":", *balance);
            raw(out, ",\"gas\":\"0x0\",\"gasUsed\":\"0x0\",\"input\":\"0x\"}");
        }
        out.push(b']');
    }
    if logs_are_kept && !frame.logs.is_empty() {
        list(out, ",\"logs\":", &frame.logs, |out, (position, log)| {
            data(out, "{\"address\":", log.address);
            list(out, ",\"topics\":", log.topics(), |out, topic| data(out, "", topic));
            data(out, ",\"data\":", &log.data.data);
            quantity(out, ",\"position\":", *position as u64);
            out.push(b'}');
        });
    }
    out.push(b'}');
}

// --- 4byteTracer ---------------------------------------------------------------------------------

pub struct FourByteTracer<'s> {
    sink: &'s mut Sink,
    recorder: FrameRecorder,
}

impl<'s> FourByteTracer<'s> {
    pub fn new(sink: &'s mut Sink) -> Self {
        FourByteTracer { sink, recorder: FrameRecorder::new(false, false) }
    }
}

record_frames!(FourByteTracer<'_>);

impl Tracer for FourByteTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.recorder.clear();
    }

    fn finish(&mut self, _: &mut ExecDb, _: &Ran) -> Result<()> {
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        // Neither init code nor the input of a precompiled contract begins with a selector.
        let calls = self.recorder.frames.iter().filter(|frame| !frame.kind.is_creation() && !frame.is_precompile);
        for frame in calls.filter(|frame| frame.was_entered() && frame.input.len() >= 4) {
            let selector = alloy_primitives::hex::encode(&frame.input[..4]);
            *seen.entry(format!("0x{selector}-{}", frame.input.len() - 4)).or_default() += 1;
        }
        let out = &mut self.sink.out;
        out.push(b'{');
        for (at, (name, count)) in seen.iter().enumerate() {
            text(out, if at > 0 { "," } else { "" }, name);
            decimal(out, ":", *count);
        }
        out.push(b'}');
        self.sink.settle();
        Ok(())
    }
}

/// The code of an account before or after a transaction.
pub fn code_of(db: &mut ExecDb, info: &AccountInfo) -> Result<Bytes> {
    use revm::database_interface::Database;
    match &info.code {
        Some(code) => Ok(code.original_bytes()),
        None => Ok(db.code_by_hash(info.code_hash)?.original_bytes()),
    }
}
