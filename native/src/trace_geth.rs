//! The named tracers: callTracer, prestateTracer, 4byteTracer (json-rpc.md 7.3).

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256};
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter};
use revm::state::{Account, AccountInfo};

use crate::errors::Result;
use crate::evm::EvmContext;
use crate::exec_db::ExecDb;
use crate::json_text::{data, list, quantity, raw, wide};
use crate::trace_frames::{Frame, FrameRecorder, Kind};
use crate::trace_replay::{Ran, Tracer};
use crate::trace_sink::{Sink, halt};
use crate::trace_text::{decimal, revert_reason, text};

/// Hand every hook of an inspector to a member of it, stopping the run when the sink says so.
macro_rules! record_frames {
    ($tracer:ty) => {
        impl Inspector<EvmContext> for $tracer {
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

// --- prestateTracer ------------------------------------------------------------------------------

#[derive(Clone, Copy)]
pub struct PrestateOptions {
    pub is_diff: bool,
    pub with_code: bool,
    pub with_storage: bool,
    /// Show accounts that were not there, or held nothing.
    pub with_empty: bool,
}

pub struct PrestateTracer<'s> {
    sink: &'s mut Sink,
    options: PrestateOptions,
}

impl<'s> PrestateTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: PrestateOptions) -> Self {
        PrestateTracer { sink, options }
    }
}

impl Inspector<EvmContext> for PrestateTracer<'_> {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
        }
    }
}

impl Tracer for PrestateTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {}

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        let accounts: BTreeMap<&Address, &Account> = ran.changes.iter().collect();
        if self.options.is_diff {
            self.write_diff(db, &accounts)?;
        } else {
            self.write_pre(db, &accounts)?;
        }
        self.sink.settle();
        Ok(())
    }
}

/// Members of an account in one of the two states.
struct Shown {
    balance: Option<U256>,
    nonce: u64,
    code: Option<Bytes>,
    code_hash: Option<alloy_primitives::B256>,
    storage: BTreeMap<U256, U256>,
}

impl Shown {
    fn write(&self, out: &mut Vec<u8>, before: &str, address: &Address) {
        data(out, before, address);
        raw(out, ":{");
        let mut comma = "";
        if let Some(balance) = self.balance {
            wide(out, "\"balance\":", balance);
            comma = ",";
        }
        if self.nonce > 0 {
            raw(out, comma);
            decimal(out, "\"nonce\":", self.nonce);
            comma = ",";
        }
        if let Some(code) = &self.code {
            raw(out, comma);
            data(out, "\"code\":", code);
            comma = ",";
        }
        if let Some(hash) = &self.code_hash {
            raw(out, comma);
            data(out, "\"codeHash\":", hash);
            comma = ",";
        }
        if !self.storage.is_empty() {
            raw(out, comma);
            raw(out, "\"storage\":{");
            for (at, (slot, value)) in self.storage.iter().enumerate() {
                data(out, if at > 0 { "," } else { "" }, slot.to_be_bytes::<32>());
                data(out, ":", value.to_be_bytes::<32>());
            }
            out.push(b'}');
        }
        out.push(b'}');
    }
}

impl PrestateTracer<'_> {
    fn shown(&self, db: &mut ExecDb, info: &AccountInfo) -> Result<Shown> {
        let has_code = info.code_hash != KECCAK256_EMPTY;
        Ok(Shown {
            balance: Some(info.balance),
            nonce: info.nonce,
            code: if has_code && self.options.with_code { Some(code_of(db, info)?) } else { None },
            // Whoever does not want the code still learns which one it is.
            code_hash: has_code.then_some(info.code_hash),
            storage: BTreeMap::new(),
        })
    }

    /// Whether an account shows in the state before: one that held nothing does when it was asked for.
    fn is_shown(&self, before: &AccountInfo) -> bool {
        self.options.with_empty || !before.is_empty()
    }

    fn write_pre(&mut self, db: &mut ExecDb, accounts: &BTreeMap<&Address, &Account>) -> Result<()> {
        self.sink.out.push(b'{');
        let mut comma = "";
        for (address, account) in accounts {
            let before = db.info(address)?.unwrap_or_default();
            if !self.is_shown(&before) {
                continue;
            }
            let mut shown = self.shown(db, &before)?;
            if self.options.with_storage {
                shown.storage = account.storage.iter().map(|(slot, value)| (*slot, value.original_value)).collect();
            }
            shown.write(&mut self.sink.out, comma, address);
            comma = ",";
        }
        self.sink.out.push(b'}');
        Ok(())
    }

    fn write_diff(&mut self, db: &mut ExecDb, accounts: &BTreeMap<&Address, &Account>) -> Result<()> {
        let (mut pre, mut post) = (Vec::new(), Vec::new());
        for (address, account) in accounts {
            let was = db.info(address)?.unwrap_or_default();
            let is_gone = account.is_selfdestructed();
            let mut left = self.shown(db, &was)?;
            let mut right = Shown { balance: None, nonce: 0, code: None, code_hash: None, storage: BTreeMap::new() };
            let mut is_changed = is_gone;
            if !is_gone && account.is_touched() {
                let now = &account.info;
                let has_new_code = now.code_hash != was.code_hash;
                right.balance = (now.balance != was.balance).then_some(now.balance);
                right.nonce = if now.nonce != was.nonce { now.nonce } else { 0 };
                right.code_hash = has_new_code.then_some(now.code_hash);
                if has_new_code && self.options.with_code {
                    right.code = Some(code_of(db, now)?);
                }
                is_changed = right.balance.is_some() || now.nonce != was.nonce || has_new_code;
            }
            for (slot, value) in account.storage.iter().filter(|_| self.options.with_storage) {
                // All that is known of the storage of an account that is gone is part of what it was.
                if is_gone {
                    left.storage.insert(*slot, value.original_value);
                } else if value.is_changed() {
                    is_changed = true;
                    if !value.original_value.is_zero() {
                        left.storage.insert(*slot, value.original_value);
                    }
                    if !value.present_value.is_zero() {
                        right.storage.insert(*slot, value.present_value);
                    }
                }
            }
            if !is_changed {
                continue;
            }
            if self.is_shown(&was) {
                let before = if pre.is_empty() { "" } else { "," };
                left.write(&mut pre, before, address);
            }
            if !is_gone {
                let before = if post.is_empty() { "" } else { "," };
                right.write(&mut post, before, address);
            }
        }
        let out = &mut self.sink.out;
        raw(out, "{\"pre\":{");
        out.extend_from_slice(&pre);
        raw(out, "},\"post\":{");
        out.extend_from_slice(&post);
        raw(out, "}}");
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
