//! Datagrams of discovery v4: hash || signature || type || data.

use alloy_primitives::keccak256;

use crate::keys::{self, NodeId};
use crate::{Error, Result, rlp};

/// Maximum size of a datagram, in bytes.
pub const MAX_SIZE: usize = 1280;

const HASH: usize = 32;
const SIGNATURE: usize = 65;

pub struct Packet<'a> {
    pub hash: [u8; HASH],
    pub signer: NodeId,
    pub kind: u8,
    /// The packet's content: one RLP list. Bytes after the list, which later protocol versions may append, are removed.
    pub data: &'a [u8],
}

pub fn seal(secret: &[u8], kind: u8, data: &[u8]) -> Result<Vec<u8>> {
    let key = keys::secret(secret)?;
    let size = HASH + SIGNATURE + 1 + data.len();
    if size > MAX_SIZE {
        return Err(Error::at("packet", format!("{size} bytes, more than {MAX_SIZE}")));
    }
    let mut out = vec![0; HASH + SIGNATURE];
    out.push(kind);
    out.extend_from_slice(data);
    let signature = keys::sign(&key, keccak256(&out[HASH + SIGNATURE..]).0);
    out[HASH..HASH + SIGNATURE].copy_from_slice(&signature);
    let hash = keccak256(&out[HASH..]);
    out[..HASH].copy_from_slice(hash.as_slice());
    Ok(out)
}

pub fn open(datagram: &[u8]) -> Result<Packet<'_>> {
    if !(HASH + SIGNATURE + 2..=MAX_SIZE).contains(&datagram.len()) {
        return Err(Error::at("packet", format!("{} bytes", datagram.len())));
    }
    let (hash, signed) = datagram.split_at(HASH);
    if keccak256(signed).as_slice() != hash {
        return Err(Error::at("packet", "its hash is wrong"));
    }
    let (signature, content) = signed.split_at(SIGNATURE);
    let data = &content[1..];
    let (_, after) = rlp::list_at_front("packet data", data)?;
    let signer = keys::recover("packet signature", keccak256(content).0, signature)?;
    Ok(Packet {
        hash: keys::fixed("packet", hash)?,
        signer: keys::id_of(&signer),
        kind: content[0],
        data: &data[..data.len() - after.len()],
    })
}

#[cfg(test)]
mod tests;
