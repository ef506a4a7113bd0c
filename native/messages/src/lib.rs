//! What clients send, looked at before anybody believes it. Nothing here needs an interpreter or allocates more than a
//! small multiple of what has arrived.
//!
//! - `outline`: what stands where in a JSON text, without making anything of it
//! - `frames`: from the bytes of a WebSocket to messages
//! - `usual`: requests as nearly all are written

pub mod frames;
pub mod outline;
pub mod plain_request;
