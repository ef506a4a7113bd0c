//! Errors of precompiled contracts in the wording of the call tracer.

use alloy_primitives::{Address, U256, uint};
use revm::precompile::{PrecompileHalt, PrecompileSpecId, PrecompileStatus, Precompiles};
use revm::primitives::hardfork::SpecId;

use crate::output::bls12_381_errors::{curve_words, proof_words};

/// Modulus of the coordinate field of BN254.
const MODULUS: U256 = uint!(21888242871839275222246405745257275088696311157297823662689037894645226208583_U256);

/// Return the reason why a precompiled contract failed. The EVM does not store the reason, so the contract runs again.
pub fn precompile_words(spec: SpecId, contract: &Address, input: &[u8]) -> String {
    use PrecompileHalt as H;
    let contracts = Precompiles::new(PrecompileSpecId::from_spec_id(spec));
    let words = match halt_of(contracts, contract, input) {
        Some(H::Blake2WrongLength | H::BlobInvalidInputLength) => "invalid input length",
        Some(H::Blake2WrongFinalIndicatorFlag) => "invalid final flag",
        Some(H::ModexpEip7823LimitSize) => "one or more of base/exponent/modulus length exceeded 1024 bytes",
        Some(H::Bn254FieldPointNotAMember) => coordinate_words(input),
        Some(H::Bn254AffineGFailedToCreate) => "bn256: malformed point",
        Some(H::Bn254PairLength) => "bad elliptic curve pairing size",
        Some(H::BlobMismatchedVersion) => "mismatched versioned hash",
        Some(H::BlobVerifyKzgProofFailed) => return format!("error verifying kzg proof: {}", proof_words(input)),
        // revm checks the points of BLS12-381 input in another order than geth, so find the first invalid point as geth
        // does
        Some(_) => curve_words(contract, input).unwrap_or("precompile failed"),
        None => "precompile failed",
    };
    words.to_owned()
}

/// Return the reason why a precompiled contract halts; None if the contract succeeds or does not exist.
pub(super) fn halt_of(contracts: &Precompiles, contract: &Address, input: &[u8]) -> Option<PrecompileHalt> {
    match contracts.get(contract)?.execute(input, u64::MAX, 0).ok()?.status {
        PrecompileStatus::Halt(halt) => Some(halt),
        _ => None,
    }
}

/// Return the reason why BN254 coordinates are invalid. The first number out of range decides. This number is a
/// coordinate: a scalar may be that large, but each scalar follows its point in the input.
fn coordinate_words(input: &[u8]) -> &'static str {
    let mut words = input.chunks(32).map(|chunk| {
        let mut word = [0; 32];
        word[..chunk.len()].copy_from_slice(chunk);
        U256::from_be_bytes(word)
    });
    match words.find(|word| *word >= MODULUS) {
        Some(MODULUS) => "bn256: coordinate equals modulus",
        _ => "bn256: coordinate exceeds modulus",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(contract: u8, input: &[u8]) -> String {
        precompile_words(SpecId::OSAKA, &Address::with_last_byte(contract), input)
    }

    #[test]
    fn inputs_of_a_wrong_length_are_named() {
        assert_eq!(words(8, &[0; 5]), "bad elliptic curve pairing size");
        for contract in [9, 10] {
            assert_eq!(words(contract, &[0; 5]), "invalid input length");
        }
    }

    #[test]
    fn points_that_are_none_are_named() {
        assert_eq!(words(6, &[1; 64]), "bn256: malformed point");
        assert_eq!(words(7, &[0xff; 96]), "bn256: coordinate exceeds modulus");
        assert_eq!(words(6, &MODULUS.to_be_bytes::<32>()), "bn256: coordinate equals modulus");
    }

    #[test]
    fn who_is_no_precompiled_contract_has_no_words() {
        assert_eq!(words(0x77, &[]), "precompile failed");
    }
}
