//! The private keys of one enclave: seals and opens payloads (privacy.md 5.2).
//!
//! A payload is encrypted with a random key (XSalsa20-Poly1305). NaCl's box seals that key for each participant with
//! the sender's key, so a participant knows the sender.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crypto_box::aead::Aead;
use crypto_box::{PublicKey, SalsaBox, SecretKey};
use crypto_secretbox::{KeyInit, XSalsa20Poly1305};
use ophion_primitives::errors::{Error, Result};
use zeroize::Zeroizing;

use crate::public_keys::is_sound;
use crate::sealed_payload::{Key, MAX_BOXES, NONCE, Sealed, SealedBox};

/// Number of random bytes for sealing: the payload's key and both nonces.
pub const RANDOMNESS: usize = 32 + NONCE + NONCE;
/// Maximum number of cached shared secrets (one per pair of keys). Computing a secret takes a hundred times as long as
/// the rest of sealing.
const SHARED_KEPT: usize = 4096;

pub struct Keyring {
    own: Vec<(Key, SecretKey)>,
    shared: RwLock<HashMap<(Key, Key), Arc<SalsaBox>>>,
}

/// Return the public key of a private key.
pub fn public_of(secret: &Key) -> Key {
    SecretKey::from_bytes(*secret).public_key().to_bytes()
}

impl Keyring {
    pub fn new(secrets: &[Key]) -> Self {
        let own = secrets.iter().map(|secret| (public_of(secret), SecretKey::from_bytes(*secret))).collect();
        Keyring { own, shared: RwLock::default() }
    }

    pub fn public_keys(&self) -> Vec<Key> {
        self.own.iter().map(|(public, _)| *public).collect()
    }

    fn secret(&self, public: &Key) -> Option<&SecretKey> {
        self.own.iter().find(|(known, _)| known == public).map(|(_, secret)| secret)
    }

    /// Return the cipher between one of our keys and another public key; None if `own` is not our key or a key is
    /// invalid.
    fn between(&self, own: &Key, other: &Key) -> Option<Arc<SalsaBox>> {
        let place = (*own, *other);
        if let Some(known) = self.shared.read().unwrap_or_else(PoisonError::into_inner).get(&place) {
            return Some(known.clone());
        }
        if !is_sound(other) {
            return None;
        }
        let made = Arc::new(SalsaBox::new(&PublicKey::from_bytes(*other), self.secret(own)?));
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        if shared.len() >= SHARED_KEPT {
            shared.clear();
        }
        shared.insert(place, made.clone());
        Some(made)
    }

    /// Seal a payload with one of our keys as the sender. Returns the payload's key and its sealed record.
    pub fn seal(
        &self,
        payload: &[u8],
        sender: &Key,
        recipients: &[Key],
        members: usize,
        group: &Key,
        randomness: &[u8; RANDOMNESS],
    ) -> Result<(Key, Vec<u8>)> {
        if recipients.is_empty() || recipients.len() > MAX_BOXES || members > recipients.len() {
            return Err(Error::Refused(format!("{} recipients", recipients.len())));
        }
        let (fresh, nonces) = randomness.split_first_chunk::<32>().expect("it is longer");
        let (nonce, box_nonce) = nonces.split_first_chunk::<NONCE>().expect("it is longer");
        let box_nonce: &[u8; NONCE] = box_nonce.try_into().expect("what is left");
        let cipher = XSalsa20Poly1305::new(fresh.into());
        let ciphertext =
            cipher.encrypt(nonce.into(), payload).map_err(|_| Error::Refused("encryption failed".into()))?;
        let mut boxes = Vec::with_capacity(recipients.len());
        for recipient in recipients {
            let between = self.between(sender, recipient).ok_or_else(|| Error::Refused("a key is not sound".into()))?;
            let sealed = between.encrypt(box_nonce.into(), fresh.as_slice());
            let sealed = sealed.ok().and_then(|sealed| sealed.try_into().ok());
            let sealed = sealed.ok_or_else(|| Error::Refused("sealing failed".into()))?;
            boxes.push(SealedBox { recipient: *recipient, sealed });
        }
        let sealed = Sealed {
            sender: *sender,
            box_nonce: *box_nonce,
            nonce: *nonce,
            group: *group,
            members,
            boxes,
            ciphertext: &ciphertext,
        };
        Ok((sealed.key(), sealed.encode()))
    }

