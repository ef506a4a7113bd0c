//! The RLPx handshake (EIP-8): auth and ack, then both sides have a session.

use alloy_primitives::{B256, keccak256};
use alloy_rlp::Encodable;
use secp256k1::{PublicKey, SecretKey};

use crate::frames::Session;
use crate::keys::{self, NodeId};
use crate::mac::RunningMac;
use crate::{Error, Result, ecies, rlp};

/// Maximum size in bytes of a handshake message, as its size prefix announces. A larger message is refused before it is
/// read.
pub const MAX_SIZE: usize = 2048;

/// Number of random bytes that one handshake needs.
pub const ENTROPY: usize = 3 * 32 + 16 + 1 + MAX_PADDING;

/// Minimum padding of a handshake message in bytes. It distinguishes EIP-8 messages from older messages of fixed size.
const MIN_PADDING: usize = 100;
const MAX_PADDING: usize = MIN_PADDING + 199;

const VERSION: u8 = 4;

/// The random values of one RLPx handshake.
struct Entropy {
    ephemeral: SecretKey,
    nonce: [u8; 32],
    envelope: SecretKey,
    iv: [u8; 16],
    padding: Vec<u8>,
}

impl Entropy {
    fn new(bytes: &[u8]) -> Result<Self> {
        let bytes: [u8; ENTROPY] = keys::fixed("entropy", bytes)?;
        let part = |at: usize| {
            let mut part = [0; 32];
            part.copy_from_slice(&bytes[at..at + 32]);
            part
        };
        let mut iv = [0; 16];
        iv.copy_from_slice(&bytes[96..112]);
        let padding = MIN_PADDING + usize::from(bytes[112]) % (MAX_PADDING - MIN_PADDING + 1);
        Ok(Entropy {
            ephemeral: keys::secret_from_entropy(part(0)),
            nonce: part(32),
            envelope: keys::secret_from_entropy(part(64)),
            iv,
            padding: bytes[113..113 + padding].to_vec(),
        })
    }

    /// Encrypt a list: size || ecies(list || padding). The encryption also authenticates the size.
    fn seal(&self, to: &PublicKey, list: Vec<u8>) -> Vec<u8> {
        let mut message = list;
        message.extend_from_slice(&self.padding);
        let size = (message.len() + ecies::OVERHEAD) as u16;
        let mut out = size.to_be_bytes().to_vec();
        let sealed = ecies::encrypt(to, &self.envelope, self.iv, &message, &out);
        out.extend_from_slice(&sealed);
        out
    }
}

fn open(place: &str, secret: &SecretKey, message: &[u8]) -> Result<Vec<u8>> {
    let Some((size, sealed)) = message.split_first_chunk::<2>() else {
        return Err(Error::at(place, "it has no size"));
    };
    let announced = usize::from(u16::from_be_bytes(*size));
    if announced > MAX_SIZE || announced != sealed.len() {
        return Err(Error::at(place, format!("{} bytes under a size of {announced}", sealed.len())));
    }
    ecies::decrypt(place, secret, sealed, size)
}

/// Reads the next item of an RLP list. The item must be a string of N bytes.
fn list_item<const N: usize>(place: &str, rest: &mut &[u8]) -> Result<[u8; N]> {
    match rlp::item(rest, || place.to_owned())? {
        (false, _, payload) => keys::fixed(place, payload),
        (true, ..) => Err(Error::at(place, "a string is expected")),
    }
}

/// The auth message of the initiator. The version, further items and bytes after the list are ignored (EIP-8).
struct Auth {
    signature: [u8; 65],
    id: NodeId,
    nonce: [u8; 32],
}

impl Auth {
    fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(180);
        self.signature[..].encode(&mut payload);
        self.id[..].encode(&mut payload);
        self.nonce[..].encode(&mut payload);
        VERSION.encode(&mut payload);
        rlp::list_of(&payload)
    }

    fn decode(text: &[u8]) -> Result<Self> {
        let (mut rest, _) = rlp::list_at_front("auth", text)?;
        Ok(Auth {
            signature: list_item("auth signature", &mut rest)?,
            id: list_item("auth key", &mut rest)?,
            nonce: list_item("auth nonce", &mut rest)?,
        })
    }
}

/// The ack message of the recipient.
struct Ack {
    ephemeral: NodeId,
    nonce: [u8; 32],
}

impl Ack {
    fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(110);
        self.ephemeral[..].encode(&mut payload);
        self.nonce[..].encode(&mut payload);
        VERSION.encode(&mut payload);
        rlp::list_of(&payload)
    }

    fn decode(text: &[u8]) -> Result<Self> {
        let (mut rest, _) = rlp::list_at_front("ack", text)?;
        Ok(Ack { ephemeral: list_item("ack key", &mut rest)?, nonce: list_item("ack nonce", &mut rest)? })
    }
}

