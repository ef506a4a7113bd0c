//! ECIES encryption to a public key: key agreement, AES-128-CTR, HMAC-SHA-256.

use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use secp256k1::{PublicKey, SecretKey};
use sha2::{Digest, Sha256};

use crate::{Error, Result, keys};

type Cipher = ctr::Ctr128BE<aes::Aes128>;

const POINT: usize = 65;
const IV: usize = 16;
const TAG: usize = 32;

/// Number of bytes that encryption adds to a message.
pub const OVERHEAD: usize = POINT + IV + TAG;

fn cipher_and_mac(shared: &[u8; 32], iv: &[u8; IV]) -> (Cipher, Hmac<Sha256>) {
    let key = Sha256::new().chain_update([0, 0, 0, 1]).chain_update(shared).finalize();
    let mut encryption = [0; 16];
    encryption.copy_from_slice(&key[..16]);
    let cipher = Cipher::new(&encryption.into(), &(*iv).into());
    // HMAC pads a key that is shorter than a hash block with zeros.
    let mut authentication = [0; 64];
    authentication[..32].copy_from_slice(&Sha256::digest(&key[16..]));
    (cipher, Hmac::new(&authentication.into()))
}

/// Encrypts a message. `ephemeral` and `iv` must be random and used only once. `data` is authenticated but not part of
/// the output.
pub fn encrypt(to: &PublicKey, ephemeral: &SecretKey, iv: [u8; IV], message: &[u8], data: &[u8]) -> Vec<u8> {
    let (mut cipher, mut mac) = cipher_and_mac(&keys::agree(ephemeral, to), &iv);
    let mut out = Vec::with_capacity(message.len() + OVERHEAD);
    out.extend_from_slice(&keys::public_of(ephemeral).serialize_uncompressed());
    out.extend_from_slice(&iv);
    out.extend_from_slice(message);
    cipher.apply_keystream(&mut out[POINT + IV..]);
    mac.update(&out[POINT..]);
    mac.update(data);
    out.extend_from_slice(&mac.finalize().into_bytes());
    out
}

pub fn decrypt(place: &str, secret: &SecretKey, message: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    if message.len() < OVERHEAD {
        return Err(Error::at(place, format!("{} bytes are too few", message.len())));
    }
    let (point, rest) = message.split_at(POINT);
    let (sealed, tag) = rest.split_at(rest.len() - TAG);
    let (iv, text) = sealed.split_at(IV);
    if point[0] != 4 {
        return Err(Error::at(place, "its key is not an uncompressed point"));
    }
    let public = keys::public(place, &point[1..])?;
    let iv = keys::fixed(place, iv)?;
    let (mut cipher, mut mac) = cipher_and_mac(&keys::agree(secret, &public), &iv);
    mac.update(sealed);
    mac.update(data);
    mac.verify_slice(tag).map_err(|_| Error::at(place, "it is not meant for this key"))?;
    let mut text = text.to_vec();
    cipher.apply_keystream(&mut text);
    Ok(text)
}
