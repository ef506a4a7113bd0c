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
mod key_table;
mod limbs;
mod scalar;

use std::sync::LazyLock;

use alloy_primitives::{U256, keccak256};
use key_table::Entries;
use secp256k1::{Message, SECP256K1, SecretKey};

pub use key_table::KeyTable;
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
    FAST_PATH.as_ref().map_or_else(|| vec![None; signatures.len()], |path| (path.recover)(signatures))
}

/// Return for each signature whether recovery gives the key of its table. This takes half as long as recovery, or less.
/// False means that `recover` has to decide.
pub fn verify(signatures: &[(&Signature, &KeyTable)]) -> Vec<bool> {
    FAST_PATH.as_ref().map_or_else(|| vec![false; signatures.len()], |path| (path.verify)(signatures))
}

type Recover = fn(&[Signature]) -> Vec<Option<[u8; 64]>>;
type Verify = fn(&[(&Signature, &KeyTable)]) -> Vec<bool>;

struct Path {
    recover: Recover,
    verify: Verify,
    /// Computes the table of a public key.
    multiples: fn(&[U256; 2]) -> Option<Box<Entries>>,
}

/// The first SIMD path that this processor supports and that passes the self-test.
static FAST_PATH: LazyLock<Option<Path>> = LazyLock::new(|| {
    let ifma = Path {
        recover: |signatures| ifma::recover(signatures, ifma::MIN_SIGNATURES),
        verify: ifma::verify,
        multiples: ifma::multiples,
    };
    let doubles = Path {
        recover: |signatures| doubles::recover(signatures, doubles::MIN_SIGNATURES),
        verify: doubles::verify,
        multiples: doubles::multiples,
    };
    let paths = [(ifma::is_supported(), ifma), (doubles::is_supported(), doubles)];
    paths.into_iter().find(|(is_supported, path)| *is_supported && passes_self_test(path)).map(|(_, path)| path)
});

/// Return whether a SIMD path recovers the keys of sixteen signatures made by libsecp256k1, and verifies signatures of
/// one key.
fn passes_self_test(path: &Path) -> bool {
    let (signatures, keys): (Vec<Signature>, Vec<[u8; 64]>) = (1..=2 * LANES as u64).map(signed).unzip();
    let Some(table) = KeyTable::with(path.multiples, &keys[0]) else { return false };
    let verified = (path.verify)(&[(&signatures[0], &table), (&signatures[1], &table)]);
    (path.recover)(&signatures).into_iter().zip(keys).all(|(recovered, key)| recovered == Some(key))
        && verified == [true, false]
}

/// Return a signature by a public test key derived from `number`, and that key.
fn signed(number: u64) -> (Signature, [u8; 64]) {
    signed_by(number, number)
}

/// Return a signature by the public test key with this number over a digest derived from `number`, and that key.
fn signed_by(number: u64, key: u64) -> (Signature, [u8; 64]) {
    let digest = keccak256(number.to_be_bytes());
    let secret = keccak256(keccak256(key.to_be_bytes())).0;
    let secret = SecretKey::from_byte_array(secret).expect("this hash is a valid key");
    let (id, bytes) = SECP256K1.sign_ecdsa_recoverable(Message::from_digest(digest.0), &secret).serialize_compact();
    let (r, s) = (U256::from_be_slice(&bytes[..32]), U256::from_be_slice(&bytes[32..]));
    let key = secret.public_key(SECP256K1).serialize_uncompressed();
    let signature = Signature { digest: digest.into(), r, s, parity: i32::from(id) & 1 == 1 };
    (signature, key[1..].try_into().expect("64 bytes after the prefix"))
}

#[cfg(test)]
mod tests {
    use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};

    use super::*;

    /// Return the public key that libsecp256k1 recovers; None for a signature without a public key.
    pub fn libsecp256k1(signature: &Signature) -> Option<[u8; 64]> {
        let r_s = [signature.r.to_be_bytes::<32>(), signature.s.to_be_bytes::<32>()].concat();
        let id = if signature.parity { RecoveryId::One } else { RecoveryId::Zero };
        let message = Message::from_digest(signature.digest.to_be_bytes());
        if signature.r.is_zero() || signature.s.is_zero() {
            return None;
        }
        let signature = RecoverableSignature::from_compact(&r_s, id).ok()?;
        let key = SECP256K1.recover_ecdsa(message, &signature).ok()?.serialize_uncompressed();
        Some(key[1..].try_into().unwrap())
    }

    #[test]
    fn a_path_with_wrong_results_fails_the_self_test() {
        assert_eq!(FAST_PATH.is_some(), is_supported(), "the supported path passes the self-test");
        let never = |recover| Path { recover, verify: |some| vec![false; some.len()], multiples: doubles::multiples };
        assert!(!passes_self_test(&never(|signatures| vec![None; signatures.len()])));
        assert!(!passes_self_test(&never(|signatures| vec![Some([1; 64]); signatures.len()])));
        if let Some(Path { recover, multiples, .. }) = FAST_PATH.as_ref() {
            assert!(!passes_self_test(&never(*recover)));
            let verify: Verify = |some| vec![true; some.len()];
            assert!(!passes_self_test(&Path { recover: *recover, verify, multiples: *multiples }));
        }
    }
}
