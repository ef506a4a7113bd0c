//! Python bindings of the peer-to-peer wire protocol.

mod payload;
pub mod peers;