    /// Decrypt a sealed record with the first of our keys that opens it; None if no own key opens it.
    pub fn open(&self, sealed: &Sealed<'_>) -> Option<Zeroizing<Vec<u8>>> {
        sealed.boxes.iter().find_map(|one| {
            self.secret(&one.recipient)?;
            let between = self.between(&one.recipient, &sealed.sender)?;
            let fresh = Zeroizing::new(between.decrypt((&sealed.box_nonce).into(), one.sealed.as_slice()).ok()?);
            let fresh: &Key = fresh.as_slice().try_into().ok()?;
            let cipher = XSalsa20Poly1305::new(fresh.into());
            cipher.decrypt((&sealed.nonce).into(), sealed.ciphertext).ok().map(Zeroizing::new)
        })
    }

    /// Encrypt a short text in a NaCl box, from one of our keys for another key; None if a key is not usable
    /// (`between`).
    pub fn box_for(&self, own: &Key, other: &Key, nonce: &[u8; NONCE], text: &[u8]) -> Option<Vec<u8>> {
        self.between(own, other)?.encrypt(nonce.into(), text).ok()
    }

    pub fn unbox(&self, own: &Key, other: &Key, nonce: &[u8; NONCE], boxed: &[u8]) -> Option<Vec<u8>> {
        self.between(own, other)?.decrypt(nonce.into(), boxed).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: [u8; RANDOMNESS] = [5; RANDOMNESS];

    fn pair(seed: u8) -> (Keyring, Key) {
        let ring = Keyring::new(&[[seed; 32]]);
        let public = ring.public_keys()[0];
        (ring, public)
    }

    #[test]
    fn participants_open_a_payload_and_nobody_else_does() {
        let ((a, ka), (b, kb), (c, _)) = (pair(1), pair(2), pair(3));
        let (key, record) = a.seal(b"what it says", &ka, &[kb, ka], 2, &[7; 32], &DRAWN).unwrap();
        let sealed = Sealed::decode(&record).unwrap();
        assert_eq!(key, sealed.key());
        assert_eq!(a.open(&sealed).unwrap().as_slice(), b"what it says");
        assert_eq!(b.open(&sealed).unwrap().as_slice(), b"what it says");
        assert!(c.open(&sealed).is_none());
    }

    #[test]
    fn nobody_speaks_for_another_sender() {
        let ((a, ka), (b, kb), (_, kc)) = (pair(1), pair(2), pair(3));
        let (_, record) = a.seal(b"what it says", &ka, &[kb, ka], 2, &[7; 32], &DRAWN).unwrap();
        let mut sealed = Sealed::decode(&record).unwrap();
        sealed.sender = kc;
        assert!(b.open(&sealed).is_none());
        assert!(a.seal(b"", &kb, &[ka], 1, &[7; 32], &DRAWN).is_err());
    }

    #[test]
    fn whatever_is_changed_does_not_open() {
        let ((a, ka), (b, kb)) = (pair(1), pair(2));
        let (_, record) = a.seal(b"what it says", &ka, &[kb], 1, &[7; 32], &DRAWN).unwrap();
        let whole = Sealed::decode(&record).unwrap();
        let mut ciphertext = whole.ciphertext.to_vec();
        ciphertext[3] ^= 1;
        let changes = [
            Sealed { ciphertext: &ciphertext, ..whole.clone() },
            Sealed { nonce: [6; NONCE], ..whole.clone() },
            Sealed { box_nonce: [6; NONCE], ..whole.clone() },
        ];
        assert!(changes.iter().all(|changed| b.open(changed).is_none()));
        assert!(b.open(&whole).is_some());
    }

    #[test]
    fn nothing_is_sealed_for_a_point_of_low_order() {
        let (a, ka) = pair(1);
        for low in [[0; 32], std::array::from_fn(|at| u8::from(at == 0))] {
            assert!(a.seal(b"", &ka, &[low], 1, &[7; 32], &DRAWN).is_err());
            assert!(a.box_for(&ka, &low, &[0; NONCE], b"").is_none());
        }
    }

    #[test]
    fn payloads_of_enclaves_with_a_zero_nonce_are_opened() {
        let ((a, ka), (b, kb)) = (pair(1), pair(2));
        let mut drawn = DRAWN;
        drawn[32..32 + NONCE].fill(0);
        let (_, record) = a.seal(b"older", &ka, &[kb], 1, &[7; 32], &drawn).unwrap();
        assert_eq!(b.open(&Sealed::decode(&record).unwrap()).unwrap().as_slice(), b"older");
    }
}
