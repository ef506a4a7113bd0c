//! Python bindings of the peer-to-peer wire protocol.

pub mod peers;
