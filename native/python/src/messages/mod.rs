//! What clients send: usual requests, outlines of JSON texts and frames of WebSockets.

pub mod clients;
pub mod requests;
