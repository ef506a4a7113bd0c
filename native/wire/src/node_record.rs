//! Node records (EIP-778), identity scheme "v4": `[signature, sequence, key, value, ...]`.

use alloy_primitives::keccak256;
use alloy_rlp::{Decodable, Encodable};
use secp256k1::ecdsa::Signature;
use secp256k1::{Message, PublicKey, SECP256K1};

use crate::keys::{self, NodeId};
use crate::{Error, Result, rlp};

/// Maximum size of a record, in bytes (EIP-778).
pub const MAX_SIZE: usize = 300;

/// Key of a node record, and its value as RLP.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

pub struct Record<'a> {
    pub id: NodeId,
    pub sequence: u64,
    pub pairs: Vec<Pair<'a>>,
}

const SCHEME: &[u8] = b"\x82v4";

/// Signs a record. `pairs` may have any order. The function adds the identity scheme and the public key.
pub fn sign(secret: &[u8], sequence: u64, pairs: &[Pair<'_>]) -> Result<Vec<u8>> {
    let secret = keys::secret(secret)?;
    let public = alloy_rlp::encode(&keys::public_of(&secret).serialize()[..]);
    let own: [Pair<'_>; 2] = [(b"id", SCHEME), (b"secp256k1", &public)];
    let mut pairs: Vec<Pair<'_>> = pairs.iter().filter(|pair| !own.contains(pair)).copied().collect();
    pairs.extend(own);
    pairs.sort_unstable();
    let mut content = Vec::new();
    sequence.encode(&mut content);
    for (place, (key, value)) in pairs.iter().enumerate() {
        if place > 0 && pairs[place - 1].0 == *key {
            return Err(Error::at(name(key), "twice in one record"));
        }
        let mut rest = *value;
        rlp::item(&mut rest, || name(key))?;
        if !rest.is_empty() {
            return Err(Error::at(name(key), "more than one RLP value"));
        }
        key.encode(&mut content);
        content.extend_from_slice(value);
    }
    let signature = keys::sign(&secret, keccak256(rlp::list_of(&content)).0);
    let mut payload = Vec::with_capacity(content.len() + 66);
    signature[..64].encode(&mut payload);
    payload.extend_from_slice(&content);
    let record = rlp::list_of(&payload);
    match record.len() {
        ..=MAX_SIZE => Ok(record),
        size => Err(Error::at("record", format!("{size} bytes, more than {MAX_SIZE}"))),
    }
}

/// Decodes a record and verifies its signature.
pub fn read(record: &[u8]) -> Result<Record<'_>> {
    if record.len() > MAX_SIZE {
        return Err(Error::at("record", format!("{} bytes, more than {MAX_SIZE}", record.len())));
    }
    let (mut rest, after) = rlp::list_at_front("record", record)?;
    if !after.is_empty() {
        return Err(Error::at("record", format!("{} bytes follow it", after.len())));
    }
    let signature: [u8; 64] = keys::fixed("record signature", text(&mut rest, || "record signature".into())?)?;
    let content = rest;
    let sequence = u64::decode(&mut rest).map_err(|cause| Error::at("record sequence", cause))?;
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    while !rest.is_empty() {
        let key = text(&mut rest, || format!("record key {}", pairs.len()))?;
        if pairs.last().is_some_and(|(previous, _)| *previous >= key) {
            return Err(Error::at(name(key), "keys are not in order"));
        }
        let (_, value, _) = rlp::item(&mut rest, || name(key))?;
        pairs.push((key, value));
    }
    let value = |wanted: &[u8]| pairs.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
    if value(b"id") != Some(SCHEME) {
        return Err(Error::at("record id", "the scheme is not v4"));
    }
    let mut public = value(b"secp256k1").ok_or_else(|| Error::at("record secp256k1", "missing"))?;
    let public = keys::fixed("record secp256k1", text(&mut public, || "record secp256k1".into())?)?;
    let public = PublicKey::from_byte_array_compressed(public)
        .map_err(|_| Error::at("record secp256k1", "not a point of the curve"))?;
    verify(&public, &signature, keccak256(rlp::list_of(content)).0)?;
    Ok(Record { id: keys::id_of(&public), sequence, pairs })
}

fn verify(key: &PublicKey, signature: &[u8; 64], digest: [u8; 32]) -> Result<()> {
    let wrong = |_| Error::at("record signature", "it does not verify");
    let mut signature = Signature::from_compact(signature).map_err(wrong)?;
    // normalize s, because the library accepts only a low s, although the protocol also allows a high s
    signature.normalize_s();
    SECP256K1.verify_ecdsa(Message::from_digest(digest), &signature, key).map_err(wrong)
}

fn text<'a>(rest: &mut &'a [u8], place: impl Fn() -> String) -> Result<&'a [u8]> {
    match rlp::item(rest, &place)? {
        (false, _, payload) => Ok(payload),
        (true, ..) => Err(Error::at(place(), "a string is expected")),
    }
}

/// Return a printable form of an untrusted key of a record.
fn name(key: &[u8]) -> String {
    format!("record {}", key.escape_ascii())
}

#[cfg(test)]
mod tests;
