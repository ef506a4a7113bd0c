//! Encrypts a private key with a password: argon2id derives the key for XSalsa20-Poly1305.

use argon2::{Algorithm, Argon2, Params, Version};
use crypto_secretbox::aead::Aead;
use crypto_secretbox::{KeyInit, XSalsa20Poly1305};
use ophion_primitives::errors::{Error, Result};
use zeroize::Zeroizing;

use crate::sealed_payload::{Key, NONCE};

/// Cost parameters of argon2id.
#[derive(Clone, Copy)]
pub struct Costs {
    pub memory_kib: u32,
    pub iterations: u32,
    pub lanes: u32,
}

/// Upper limits of the argon2id cost parameters, which come from an untrusted key file.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_ITERATIONS: u32 = 64;
const MAX_LANES: u32 = 64;

fn cipher(password: &[u8], salt: &[u8], costs: Costs) -> Result<XSalsa20Poly1305> {
    let Costs { memory_kib, iterations, lanes } = costs;
    if memory_kib > MAX_MEMORY_KIB || iterations > MAX_ITERATIONS || lanes > MAX_LANES {
        return Err(Error::Decode("key file: its argon2 options ask for too much".into()));
    }
    let bad = |cause: argon2::Error| Error::Decode(format!("key file: argon2: {cause}"));
    let params = Params::new(memory_kib, iterations, lanes, Some(32)).map_err(bad)?;
    let mut derived = Zeroizing::new([0; 32]);
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    hasher.hash_password_into(password, salt, derived.as_mut_slice()).map_err(bad)?;
    Ok(XSalsa20Poly1305::new((&*derived).into()))
}

pub fn lock(secret: &Key, password: &[u8], salt: &[u8], nonce: &[u8; NONCE], costs: Costs) -> Result<Vec<u8>> {
    let locked = cipher(password, salt, costs)?.encrypt(nonce.into(), secret.as_slice());
    locked.map_err(|_| Error::Refused("key file: it cannot be locked".into()))
}

/// Decrypt a private key. Returns None when the password is wrong or the file was changed.
pub fn unlock(locked: &[u8], password: &[u8], salt: &[u8], nonce: &[u8; NONCE], costs: Costs) -> Result<Option<Key>> {
    let opened = cipher(password, salt, costs)?.decrypt(nonce.into(), locked).ok().map(Zeroizing::new);
    Ok(opened.and_then(|secret| secret.as_slice().try_into().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Costs = Costs { memory_kib: 64, iterations: 1, lanes: 1 };

    #[test]
    fn the_right_password_opens() {
        let locked = lock(&[3; 32], b"right", b"sixteen bytes...", &[1; NONCE], QUICK).unwrap();
        let with = |password: &[u8]| unlock(&locked, password, b"sixteen bytes...", &[1; NONCE], QUICK).unwrap();
        assert_eq!(with(b"right"), Some([3; 32]));
        assert_eq!(with(b"wrong"), None);
    }

    #[test]
    fn a_file_does_not_choose_how_much_memory_we_use() {
        let costs = Costs { memory_kib: u32::MAX, ..QUICK };
        assert!(unlock(&[0; 48], b"", b"sixteen bytes...", &[1; NONCE], costs).is_err());
    }
}
