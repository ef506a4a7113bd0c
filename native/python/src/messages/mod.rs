//! Client input: plain requests, JSON outlines, WebSocket frames.

pub mod clients;
pub mod requests;
