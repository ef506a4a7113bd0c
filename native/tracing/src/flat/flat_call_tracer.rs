//! flatCallTracer: the call tree as a list. Each call comes before the calls that it makes.

use std::borrow::Cow;

use alloy_primitives::U256;
use ophion_primitives::json::raw;
use revm::interpreter::InstructionResult;

use super::entries::{Action, Entry, Outcome, write_action, write_address, write_outcome, write_place};
use crate::calls::call_frames::{Frame, FrameRecorder, Kind};
use crate::output::sink::Sink;
use crate::output::text::{text, trace_words};
use crate::replay::block::{Place, Ran};
use crate::replay::recording::{Recording, Report};

#[derive(Clone, Copy)]
pub struct FlatCallOptions {
    pub with_precompiles: bool,
    /// Whether to use the error texts of trace_* instead of the error texts of the call tracer.
    pub with_trace_errors: bool,
}

impl FlatCallOptions {
    pub fn tracer(self, sink: &mut Sink) -> Recording<'_, Self> {
        Recording::new(sink, FrameRecorder::new(false, false), self)
    }
}

impl Report for FlatCallOptions {
    type Recorder = FrameRecorder;

    fn write(&mut self, sink: &mut Sink, recorder: &mut FrameRecorder, ran: &Ran) {
        sink.out.push(b'[');
        let frames = recorder.settled(ran);
        if !frames.is_empty() {
            Writer { sink, frames, options: *self, place: ran.place.as_ref() }.write_frame(0, &mut Vec::new());
        }
        sink.out.push(b']');
    }
}

struct Writer<'a> {
    sink: &'a mut Sink,
    frames: &'a [Frame],
    options: FlatCallOptions,
    place: Option<&'a Place>,
}

impl Writer<'_> {
    fn write_frame(&mut self, index: usize, address: &mut Vec<usize>) {
        let frames = self.frames;
        let frame = &frames[index];
        let is_listed = |child: &&usize| {
            let child = &frames[**child];
            let is_plain = matches!(child.kind, Kind::Call | Kind::StaticCall);
            self.options.with_precompiles || !child.is_precompile || !is_plain
        };
        let children: Vec<usize> = frame.children.iter().filter(is_listed).copied().collect();
        let end = frame.end;
        let mut entry = entry_of(frame, address.clone(), self.options.with_trace_errors);
        entry.subtraces = children.len() + usize::from(end.is_some());
        self.write_entry(&entry);
        let count = children.len();
        for (at, child) in children.into_iter().enumerate() {
            address.push(at);
            self.write_frame(child, address);
            address.pop();
        }
        if let Some((contract, heir, balance)) = end {
            let mut address = address.clone();
            address.push(count);
            self.write_entry(&Entry::new(Action::End { contract, heir, balance }, 0, U256::ZERO, address));
        }
    }

    /// Write a trace entry. For a call outside of a block, the block fields are null.
    fn write_entry(&mut self, entry: &Entry) {
        let out = &mut self.sink.out;
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        write_action(out, entry, true);
        if let Some(error) = &entry.error {
            text(out, ",\"error\":", error);
        }
        if let Some(outcome) = &entry.outcome {
            write_outcome(out, &entry.action, outcome);
        }
        write_address(out, entry);
        match self.place {
            Some(place) => write_place(out, place),
            None => {
                raw(out, ",\"blockHash\":null,\"blockNumber\":0,\"transactionHash\":null,\"transactionPosition\":0")
            }
        }
        out.push(b'}');
        self.sink.settle();
    }
}

fn entry_of(frame: &Frame, address: Vec<usize>, with_trace_errors: bool) -> Entry {
    let mut outcome = Outcome { gas_used: frame.gas_used as i64, ..Outcome::default() };
    let action = if frame.kind.is_creation() {
        outcome.set_code(frame.output.clone());
        Action::Create {
            from: frame.from,
            init: frame.input.clone(),
            address: frame.to,
            is_create2: frame.kind == Kind::Create2,
        }
    } else {
        outcome.output = Some(frame.output.clone());
        Action::Call { kind: frame.kind, from: frame.from, to: frame.to, input: frame.input.clone() }
    };
    let mut entry = Entry::new(action, frame.gas, frame.value, address);
    entry.error = frame.error.clone().map(|words| match with_trace_errors {
        true => trace_words(&words).map_or(words.into(), Cow::Borrowed),
        false => words.into(),
    });
    // Show the output of successful and of reverted frames, but not of frames that halted.
    entry.outcome = (frame.is_ok() || frame.result == InstructionResult::Revert).then_some(outcome);
    entry
}
