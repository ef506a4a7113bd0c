//! Multiples of a public key, for verifying many signatures of one signer.

use alloy_primitives::U256;
use secp256k1::{PublicKey, SECP256K1, SecretKey};

use crate::FAST_PATH;
use crate::limbs::limbs_of;

/// Number of bits per digit of a factor of the key.
pub const WINDOW: usize = 5;
/// Number of entries per row: 1 to 16 times a point.
pub const ENTRIES: usize = 1 << (WINDOW - 1);
/// Number of rows. Row number n has multiples of 2^(n * ROW_BITS) times the key.
pub const ROWS: usize = 7;
/// Number of digits that share a row.
pub const ROW_DIGITS: usize = 4;
pub const ROW_BITS: usize = WINDOW * ROW_DIGITS;

/// An entry of a table: the limbs of x, then the limbs of y.
pub type Entry = [u64; 10];
/// The entries of the first row, then those of the next row.
pub type Entries = [Entry; ROWS * ENTRIES];

/// Multiples of a public key, 9 KB. Building a table takes as long as recovering about six signatures.
pub struct KeyTable(Box<Entries>);

impl KeyTable {
    /// Compute the multiples of an uncompressed public key. Returns None for bytes that are not a public key, and if no
    /// SIMD path is supported.
    pub fn of(key: &[u8; 64]) -> Option<Self> {
        Self::with(FAST_PATH.as_ref()?.multiples, key)
    }

    pub(crate) fn with(multiples: fn(&[U256; 2]) -> Option<Box<Entries>>, key: &[u8; 64]) -> Option<Self> {
        let mut bytes = [4; 65];
        bytes[1..].copy_from_slice(key);
        multiples(&coordinates(&PublicKey::from_slice(&bytes).ok()?)).map(KeyTable)
    }

    /// Return the address of the first entry.
    pub(crate) fn start(&self) -> *const u64 {
        self.0.as_ptr().cast()
    }
}

/// Fill `entries` with 1, 2, 3… times `base`.
pub(crate) fn fill(entries: &mut [Entry], base: &PublicKey) {
    let mut sum = *base;
    for entry in entries {
        let [x, y] = coordinates(&sum);
        entry[..5].copy_from_slice(&limbs_of(x.as_limbs()));
        entry[5..].copy_from_slice(&limbs_of(y.as_limbs()));
        sum = sum.combine(base).expect("far from infinity");
    }
}

/// Return `factor` times the generator. The factor is below the order and not zero.
pub(crate) fn times_generator(factor: U256) -> PublicKey {
    let secret = SecretKey::from_byte_array(factor.to_be_bytes()).expect("below the order");
    PublicKey::from_secret_key(SECP256K1, &secret)
}

pub(crate) fn coordinates(key: &PublicKey) -> [U256; 2] {
    let bytes = key.serialize_uncompressed();
    [U256::from_be_slice(&bytes[1..33]), U256::from_be_slice(&bytes[33..])]
}
