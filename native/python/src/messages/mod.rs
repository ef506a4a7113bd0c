//! Python bindings of the parsers for client input: plain requests, JSON outlines, WebSocket frames.

pub mod clients;
pub mod requests;
