//! Signers of eight signatures at a time, by the vector multiplier of newer processors (AVX-512 IFMA).
//!
//! One signature takes as long as eight here, and eight less than twice as long as one by libsecp256k1. Nothing
//! about a signature is secret, so nothing here hides how long it takes. Whatever is out of the ordinary (a number
//! out of range, an x that no point has, a sum that meets an exception of the group law) is left to libsecp256k1,
//! which also says what is wrong; so is every result that does not lie on the curve. Where the processor lacks the
//! instructions, libsecp256k1 does everything.

mod field;
mod point;
mod recover;
mod scalar;

pub use field::{LANES, are_there};
pub use recover::{Signature, recover};
