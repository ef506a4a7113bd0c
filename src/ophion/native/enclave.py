"""Rust types of the privacy enclave: sealed (encrypted) payloads, and the keyring that seals and decrypts them."""

from ophion._native import (
    MAX_SEALED_BOXES,
    EnclaveKeyring,
    SealedRecord,
    enclave_group_id,
    enclave_public_key,
    is_sound_enclave_key,
    lock_enclave_key,
    read_sealed,
    unlock_enclave_key,
)

__all__ = [
    "MAX_SEALED_BOXES",
    "EnclaveKeyring",
    "SealedRecord",
    "enclave_group_id",
    "enclave_public_key",
    "is_sound_enclave_key",
    "lock_enclave_key",
    "read_sealed",
    "unlock_enclave_key",
]
