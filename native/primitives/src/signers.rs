//! Who made many signatures: several at a time where the processor can, one after the other where it cannot.

use alloy_primitives::Address;
#[cfg(target_arch = "x86_64")]
use alloy_primitives::U256;

use crate::errors::Result;
use crate::keys::Signed;

/// So many signatures are one task where the work is spread over the cores: few enough to share, enough for
/// `recover_signers` to gain something.
pub const TASK: usize = 16;

/// How many signers are worked out together: eight take two or three times as long as one alone.
pub fn recovered_at_once() -> usize {
    #[cfg(target_arch = "x86_64")]
    if crate::secp256k1_simd::are_there() {
        return crate::secp256k1_simd::LANES;
    }
    1
}

/// The addresses behind many signatures, in their order; several at a time where the processor can.
pub fn recover_signers(signatures: &[Signed]) -> Vec<Result<Address>> {
    #[cfg(target_arch = "x86_64")]
    if signatures.len() > 1 {
        let numbers = |signed: &Signed| crate::secp256k1_simd::Signature {
            digest: U256::from_be_bytes(signed.digest.0),
            r: U256::from_be_slice(&signed.r_s[..32]),
            s: U256::from_be_slice(&signed.r_s[32..]),
            parity: signed.parity,
        };
        let keys = crate::secp256k1_simd::recover(&signatures.iter().map(numbers).collect::<Vec<_>>()).into_iter();
        let address = |(key, signed): (Option<[u8; 64]>, &Signed)| match key {
            Some(key) => Ok(Address::from_raw_public_key(&key)),
            None => signed.signer(),
        };
        return keys.zip(signatures).map(address).collect();
    }
    signatures.iter().map(Signed::signer).collect()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;
    use crate::keys::{secret_key, sign, split_signature};

    #[test]
    fn many_signers_are_those_of_one_after_the_other() {
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
            assert_eq!(recover_signers(some).into_iter().map(text).collect::<Vec<_>>(), expected);
            assert_eq!(
                expected.iter().filter(|one| one.is_err()).count(),
                [3, 11, 20].iter().filter(|at| **at < count).count()
            );
        }
    }
}
