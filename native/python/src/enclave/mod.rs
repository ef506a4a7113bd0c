//! Python bindings of sealed payloads and enclave keys.

pub mod keyring;