fn xor(a: [u8; 32], b: &[u8; 32]) -> [u8; 32] {
    (B256::from(a) ^ B256::from(*b)).0
}

/// Both encrypted messages and both nonces, from which the session secrets are derived.
struct Transcript<'a> {
    auth: &'a [u8],
    ack: &'a [u8],
    initiator_nonce: [u8; 32],
    recipient_nonce: [u8; 32],
}

/// Derive the session secrets: (AES secret, MAC secret).
fn secrets(ephemeral: &[u8; 32], transcript: &Transcript<'_>) -> ([u8; 32], [u8; 32]) {
    let hash = |a: &[u8; 32], b: &[u8; 32]| keccak256([*a, *b].concat()).0;
    let shared = hash(ephemeral, &hash(&transcript.recipient_nonce, &transcript.initiator_nonce));
    let aes = hash(ephemeral, &shared);
    (aes, hash(ephemeral, &aes))
}

fn session(ephemeral: &[u8; 32], transcript: &Transcript<'_>, is_initiator: bool) -> Session {
    let (aes, mac) = secrets(ephemeral, transcript);
    let from_initiator = RunningMac::new(&mac, &transcript.recipient_nonce, transcript.auth);
    let from_recipient = RunningMac::new(&mac, &transcript.initiator_nonce, transcript.ack);
    let (egress, ingress) =
        if is_initiator { (from_initiator, from_recipient) } else { (from_recipient, from_initiator) };
    Session::new(&aes, egress, ingress)
}

/// The dialling side of a handshake, which waits for the ack.
pub struct Initiator {
    secret: SecretKey,
    ephemeral: SecretKey,
    nonce: [u8; 32],
    auth: Vec<u8>,
}

impl Initiator {
    pub fn new(secret: &[u8], remote: &[u8], entropy: &[u8]) -> Result<Self> {
        let secret = keys::secret(secret)?;
        let remote = keys::public("remote key", remote)?;
        let entropy = Entropy::new(entropy)?;
        let token = keys::agree(&secret, &remote);
        let auth = Auth {
            signature: keys::sign(&entropy.ephemeral, xor(token, &entropy.nonce)),
            id: keys::id_of(&keys::public_of(&secret)),
            nonce: entropy.nonce,
        };
        let auth = entropy.seal(&remote, auth.encode());
        Ok(Initiator { secret, ephemeral: entropy.ephemeral, nonce: entropy.nonce, auth })
    }

    /// Return the encrypted auth message.
    pub fn auth(&self) -> &[u8] {
        &self.auth
    }

    pub fn finish(&self, ack: &[u8]) -> Result<Session> {
        let answer = Ack::decode(&open("ack", &self.secret, ack)?)?;
        let ephemeral = keys::agree(&self.ephemeral, &keys::public("ack key", &answer.ephemeral)?);
        let transcript =
            Transcript { auth: &self.auth, ack, initiator_nonce: self.nonce, recipient_nonce: answer.nonce };
        Ok(session(&ephemeral, &transcript, true))
    }
}

pub struct Answer {
    pub ack: Vec<u8>,
    pub remote: NodeId,
    pub session: Session,
}

/// Answers an auth message: completes the handshake on the side of the recipient.
pub fn answer(secret: &[u8], auth: &[u8], entropy: &[u8]) -> Result<Answer> {
    let secret = keys::secret(secret)?;
    let entropy = Entropy::new(entropy)?;
    let (request, remote, remote_ephemeral) = read_auth(&secret, auth)?;
    let ack = Ack { ephemeral: keys::id_of(&keys::public_of(&entropy.ephemeral)), nonce: entropy.nonce };
    let ack = entropy.seal(&remote, ack.encode());
    let ephemeral = keys::agree(&entropy.ephemeral, &remote_ephemeral);
    let transcript = Transcript { auth, ack: &ack, initiator_nonce: request.nonce, recipient_nonce: entropy.nonce };
    let session = session(&ephemeral, &transcript, false);
    Ok(Answer { remote: request.id, session, ack })
}

/// Return the node id that an auth message claims, without verification. This is much cheaper than `answer`.
pub fn caller(secret: &[u8], auth: &[u8]) -> Result<NodeId> {
    Ok(Auth::decode(&open("auth", &keys::secret(secret)?, auth)?)?.id)
}

/// Verifies an auth message. Returns (message, initiator's key, initiator's ephemeral key).
fn read_auth(secret: &SecretKey, auth: &[u8]) -> Result<(Auth, PublicKey, PublicKey)> {
    let request = Auth::decode(&open("auth", secret, auth)?)?;
    let remote = keys::public("auth key", &request.id)?;
    let token = keys::agree(secret, &remote);
    let ephemeral = keys::recover("auth signature", xor(token, &request.nonce), &request.signature)?;
    Ok((request, remote, ephemeral))
}

#[cfg(test)]
mod tests;
