//! The RLPx MAC of one direction: a Keccak state that is never reset.

use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use alloy_primitives::Keccak256;

pub type Tag = [u8; 16];

#[derive(Clone)]
pub struct RunningMac {
    state: Keccak256,
    key: Aes256,
}

impl RunningMac {
    pub fn new(secret: &[u8; 32], seed: &[u8; 32], message: &[u8]) -> Self {
        let mut state = Keccak256::new();
        let mut mixed = *secret;
        mixed.iter_mut().zip(seed).for_each(|(byte, other)| *byte ^= other);
        state.update(mixed);
        state.update(message);
        RunningMac { state, key: Aes256::new(&(*secret).into()) }
    }

    /// Adds an encrypted header to the state and returns the tag of the header.
    pub fn header(&mut self, header: &Tag) -> Tag {
        let digest = self.digest();
        self.mix(digest, header)
    }

    /// Adds a part of an encrypted body to the state.
    pub fn update(&mut self, body: &[u8]) {
        self.state.update(body);
    }

    /// Returns the tag of the body that was added with `update`.
    pub fn body(&mut self) -> Tag {
        let digest = self.digest();
        self.mix(digest, &digest)
    }

    fn mix(&mut self, digest: Tag, other: &Tag) -> Tag {
        let mut seed = digest.into();
        self.key.encrypt_block(&mut seed);
        seed.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
        self.state.update(seed);
        self.digest()
    }

    fn digest(&self) -> Tag {
        let mut tag = [0; 16];
        tag.copy_from_slice(&self.whole_digest()[..16]);
        tag
    }

    pub(crate) fn whole_digest(&self) -> [u8; 32] {
        self.state.clone().finalize().0
    }
}
