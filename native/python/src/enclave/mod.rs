//! Sealed payloads and the keys that open them.

pub mod keyring;
