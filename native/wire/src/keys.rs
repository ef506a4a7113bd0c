//! secp256k1 for RLPx: public keys without prefix byte, and unhashed ECDH secrets.

use alloy_primitives::keccak256;
use ophion_primitives::keys;
pub use ophion_primitives::keys::{sign, uncompressed as id_of};
use secp256k1::ecdsa::RecoveryId;
use secp256k1::{PublicKey, SECP256K1, SecretKey, ecdh};

use crate::{Error, Result};

/// A public key: 64 bytes, x and y.
pub type NodeId = [u8; 64];

pub fn fixed<const N: usize>(place: &str, bytes: &[u8]) -> Result<[u8; N]> {
    Ok(keys::fixed(place, bytes)?)
}

pub fn secret(bytes: &[u8]) -> Result<SecretKey> {
    Ok(keys::secret_key(bytes)?)
}

/// Derive a secret key from random bytes, by hashing the bytes until they are a valid key.
pub fn secret_from_entropy(mut bytes: [u8; 32]) -> SecretKey {
    loop {
        match SecretKey::from_byte_array(bytes) {
            Ok(key) => return key,
            Err(_) => bytes = keccak256(bytes).0,
        }
    }
}

pub fn public(place: &str, id: &[u8]) -> Result<PublicKey> {
    let id: NodeId = fixed(place, id)?;
    let mut whole = [4; 65];
    whole[1..].copy_from_slice(&id);
    PublicKey::from_byte_array_uncompressed(whole).map_err(|_| Error::at(place, "not a point of the curve"))
}

pub fn public_of(secret: &SecretKey) -> PublicKey {
    PublicKey::from_secret_key(SECP256K1, secret)
}

/// Return the unhashed x coordinate of the ECDH point.
pub fn agree(secret: &SecretKey, public: &PublicKey) -> [u8; 32] {
    let mut x = [0; 32];
    x.copy_from_slice(&ecdh::shared_secret_point(public, secret)[..32]);
    x
}

/// Recovers the signer of a signature of 65 bytes: r, s, and v from 0 to 3.
pub fn recover(place: &str, digest: [u8; 32], signature: &[u8]) -> Result<PublicKey> {
    let signature: [u8; 65] = fixed(place, signature)?;
    let (r_s, v) = (signature.first_chunk().expect("64 of 65 bytes"), signature[64]);
    let id =
        RecoveryId::try_from(i32::from(v)).map_err(|_| Error::at(place, format!("v must be at most 3, got {v}")))?;
    Ok(keys::recover(place, digest, r_s, id)?)
}
