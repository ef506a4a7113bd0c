//! Format of a sealed payload in the database and between nodes.
//!
//! The fields, with their sizes in bytes: version (1), sender (32), nonce of the boxes (24), nonce of the ciphertext
//! (24), group (32), number of boxes (2), number of members (2), boxes, ciphertext. A box is a recipient (32) and the
//! sealed key (48). The first `members` recipients form the group. The other recipients get a copy of every payload.

use ophion_primitives::errors::{Error, Result};
use sha2::{Digest, Sha512_256};

pub type Key = [u8; 32];

const VERSION: u8 = 1;
const BOX_BYTES: usize = 32 + BOX;
/// Size of a sealed key in bytes: the key (32) plus the authenticator (16).
pub const BOX: usize = 48;
pub const NONCE: usize = 24;
/// Number of bytes by which the ciphertext is longer than the payload.
pub const AUTHENTICATOR: usize = 16;
/// Maximum number of recipients: members, and keys that get a copy of every payload.
pub const MAX_BOXES: usize = 512;
const HEAD: usize = 1 + 32 + NONCE + NONCE + 32 + 2 + 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedBox {
    pub recipient: Key,
    pub sealed: [u8; BOX],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed<'a> {
    pub sender: Key,
    pub box_nonce: [u8; NONCE],
    /// Nonce of the ciphertext; all zero if an older enclave sealed the payload.
    pub nonce: [u8; NONCE],
    pub group: Key,
    /// Number of recipients that are members of the group. The recipients after them get a copy of every payload.
    pub members: usize,
    pub boxes: Vec<SealedBox>,
    pub ciphertext: &'a [u8],
}

/// Return the key of a payload: SHA-512/256 of its ciphertext. A privacy marker transaction carries this key.
pub fn key_of(ciphertext: &[u8]) -> Key {
    Sha512_256::digest(ciphertext).into()
}

impl<'a> Sealed<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.boxes.len() * BOX_BYTES + self.ciphertext.len());
        out.push(VERSION);
        out.extend_from_slice(&self.sender);
        out.extend_from_slice(&self.box_nonce);
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.group);
        out.extend_from_slice(&(self.boxes.len() as u16).to_be_bytes());
        out.extend_from_slice(&(self.members as u16).to_be_bytes());
        for one in &self.boxes {
            out.extend_from_slice(&one.recipient);
            out.extend_from_slice(&one.sealed);
        }
        out.extend_from_slice(self.ciphertext);
        out
    }

    /// Decode a sealed record. A record has exactly one encoding, so any deviation from it is an error.
    pub fn decode(record: &'a [u8]) -> Result<Self> {
        let mut rest = record;
        let [version] = take::<1>(&mut rest)?;
        if version != VERSION {
            return Err(Error::Decode(format!("sealed payload: version {version} is unknown")));
        }
        let sender = take(&mut rest)?;
        let box_nonce = take(&mut rest)?;
        let nonce = take(&mut rest)?;
        let group = take(&mut rest)?;
        let count = usize::from(u16::from_be_bytes(take(&mut rest)?));
        let members = usize::from(u16::from_be_bytes(take(&mut rest)?));
        if count == 0 || count > MAX_BOXES || members == 0 || members > count {
            return Err(Error::Decode(format!("sealed payload: {members} members of {count} recipients")));
        }
        let mut boxes = Vec::with_capacity(count);
        for _ in 0..count {
            boxes.push(SealedBox { recipient: take(&mut rest)?, sealed: take(&mut rest)? });
        }
        let mut recipients: Vec<&Key> = boxes.iter().map(|one| &one.recipient).collect();
        recipients.sort_unstable();
        if recipients.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Decode("sealed payload: a recipient is there twice".into()));
        }
        if rest.len() < AUTHENTICATOR {
            return Err(too_short());
        }
        Ok(Sealed { sender, box_nonce, nonce, group, members, boxes, ciphertext: rest })
    }

    pub fn key(&self) -> Key {
        key_of(self.ciphertext)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>().ok_or_else(too_short)?;
    *rest = after;
    Ok(*taken)
}

fn too_short() -> Error {
    Error::Decode("sealed payload: it ends too early".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(ciphertext: &[u8]) -> Sealed<'_> {
        let boxes = (0..3).map(|n| SealedBox { recipient: [n; 32], sealed: [n + 7; BOX] }).collect();
        Sealed { sender: [1; 32], box_nonce: [2; 24], nonce: [0; 24], group: [4; 32], members: 2, boxes, ciphertext }
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let sealed = example(b"a ciphertext of some length");
        assert_eq!(Sealed::decode(&sealed.encode()).unwrap(), sealed);
    }

    #[test]
    fn whatever_is_cut_off_is_refused() {
        let record = example(&[9; AUTHENTICATOR]).encode();
        for length in 0..record.len() {
            assert!(Sealed::decode(&record[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_recipient_is_there_once() {
        let mut sealed = example(&[9; 20]);
        sealed.boxes[2].recipient = sealed.boxes[0].recipient;
        assert!(Sealed::decode(&sealed.encode()).is_err());
    }

    #[test]
    fn members_are_among_the_recipients() {
        for members in [0, 4] {
            let sealed = Sealed { members, ..example(&[9; 20]) };
            assert!(Sealed::decode(&sealed.encode()).is_err());
        }
    }
}
