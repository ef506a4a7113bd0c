//! Recovers the signers of many signatures.
//!
//! The fast path, `ophion-secp256k1-simd` (feature `simd`), recovers eight signatures at a time. The slow path,
//! libsecp256k1, recovers one at a time. The test below compares both; the crate compares each of its multipliers with
//! libsecp256k1. If the caller expects certain signers, a second fast path only checks them (`recover_with_hints`).

use alloy_primitives::Address;

use crate::errors::Result;
use crate::keys::Signed;

/// Number of signatures per parallel task: two SIMD groups.
pub const TASK: usize = 16;

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod simd {
    use std::sync::Arc;

    use alloy_primitives::{Address, U256};
    use ophion_secp256k1_simd::{KeyTable, LANES, Signature, is_supported, verify};

    use crate::keys::Signed;
    use crate::signer_keys::signer_keys;

    /// Time to check a group of eight signatures, in percent of the time to recover a group.
    const CHECK_PERCENT: usize = 50;

    pub fn recovered_at_once() -> usize {
        if is_supported() { LANES } else { 1 }
    }

    fn numbers(signed: &Signed) -> Signature {
        Signature {
            digest: U256::from_be_bytes(signed.digest.0),
            r: U256::from_be_slice(&signed.r_s[..32]),
            s: U256::from_be_slice(&signed.r_s[32..]),
            parity: signed.parity,
        }
    }

    pub fn recover(signatures: &[Signed]) -> Vec<Option<[u8; 64]>> {
        ophion_secp256k1_simd::recover(&signatures.iter().map(numbers).collect::<Vec<_>>())
    }

    /// Return true for each signature whose signer is certainly the expected one. False means unchecked or undecided.
    pub fn check(signatures: &[Signed], expected: &[Option<Address>]) -> Vec<bool> {
        let mut checked = vec![false; signatures.len()];
        let tables: Vec<(usize, Arc<KeyTable>)> = {
            let mut keys = signer_keys();
            let table = |(at, hint): (usize, &Option<Address>)| Some((at, keys.table(hint.as_ref()?)?));
            expected.iter().enumerate().filter_map(table).collect()
        };
        let count = worth_checking(tables.len(), signatures.len());
        let signed: Vec<Signature> = tables[..count].iter().map(|(at, _)| numbers(&signatures[*at])).collect();
        let pairs: Vec<(&Signature, &KeyTable)> =
            signed.iter().zip(&tables).map(|(signature, (_, table))| (signature, &**table)).collect();
        for ((at, _), is_right) in tables.iter().zip(verify(&pairs)) {
            checked[*at] = is_right;
        }
        checked
    }

    /// Of `all` signatures, `known` have a table. Return how many of these to check instead of recovering them, so that
    /// checks and recoveries take the least time together. A partly filled group takes as long as a full group.
    pub fn worth_checking(known: usize, all: usize) -> usize {
        let cost = |count: &usize| CHECK_PERCENT * count.div_ceil(LANES) + 100 * (all - count).div_ceil(LANES);
        [known, known / LANES * LANES, 0].into_iter().min_by_key(cost).unwrap_or(0)
    }

    /// Record that a signature was made by its expected signer, who has this address and public key. After some such
    /// signatures, the key gets a table.
    pub fn note(address: &Address, key: &[u8; 64]) {
        let needs_table = signer_keys().needs_table(address);
        if needs_table && let Some(table) = KeyTable::of(key) {
            signer_keys().add(*address, table);
        }
    }
}

#[cfg(not(all(feature = "simd", target_arch = "x86_64")))]
mod simd {
    use alloy_primitives::Address;

    use crate::keys::Signed;

    pub fn recovered_at_once() -> usize {
        1
    }

    pub fn recover(signatures: &[Signed]) -> Vec<Option<[u8; 64]>> {
        vec![None; signatures.len()]
    }

    pub fn check(signatures: &[Signed], _expected: &[Option<Address>]) -> Vec<bool> {
        vec![false; signatures.len()]
    }

    pub fn note(_address: &Address, _key: &[u8; 64]) {}
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

/// Recover the addresses of many signers, in order. `expected` has the address that each signer probably has. Checking
/// a right hint takes less time than recovery; a wrong hint costs time and changes no result. The slow path is
/// `recover_signers`; the test below compares both.
pub fn recover_with_hints(signatures: &[Signed], expected: &[Option<Address>]) -> Vec<Result<Address>> {
    if signatures.len() < 2 || expected.iter().all(Option::is_none) {
        return recover_signers(signatures);
    }
    let checked = simd::check(signatures, expected);
    let others: Vec<usize> = (0..signatures.len()).filter(|at| !checked[*at]).collect();
    let unchecked: Vec<Signed> = others.iter().map(|at| signatures[*at]).collect();
    let keys = if others.len() > 1 { simd::recover(&unchecked) } else { vec![None; others.len()] };
    for (at, key) in others.iter().zip(&keys) {
        if let (Some(key), Some(hint)) = (key, &expected[*at])
            && Address::from_raw_public_key(key) == *hint
        {
            simd::note(hint, key);
        }
    }
    let mut recovered = addresses(keys, &unchecked).into_iter();
    let signer = |(is_right, hint): (bool, &Option<Address>)| match hint {
        Some(address) if is_right => Ok(*address),
        _ => recovered.next().expect("one for each that was not checked"),
    };
    checked.into_iter().zip(expected).map(signer).collect()
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
    #[test]
    fn hints_change_no_result() {
        let signatures: Vec<Signed> = (0..400u64)
            .map(|number| {
                let secret = keccak256((number % 7).to_be_bytes());
                let digest = keccak256(number.to_be_bytes());
                let signature = sign(&secret_key(secret.as_slice()).unwrap(), digest.0);
                let (r_s, parity) = split_signature(&signature).unwrap();
                Signed { digest, r_s, parity: parity ^ (number % 50 == 49) }
            })
            .collect();
        let text = |result: Result<Address>| result.map_err(|cause| cause.to_string());
        let expected: Vec<_> = signatures.iter().map(|signed| text(signed.signer())).collect();
        let right: Vec<Option<Address>> = expected.iter().map(|one| one.clone().ok()).collect();
        // each signer is wrong every fifth time, and missing every ninth time
        let mixed: Vec<Option<Address>> = (0..400)
            .map(|at| if at % 9 == 0 { None } else { right[if at % 5 == 0 { (at + 1) % 400 } else { at }] })
            .collect();
        for hints in [vec![None; 400], right, mixed] {
            for size in [1, 2, 3, 8, 16, 17, 400] {
                let found: Vec<_> = signatures
                    .chunks(size)
                    .zip(hints.chunks(size))
                    .flat_map(|(some, hints)| recover_with_hints(some, hints))
                    .map(text)
                    .collect();
                assert_eq!(found, expected);
            }
        }
    }

    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    #[test]
    fn signers_are_checked_where_that_takes_less_time() {
        let counts: Vec<usize> = [(0, 16), (8, 16), (9, 16), (16, 16), (5, 5), (2, 16), (13, 16)]
            .map(|(known, all)| simd::worth_checking(known, all))
            .to_vec();
        assert_eq!(counts, [0, 8, 8, 16, 5, 0, 8]);
    }
}
