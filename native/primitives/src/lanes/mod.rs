//! Signers of eight signatures at a time, by the vector instructions of processors with AVX-512.
//!
//! One signature takes as long as eight here, and eight less than twice (`ifma`) or three times (`doubles`) as long as one
//! by libsecp256k1. Nothing about a signature is secret, so nothing here hides how long it takes. Whatever is out of the
//! ordinary (a number out of range, an x that no point has, a sum that meets an exception of the group law) is left to
//! libsecp256k1, which also says what is wrong; so is every result that does not lie on the curve. Where the processor
//! lacks the instructions, libsecp256k1 does everything.
//!
//! Two ways to multiply, and all the rest in files that are compiled for each of them.

#![allow(clippy::duplicate_mod, reason = "once for each way to multiply")]

mod doubles;
mod ifma;
mod limbs;
mod scalar;

use alloy_primitives::U256;

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

/// Uncompressed public keys; None where libsecp256k1 has to be asked, everywhere where `are_there` says no.
pub fn recover(signatures: &[Signature]) -> Vec<Option<[u8; 64]>> {
    if ifma::are_there() {
        ifma::recover(signatures, ifma::FEWEST)
    } else if doubles::are_there() {
        doubles::recover(signatures, doubles::FEWEST)
    } else {
        vec![None; signatures.len()]
    }
}
