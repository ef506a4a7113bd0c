//! Sealed payloads and enclave keys.

pub mod keyring;
