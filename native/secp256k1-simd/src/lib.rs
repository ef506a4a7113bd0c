//! Signers of eight signatures at a time, by the vector instructions of processors with AVX-512.
//!
//! One signature takes as long as eight here, and eight less than twice (`ifma`) or three times (`doubles`) as long as one
//! by libsecp256k1. Nothing about a signature is secret, so nothing here hides how long it takes. Whatever is out of the
//! ordinary (a number out of range, an x that no point has, a sum that meets an exception of the group law) is left to
//! libsecp256k1, which also says what is wrong; so is every result that does not lie on the curve. Where the processor
//! lacks the instructions, or does not find the signers of some signatures at first, libsecp256k1 does everything.
//!
//! Two ways to multiply, and all the rest in files that are compiled for each of them.

#![allow(clippy::duplicate_mod, reason = "once for each way to multiply")]

mod doubles;
mod ifma;
mod limbs;
mod scalar;

use std::sync::LazyLock;

use alloy_primitives::{U256, keccak256};
use secp256k1::{Message, SECP256K1, SecretKey};

pub use limbs::LANES;

/// A signature, and what it was made over.
pub struct Signature {
    pub digest: U256,
    pub r: U256,
    pub s: U256,
    /// Whether the y of its point is odd.
    pub parity: bool,
}

/// Whether this processor can.
pub fn are_there() -> bool {
    doubles::are_there()
}

/// Uncompressed public keys; None where libsecp256k1 has to be asked, everywhere where this processor has no way.
pub fn recover(signatures: &[Signature]) -> Vec<Option<[u8; 64]>> {
    WAY.map_or_else(|| vec![None; signatures.len()], |way| way(signatures))
}

type Way = fn(&[Signature]) -> Vec<Option<[u8; 64]>>;

/// The first way that this processor has, and by which it finds the signers of some signatures: whatever it is, nothing
/// is believed of it that it has not shown.
static WAY: LazyLock<Option<Way>> = LazyLock::new(|| {
    let ways: [(bool, Way); 2] = [
        (ifma::are_there(), |signatures| ifma::recover(signatures, ifma::FEWEST)),
        (doubles::are_there(), |signatures| doubles::recover(signatures, doubles::FEWEST)),
    ];
    ways.into_iter().find(|(is_there, way)| *is_there && is_right(*way)).map(|(_, way)| way)
});

/// Whether a way gives the keys that have signed.
fn is_right(way: Way) -> bool {
    let (signatures, keys): (Vec<Signature>, Vec<[u8; 64]>) = (1..=2 * LANES as u8).map(signed).unzip();
    way(&signatures).into_iter().zip(keys).all(|(found, key)| found == Some(key))
}

/// Some signature, and the key behind it.
fn signed(number: u8) -> (Signature, [u8; 64]) {
    let digest = keccak256([number]);
    let secret = SecretKey::from_byte_array(keccak256(digest).0).expect("a hash that is known to be a key");
    let made = SECP256K1.sign_ecdsa_recoverable(Message::from_digest(digest.0), &secret);
    let (id, bytes) = made.serialize_compact();
    let number = |part: &[u8]| U256::from_be_slice(part);
    let (r, s, parity) = (number(&bytes[..32]), number(&bytes[32..]), i32::from(id) & 1 == 1);
    let key = secret.public_key(SECP256K1).serialize_uncompressed();
    (Signature { digest: digest.into(), r, s, parity }, key[1..].try_into().expect("64 bytes after the first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_finds_other_signers_is_not_taken() {
        assert_eq!(WAY.is_some(), are_there(), "what this processor has is right");
        assert!(!is_right(|signatures| vec![None; signatures.len()]));
        assert!(!is_right(|signatures| vec![Some([1; 64]); signatures.len()]));
    }
}
