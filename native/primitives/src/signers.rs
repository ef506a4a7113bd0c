//! Recovers the signers of many signatures.
//!
//! The fast path, `ophion-secp256k1-simd` (feature `simd`), recovers eight signatures at a time. The slow path,
//! libsecp256k1, recovers one at a time. The test below compares both; the crate compares each of its multipliers with
//! libsecp256k1.

use alloy_primitives::Address;

use crate::errors::Result;
use crate::keys::Signed;

/// Number of signatures per parallel task: two SIMD groups.
pub const TASK: usize = 16;

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod simd {
    use alloy_primitives::U256;
    use ophion_secp256k1_simd::{LANES, Signature, is_supported};

    use crate::keys::Signed;

    pub fn recovered_at_once() -> usize {
        if is_supported() { LANES } else { 1 }
    }

    pub fn recover(signatures: &[Signed]) -> Vec<Option<[u8; 64]>> {
        let numbers = |signed: &Signed| Signature {
            digest: U256::from_be_bytes(signed.digest.0),
            r: U256::from_be_slice(&signed.r_s[..32]),
            s: U256::from_be_slice(&signed.r_s[32..]),
            parity: signed.parity,
        };
        ophion_secp256k1_simd::recover(&signatures.iter().map(numbers).collect::<Vec<_>>())
    }
}

#[cfg(not(all(feature = "simd", target_arch = "x86_64")))]
mod simd {
    use crate::keys::Signed;

    pub fn recovered_at_once() -> usize {
        1
    }

    pub fn recover(signatures: &[Signed]) -> Vec<Option<[u8; 64]>> {
        vec![None; signatures.len()]
    }
}

/// Return the number of signatures that are recovered together. Eight signatures take only two to three times as long
/// as one.
pub fn recovered_at_once() -> usize {
    simd::recovered_at_once()
}

/// Recover the addresses of many signers, in order.
pub fn recover_signers(signatures: &[Signed]) -> Vec<Result<Address>> {
    let keys = if signatures.len() > 1 { simd::recover(signatures) } else { vec![None; signatures.len()] };
    addresses(keys, signatures)
}

/// Convert recovered keys to addresses. None marks a signature that the fast path did not recover; libsecp256k1
/// recovers it instead.
fn addresses(keys: Vec<Option<[u8; 64]>>, signatures: &[Signed]) -> Vec<Result<Address>> {
    let address = |(key, signed): (Option<[u8; 64]>, &Signed)| match key {
        Some(key) => Ok(Address::from_raw_public_key(&key)),
        None => signed.signer(),
    };
    keys.into_iter().zip(signatures).map(address).collect()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;
    use crate::keys::{secret_key, sign, split_signature};

    #[test]
    fn the_fast_path_and_the_fallback_agree_with_libsecp256k1() {
        let mut signatures: Vec<Signed> = (0..40u64)
            .map(|number| {
                let digest = keccak256(number.to_be_bytes());
                let signature = sign(&secret_key(digest.as_slice()).unwrap(), digest.0);
                let (r_s, parity) = split_signature(&signature).unwrap();
                Signed { digest, r_s, parity }
            })
            .collect();
        signatures[3].r_s[..32].fill(0);
        signatures[11].r_s[32..].fill(0xff);
        signatures[20].r_s[..32].copy_from_slice(&[&[0; 31][..], &[5]].concat());
        signatures[21].parity = !signatures[21].parity;
        let text = |result: Result<Address>| result.map_err(|cause| cause.to_string());
        for count in [0, 1, 2, 8, 13, 40] {
            let some = &signatures[..count];
            let expected: Vec<_> = some.iter().map(|signed| text(signed.signer())).collect();
            for recovered in [recover_signers(some), addresses(vec![None; count], some)] {
                assert_eq!(recovered.into_iter().map(text).collect::<Vec<_>>(), expected);
            }
            assert_eq!(
                expected.iter().filter(|one| one.is_err()).count(),
                [3, 11, 20].iter().filter(|at| **at < count).count()
            );
        }
    }
}
