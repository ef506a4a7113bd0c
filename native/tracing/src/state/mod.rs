//! Tracer of accounts before and after a transaction.

pub mod prestate_tracer;
