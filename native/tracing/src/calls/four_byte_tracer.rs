//! 4byteTracer: counts calls by selector and size of the call data (json-rpc.md 7.3).

use std::collections::BTreeMap;

use alloy_primitives::hex;
use ophion_primitives::json::decimal;

use super::call_frames::FrameRecorder;
use crate::output::sink::Sink;
use crate::output::text::text;
use crate::replay::block::Ran;
use crate::replay::recording::{Recording, Report};

pub struct Selectors;

impl Selectors {
    pub fn tracer(sink: &mut Sink) -> Recording<'_, Self> {
        Recording::new(sink, FrameRecorder::new(false, false), Selectors)
    }
}

impl Report for Selectors {
    type Recorder = FrameRecorder;

    fn write(&mut self, sink: &mut Sink, recorder: &mut FrameRecorder, _: &Ran) {
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        // init code and inputs of precompiled contracts have no selector
        let calls = recorder.frames.iter().filter(|frame| !frame.kind.is_creation() && !frame.is_precompile);
        for frame in calls.filter(|frame| frame.was_entered() && frame.input.len() >= 4) {
            let selector = hex::encode(&frame.input[..4]);
            *seen.entry(format!("0x{selector}-{}", frame.input.len() - 4)).or_default() += 1;
        }
        let out = &mut sink.out;
        out.push(b'{');
        for (at, (name, count)) in seen.iter().enumerate() {
            text(out, if at > 0 { "," } else { "" }, name);
            decimal(out, ":", *count);
        }
        out.push(b'}');
    }
}
