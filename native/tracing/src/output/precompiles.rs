//! What a precompiled contract has against its input, in the words of the call tracer.

use alloy_primitives::{Address, U256, uint};
use revm::precompile::{PrecompileHalt, PrecompileSpecId, PrecompileStatus, Precompiles};
use revm::primitives::hardfork::SpecId;

/// Of the field in which points of the pairing curve have their coordinates.
const MODULUS: U256 = uint!(21888242871839275222246405745257275088696311157297823662689037894645226208583_U256);
/// Of the curve on which blobs are committed to.
const ORDER: U256 = uint!(52435875175126190479447740508185965837690552500527637822603658699938581184513_U256);

/// Why a precompiled contract failed. The EVM keeps no more than that it did, so the contract is asked again.
pub fn precompile_words(spec: SpecId, contract: &Address, input: &[u8]) -> &'static str {
    use PrecompileHalt as H;
    let contracts = Precompiles::new(PrecompileSpecId::from_spec_id(spec));
    let outcome = contracts.get(contract).and_then(|found| found.execute(input, u64::MAX, 0).ok());
    let Some(PrecompileStatus::Halt(halt)) = outcome.map(|outcome| outcome.status) else {
        return "precompile failed";
    };
    match halt {
        H::Blake2WrongFinalIndicatorFlag => "invalid final flag",
        H::ModexpEip7823LimitSize => "one or more of base/exponent/modulus length exceeded 1024 bytes",
        H::Bn254FieldPointNotAMember => coordinate_words(input),
        H::Bn254AffineGFailedToCreate => "bn256: malformed point",
        H::Bn254PairLength => "bad elliptic curve pairing size",
        H::BlobMismatchedVersion => "mismatched versioned hash",
        H::BlobVerifyKzgProofFailed => proof_words(input),
        H::NonCanonicalFp => "invalid fp.Element encoding",
        H::Bls12381G1NotOnCurve | H::Bls12381G2NotOnCurve => "invalid point: not on curve",
        H::Bls12381G1NotInSubgroup => "g1 point is not on correct subgroup",
        H::Bls12381G2NotInSubgroup => "g2 point is not on correct subgroup",
        H::Bls12381FpPaddingInvalid => "invalid field element top bytes",
        H::Blake2WrongLength
        | H::BlobInvalidInputLength
        | H::Bls12381G1AddInputLength
        | H::Bls12381G1MsmInputLength
        | H::Bls12381G2AddInputLength
        | H::Bls12381G2MsmInputLength
        | H::Bls12381PairingInputLength
        | H::Bls12381MapFpToG1InputLength
        | H::Bls12381MapFp2ToG2InputLength => "invalid input length",
        _ => "precompile failed",
    }
}

/// The first number that is too large decides; scalars stand behind the point that they belong to.
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

/// Point and claim of a proof must be below the order of the curve; beyond that it is taken for a proof that is wrong.
fn proof_words(input: &[u8]) -> &'static str {
    let mut scalars = input.chunks_exact(32).skip(1).take(2).map(U256::from_be_slice);
    if scalars.any(|scalar| scalar >= ORDER) {
        "error verifying kzg proof: scalar is not canonical when interpreted as a big integer in big-endian"
    } else {
        "error verifying kzg proof: can't verify opening proof"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(contract: u8, input: &[u8]) -> &'static str {
        precompile_words(SpecId::OSAKA, &Address::with_last_byte(contract), input)
    }

    #[test]
    fn inputs_of_a_wrong_length_are_named() {
        assert_eq!(words(8, &[0; 5]), "bad elliptic curve pairing size");
        for contract in [9, 10, 11, 12, 15, 16] {
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
