//! What clients send: outlines of JSON texts and frames of WebSockets.

pub mod clients;
