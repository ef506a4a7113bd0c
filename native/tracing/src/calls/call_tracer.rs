//! callTracer: call tree (json-rpc.md 7.3).

use ophion_primitives::json::{data, decimal, list, quantity, raw, wide};
use revm::interpreter::InstructionResult;

use super::call_frames::{Frame, FrameRecorder, Kind};
use crate::output::sink::Sink;
use crate::output::text::{revert_reason, text};
use crate::replay::block::Ran;
use crate::replay::recording::{Recording, Report};

pub struct CallTree {
    options: CallOptions,
}

/// Options of the call tracer.
#[derive(Clone, Copy)]
pub struct CallOptions {
    pub only_top_call: bool,
    pub with_log: bool,
    /// Whether to show the position in the code at which a call failed (`pc`).
    pub with_pc: bool,
}

impl CallTree {
    pub fn tracer(sink: &mut Sink, options: CallOptions) -> Recording<'_, Self> {
        Recording::new(sink, FrameRecorder::new(options.only_top_call, options.with_log), CallTree { options })
    }
}

impl Report for CallTree {
    type Recorder = FrameRecorder;

    fn write(&mut self, sink: &mut Sink, recorder: &mut FrameRecorder, ran: &Ran) {
        match recorder.settled(ran) {
            [] => raw(&mut sink.out, "null"),
            frames => write_call(&mut sink.out, frames, 0, self.options.with_log, self.options.with_pc),
        }
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

fn write_call(out: &mut Vec<u8>, frames: &[Frame], index: usize, logs_are_kept: bool, with_pc: bool) {
    let frame = &frames[index];
    let logs_are_kept = write_fields(out, frame, logs_are_kept);
    if let Some(pc) = frame.failed_at.filter(|_| with_pc) {
        decimal(out, ",\"pc\":", pc as u64);
    }
    // `calls` also contains calls that were rejected before they started, like other failed calls.
    if !frame.children.is_empty() || frame.end.is_some() {
        raw(out, ",\"calls\":[");
        let mut comma = "";
        for child in &frame.children {
            raw(out, std::mem::replace(&mut comma, ","));
            write_call(out, frames, *child, logs_are_kept, with_pc);
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
    out.push(b'}');
}

/// Write a frame without its calls, and without the closing brace. Returns whether the logs of the frame and of its
/// calls are kept.
pub(super) fn write_fields(out: &mut Vec<u8>, frame: &Frame, logs_are_kept: bool) -> bool {
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
    // A failed frame reverts its own logs and the logs of its children.
    let logs_are_kept = logs_are_kept && frame.is_ok();
    if logs_are_kept && !frame.logs.is_empty() {
        list(out, ",\"logs\":", &frame.logs, |out, (position, log)| {
            data(out, "{\"address\":", log.address);
            list(out, ",\"topics\":", log.topics(), |out, topic| data(out, "", topic));
            data(out, ",\"data\":", &log.data.data);
            quantity(out, ",\"position\":", *position as u64);
            out.push(b'}');
        });
    }
    logs_are_kept
}
