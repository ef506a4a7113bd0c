//! secp256k1 keys, signatures and signer recovery.

use alloy_primitives::{Address, B256};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SECP256K1, SecretKey};

use crate::errors::{Error, Result};

/// Recover the uncompressed public key (64 bytes) of a signature over `digest`.
pub fn recover_key(digest: &B256, r_s: &[u8; 64], parity: bool) -> Result<[u8; 64]> {
    let id = if parity { RecoveryId::One } else { RecoveryId::Zero };
    Ok(uncompressed(&recover("signature", digest.0, r_s, id)?))
}

/// Recover the public key of a signature. `place` names the signature in error messages.
pub fn recover(place: &str, digest: [u8; 32], r_s: &[u8; 64], id: RecoveryId) -> Result<PublicKey> {
    let out_of_range = || Error::decode(place, "r or s is out of range");
    if r_s[..32] == [0; 32] || r_s[32..] == [0; 32] {
        return Err(out_of_range());
    }
    let signature = RecoverableSignature::from_compact(r_s, id).map_err(|_| out_of_range())?;
    SECP256K1
        .recover_ecdsa(Message::from_digest(digest), &signature)
        .map_err(|_| Error::decode(place, "no public key fits it"))
}

/// Recover the address of a signer.
pub fn recover_signer(digest: &B256, r_s: &[u8; 64], parity: bool) -> Result<Address> {
    Ok(Address::from_raw_public_key(&recover_key(digest, r_s, parity)?))
}

/// A signature and the digest it signs.
#[derive(Clone, Copy)]
pub struct Signed {
    pub digest: B256,
    pub r_s: [u8; 64],
    pub parity: bool,
}

impl Signed {
    pub fn signer(&self) -> Result<Address> {
        recover_signer(&self.digest, &self.r_s, self.parity)
    }
}

/// Parse a private key of 32 bytes.
pub fn secret_key(secret: &[u8]) -> Result<SecretKey> {
    let bytes = fixed("private key", secret)?;
    SecretKey::from_byte_array(bytes).map_err(|_| Error::decode("private key", "not a number of the curve's order"))
}

/// Convert bytes to an array of fixed length. Fails if the length differs.
pub fn fixed<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Error::decode(what, format_args!("{N} bytes expected, got {}", bytes.len())))
}

/// Split a 65-byte signature into r, s and parity.
pub fn split_signature(signature: &[u8]) -> Result<([u8; 64], bool)> {
    let bytes: [u8; 65] = fixed("signature", signature)?;
    let parity = match bytes[64] {
        0 => false,
        1 => true,
        v => return Err(Error::Decode(format!("signature: v must be 0 or 1, got {v}"))),
    };
    Ok((bytes[..64].try_into().expect("64 of 65 bytes"), parity))
}

/// Return the uncompressed public key (64 bytes) of a private key.
pub fn public_key(secret: &SecretKey) -> [u8; 64] {
    uncompressed(&PublicKey::from_secret_key(SECP256K1, secret))
}

/// Sign a digest. Returns r, s and parity.
pub fn sign(secret: &SecretKey, digest: [u8; 32]) -> [u8; 65] {
    let (id, compact) = SECP256K1.sign_ecdsa_recoverable(Message::from_digest(digest), secret).serialize_compact();
    let mut out = [0u8; 65];
    out[..64].copy_from_slice(&compact);
    out[64] = i32::from(id) as u8;
    out
}

/// Return a public key without its prefix byte: x and y.
pub fn uncompressed(key: &PublicKey) -> [u8; 64] {
    key.serialize_uncompressed()[1..].try_into().expect("an uncompressed key has 65 bytes")
}
