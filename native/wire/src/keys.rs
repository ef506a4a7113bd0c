//! secp256k1 as the wire uses it: keys without their prefix byte, and the x coordinate as a shared secret.

use alloy_primitives::keccak256;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SECP256K1, SecretKey, ecdh};

use crate::{Error, Result};

/// A public key: 64 bytes, x and y.
pub type NodeId = [u8; 64];

pub fn fixed<const N: usize>(place: &str, bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Error::at(place, format!("{N} bytes expected, got {}", bytes.len())))
}

pub fn secret(bytes: &[u8]) -> Result<SecretKey> {
    let bytes = fixed("private key", bytes)?;
    SecretKey::from_byte_array(bytes).map_err(|_| Error::at("private key", "not a number of the curve's order"))
}

/// A key out of random bytes. The few values that are no key are hashed until they are one.
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

pub fn id_of(key: &PublicKey) -> NodeId {
    let mut id = [0; 64];
    id.copy_from_slice(&key.serialize_uncompressed()[1..]);
    id
}

pub fn public_of(secret: &SecretKey) -> PublicKey {
    PublicKey::from_secret_key(SECP256K1, secret)
}

/// The x coordinate of the shared point, not hashed.
pub fn agree(secret: &SecretKey, public: &PublicKey) -> [u8; 32] {
    let mut x = [0; 32];
    x.copy_from_slice(&ecdh::shared_secret_point(public, secret)[..32]);
    x
}

/// r || s || v with v from 0 to 3.
pub fn sign(secret: &SecretKey, digest: [u8; 32]) -> [u8; 65] {
    let (id, compact) = SECP256K1.sign_ecdsa_recoverable(Message::from_digest(digest), secret).serialize_compact();
    let mut out = [0; 65];
    out[..64].copy_from_slice(&compact);
    out[64] = i32::from(id) as u8;
    out
}

pub fn recover(place: &str, digest: [u8; 32], signature: &[u8]) -> Result<PublicKey> {
    let signature: [u8; 65] = fixed(place, signature)?;
    let id = RecoveryId::try_from(i32::from(signature[64]))
        .map_err(|_| Error::at(place, format!("v must be at most 3, got {}", signature[64])))?;
    let signature = RecoverableSignature::from_compact(&signature[..64], id)
        .map_err(|_| Error::at(place, "r or s is out of range"))?;
    SECP256K1
        .recover_ecdsa(Message::from_digest(digest), &signature)
        .map_err(|_| Error::at(place, "no public key fits it"))
}
