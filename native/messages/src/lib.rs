//! Parsers for untrusted client input. They need no Python, and allocate at most a small multiple of the input.
//!
//! - `json_outline`: positions of values in a JSON text, without building objects
//! - `websocket_frames`: WebSocket frames to messages
//! - `plain_request`: fast path for plain requests

pub mod json_outline;
pub mod plain_request;
pub mod websocket_frames;
