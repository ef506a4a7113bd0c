//! What a transaction did, in every form that clients ask for.
//!
//! | folder  | question it answers                                                         |
//! |---------|-----------------------------------------------------------------------------|
//! | output/ | where does a trace go while it is made; words and numbers of all traces     |
//! | replay/ | how does a transaction run again, in its block, with somebody looking on    |
//! | steps/  | one row an instruction: struct logs in both forms, and what each step costs |
//! | calls/  | calls as a tree: callTracer, 4byteTracer                                    |
//! | flat/   | calls as a list: trace_*, flatCallTracer                                    |
//! | state/  | accounts before and after: prestateTracer                                   |
//! | parity/ | trace_replay*: flat traces, vmTrace and stateDiff together                  |
//! | jobs/   | which tracer for which question, in a thread of its own                     |

mod calls;
pub mod flat;
pub mod jobs;
pub mod output;
pub mod parity;
pub mod replay;
pub mod state;
pub mod struct_logs;
