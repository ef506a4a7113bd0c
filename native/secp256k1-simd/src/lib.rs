//! Recovery of secp256k1 signers with AVX-512, eight signatures at a time
//! (docs/decisions/0134-simd-sender-recovery.md).
//!
//! This is a fast path. The slow path is libsecp256k1, one signature at a time; both give the same results. `recover`
//! returns None for every signature that libsecp256k1 has to decide: r or s out of range, an x without a point, equal
//! or opposite points in a sum, a result that is not on the curve. Signatures are public, so the code need not run in
//! constant time.
//!
//! | path                       | processor            | eight signatures | test against libsecp256k1     |
//! |----------------------------|----------------------|------------------|-------------------------------|
//! | `ifma`                     | AVX-512 with IFMA    | 87 µs            | `recover.rs`, as `ifma::…`    |
//! | `doubles`                  | AVX-512 without IFMA | 148 µs           | `recover.rs`, as `doubles::…` |
//! | none: every result is None | all others           | 400 µs           | `primitives/src/signers.rs`   |
//!
//! `field.rs`, `point.rs` and `recover.rs` are compiled once for each multiplier.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::duplicate_mod, reason = "compiled once for each multiplier")]

mod doubles;
mod ifma;
mod limbs;
mod scalar;

use std::sync::LazyLock;

use alloy_primitives::{U256, keccak256};
use secp256k1::{Message, SECP256K1, SecretKey};

pub use limbs::LANES;

/// A signature and the digest it signs.
pub struct Signature {
    pub digest: U256,
    pub r: U256,
    pub s: U256,
    /// Whether the y coordinate of the point R is odd.
    pub parity: bool,
}

/// Return whether this processor has a SIMD path.
pub fn is_supported() -> bool {
    doubles::is_supported()
}

/// Recover uncompressed public keys. None means that libsecp256k1 has to decide.
pub fn recover(signatures: &[Signature]) -> Vec<Option<[u8; 64]>> {
    FAST_PATH.map_or_else(|| vec![None; signatures.len()], |recover| recover(signatures))
}

type Recover = fn(&[Signature]) -> Vec<Option<[u8; 64]>>;

/// The first SIMD path that this processor supports and that passes the self-test.
static FAST_PATH: LazyLock<Option<Recover>> = LazyLock::new(|| {
    let paths: [(bool, Recover); 2] = [
        (ifma::is_supported(), |signatures| ifma::recover(signatures, ifma::MIN_SIGNATURES)),
        (doubles::is_supported(), |signatures| doubles::recover(signatures, doubles::MIN_SIGNATURES)),
    ];
    paths.into_iter().find(|(is_supported, recover)| *is_supported && passes_self_test(*recover)).map(|(_, path)| path)
});

/// Return whether a SIMD path recovers the keys of sixteen signatures made by libsecp256k1.
fn passes_self_test(recover: Recover) -> bool {
    let (signatures, keys): (Vec<Signature>, Vec<[u8; 64]>) = (1..=2 * LANES as u64).map(signed).unzip();
    recover(&signatures).into_iter().zip(keys).all(|(recovered, key)| recovered == Some(key))
}

/// Return a signature by a public test key derived from `number`, and that key.
fn signed(number: u64) -> (Signature, [u8; 64]) {
    let digest = keccak256(number.to_be_bytes());
    let secret = SecretKey::from_byte_array(keccak256(digest).0).expect("this hash is a valid key");
    let (id, bytes) = SECP256K1.sign_ecdsa_recoverable(Message::from_digest(digest.0), &secret).serialize_compact();
    let (r, s) = (U256::from_be_slice(&bytes[..32]), U256::from_be_slice(&bytes[32..]));
    let key = secret.public_key(SECP256K1).serialize_uncompressed();
    let signature = Signature { digest: digest.into(), r, s, parity: i32::from(id) & 1 == 1 };
    (signature, key[1..].try_into().expect("64 bytes after the prefix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_wrong_results_fails_the_self_test() {
        assert_eq!(FAST_PATH.is_some(), is_supported(), "the supported path passes the self-test");
        assert!(!passes_self_test(|signatures| vec![None; signatures.len()]));
        assert!(!passes_self_test(|signatures| vec![Some([1; 64]); signatures.len()]));
    }
}
