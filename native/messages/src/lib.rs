//! Parsers for untrusted client input. They need no Python, and allocate at most a small multiple of the input.
//!
//! - `outline`: positions of values in a JSON text, without building objects
//! - `frames`: WebSocket frames to messages
//! - `plain_request`: fast path for plain requests

pub mod frames;
pub mod outline;
pub mod plain_request;
