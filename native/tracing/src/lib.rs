//! Transaction tracers.
//!
//! | folder       | contents                                                                |
//! |--------------|-------------------------------------------------------------------------|
//! | output/      | output stream; numbers and names of all traces                          |
//! | replay/      | re-execution of transactions with a tracer                              |
//! | struct_logs/ | one row per instruction, in the forms of Besu and geth                  |
//! | calls/       | call trees: callTracer, 4byteTracer                                     |
//! | flat/        | call lists: trace_*, flatCallTracer                                     |
//! | state/       | accounts before and after: prestateTracer                               |
//! | parity/      | trace_replay*: flat traces, vmTrace and stateDiff together              |
//! | jobs/        | selection of the tracer, on a thread of its own                         |

pub mod calls;
pub mod flat;
pub mod jobs;
pub mod output;
pub mod parity;
pub mod replay;
pub mod state;
pub mod struct_logs;
