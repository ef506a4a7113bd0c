//! Selects the tracer of a request.

use ophion_primitives::errors::Result;
use revm::primitives::hardfork::SpecId;

use crate::calls::call_tracer::{CallOptions, CallTree};
use crate::calls::erc7562_tracer::ValidationOptions;
use crate::calls::four_byte_tracer::Selectors;
use crate::flat::flat_call_tracer::FlatCallOptions;
use crate::output::sink::Sink;
use crate::parity::tracer::{ParityOptions, ParityTracer};
use crate::replay::block::Tracer;
use crate::state::prestate_tracer::{PrestateOptions, PrestateTracer};
use crate::struct_logs::besu_struct_log::{StructOptions, StructTracer};
use crate::struct_logs::geth_struct_log::{StandardOptions, StandardTracer};

/// Kinds of traces that a trace request can select.
#[derive(Clone, Copy)]
pub enum Kind {
    Struct(StructOptions),
    Standard(StandardOptions),
    Call(CallOptions),
    Prestate(PrestateOptions),
    FourByte,
    FlatCall(FlatCallOptions),
    Parity(ParityOptions),
    Validation(ValidationOptions),
}

/// Work on a block or a call that runs with any kind of tracer.
pub trait Job {
    fn run<T: Tracer>(self, tracer: T) -> Result<()>;
}

pub fn with_tracer(kind: Kind, sink: &mut Sink, spec: SpecId, job: impl Job) -> Result<()> {
    match kind {
        Kind::Struct(options) => job.run(StructTracer::new(sink, options, spec)),
        Kind::Standard(options) => job.run(StandardTracer::new(sink, options, spec)),
        Kind::Call(options) => job.run(CallTree::tracer(sink, options)),
        Kind::Prestate(options) => job.run(PrestateTracer::new(sink, options, spec)),
        Kind::FourByte => job.run(Selectors::tracer(sink)),
        Kind::FlatCall(options) => job.run(options.tracer(sink)),
        Kind::Parity(options) => job.run(ParityTracer::new(sink, options, spec)),
        Kind::Validation(options) => job.run(options.tracer(sink)),
    }
}
