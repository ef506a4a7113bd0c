//! RLPx frames: one cipher and one MAC state per direction, for the life of a connection. Sizes are in bytes.
//!
//! ```text
//! header(16) || tag(16) || body, padded to a multiple of 16 || tag(16)
//! ```

use std::any::Any;
use std::collections::HashMap;

use aes::cipher::{KeyIvInit, StreamCipher};
use subtle::ConstantTimeEq;

use crate::mac::{RunningMac, Tag};
use crate::snappy::{Allocate, Decoder, allocate_vec, announced_size};
use crate::{Error, Result};

type Cipher = ctr::Ctr128BE<aes::Aes256>;

/// Maximum message size in bytes, before and after decompression. The size field of a frame has three bytes.
pub const MAX_MESSAGE: usize = (1 << 24) - 1;

/// Maximum size in bytes of Hello, the first message.
pub const FIRST_MESSAGE: usize = 2048;

/// Maximum number of bytes buffered after the first message, until the caller has decided about compression.
const MAX_WAITING: usize = 1 << 20;

/// The RLP list [0, 0], which every RLPx frame header contains.
const HEADER_DATA: [u8; 3] = [0xc2, 0x80, 0x80];

const DISCONNECT: u8 = 1;

/// Maximum compression ratio of Snappy: three bytes expand to at most 64.
const SNAPPY_RATIO: usize = 22;

/// Size in bytes above which a compressed frame is decompressed while it arrives, so that no call takes long.
const LARGE: usize = 16 << 10;

/// Number of bytes at the start of a large frame that hold its message id and its decompressed size.
const PREFIX: usize = 16;

/// A message id and its content.
pub type Message = (u8, Content);

/// The payload of an RLPx message.
#[derive(Debug)]
pub enum Content {
    Payload(Vec<u8>),
    /// A large payload, in a buffer made by the caller's allocator.
    Allocated(Box<dyn Any + Send>),
    /// Size of a payload that exceeds the limit of its message id. The session has dropped the payload.
    Oversized(usize),
}

pub struct Session {
    pub egress: Egress,
    pub ingress: Ingress,
}

impl Session {
    pub(crate) fn new(aes: &[u8; 32], egress: RunningMac, ingress: RunningMac) -> Self {
        let cipher = || Cipher::new(&(*aes).into(), &[0; 16].into());
        Session {
            egress: Egress { cipher: cipher(), mac: egress, is_compressed: false },
            ingress: Ingress::new(cipher(), ingress),
        }
    }
}

pub struct Egress {
    cipher: Cipher,
    mac: RunningMac,
    pub is_compressed: bool,
}

impl Egress {
    /// Encrypts messages to frames. An error leaves the session unchanged.
    pub fn seal<'a>(&mut self, messages: impl Iterator<Item = (u8, &'a [u8])>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut frames = Vec::new();
        for (id, payload) in messages {
            let start = out.len();
            out.resize(start + 32, 0);
            put_id(id, &mut out);
            if payload.len() > MAX_MESSAGE {
                return Err(Error::at(format!("message {id:#04x}"), format!("{} bytes are too many", payload.len())));
            }
            self.put_payload(payload, &mut out);
            let size = out.len() - start - 32;
            if size > MAX_MESSAGE {
                return Err(Error::at(format!("message {id:#04x}"), format!("a frame of {size} bytes is too large")));
            }
            out.resize(start + 32 + padded(size) + 16, 0);
            frames.push((start, size));
        }
        for (start, size) in frames {
            self.encrypt(&mut out[start..start + 32 + padded(size) + 16], size);
        }
        Ok(out)
    }

    fn put_payload(&self, payload: &[u8], out: &mut Vec<u8>) {
        if !self.is_compressed {
            out.extend_from_slice(payload);
            return;
        }
        let start = out.len();
        out.resize(start + snap::raw::max_compress_len(payload.len()), 0);
        // compression fails only if the output buffer is too small or the input has 4 GiB
        let size = snap::raw::Encoder::new().compress(payload, &mut out[start..]).unwrap_or(0);
        out.truncate(start + size);
    }

    fn encrypt(&mut self, frame: &mut [u8], size: usize) {
        let (header, rest) = frame.split_at_mut(16);
        let (header_tag, rest) = rest.split_at_mut(16);
        let (body, body_tag) = rest.split_at_mut(padded(size));
        header[..3].copy_from_slice(&(size as u32).to_be_bytes()[1..]);
        header[3..6].copy_from_slice(&HEADER_DATA);
        self.cipher.apply_keystream(header);
        let mut sealed = [0; 16];
        sealed.copy_from_slice(header);
        header_tag.copy_from_slice(&self.mac.header(&sealed));
        self.cipher.apply_keystream(body);
        self.mac.update(body);
        body_tag.copy_from_slice(&self.mac.body());
    }
}

fn padded(size: usize) -> usize {
    size.next_multiple_of(16)
}

/// Appends a message id as an RLP integer.
fn put_id(id: u8, out: &mut Vec<u8>) {
    match id {
        0 => out.push(0x80),
        1..0x80 => out.push(id),
        _ => out.extend([0x81, id]),
    }
}

fn split_id(body: &[u8]) -> Result<(u8, &[u8])> {
    match body {
        [0x80, payload @ ..] => Ok((0, payload)),
        [id @ 1..0x80, payload @ ..] => Ok((*id, payload)),
        [0x81, id @ 0x80..=0xff, payload @ ..] => Ok((*id, payload)),
        [] => Err(Error::at("frame", "it is empty")),
        _ => Err(Error::at("frame", "its message id is no number of one byte")),
    }
}

/// The part of an RLPx frame that is being read.
enum Part {
    /// The header of a frame and the tag of the header.
    Header { bytes: [u8; 32], filled: usize },
    /// The body of a frame. The session decrypts bytes as they arrive, and returns the message after the tag is
    /// verified.
    Body { body: Vec<u8>, size: usize },
    /// The tag of a frame body, after the body.
    Tag { body: Vec<u8>, bytes: Tag, filled: usize },
    /// The part of a large compressed message after its prefix, or the tag of the message. The session decompresses
    /// bytes as they arrive, and returns the message after the tag is verified.
    Large { large: Large, bytes: Tag, filled: usize },
}

/// A large compressed message that is being received.
struct Large {
    id: u8,
    /// The size after decompression that the message announces.
    size: usize,
    /// The decoder; None for a message that exceeds the size limit of its id. The session drops the bytes of such a
    /// message.
    decoder: Option<Decoder>,
    /// Number of compressed bytes that have not arrived yet.
    left: usize,
    /// Number of padding bytes that have not arrived yet.
    padding: usize,
}

impl Large {
    fn feed(&mut self, decrypted: &[u8]) -> Result<()> {
        let data = &decrypted[..self.left.min(decrypted.len())];
        self.left -= data.len();
        self.padding -= decrypted.len() - data.len();
        let fed = self.decoder.as_mut().map_or(Ok(()), |decoder| decoder.feed(data));
        fed.map_err(|cause| Error::at(place(self.id), cause))
    }

    fn finish(self) -> Result<Message> {
        let Some(decoder) = self.decoder else { return Ok((self.id, Content::Oversized(self.size))) };
        let output = decoder.finish().map_err(|cause| Error::at(place(self.id), cause))?;
        let content = match output.into_any().downcast::<Vec<u8>>() {
            Ok(payload) => Content::Payload(*payload),
            Err(other) => Content::Allocated(other),
        };
        Ok((self.id, content))
    }
}

fn place(id: u8) -> String {
    format!("message {id:#04x}")
}

const BETWEEN: Part = Part::Header { bytes: [0; 32], filled: 0 };

pub struct Ingress {
    cipher: Cipher,
    mac: RunningMac,
    part: Part,
    /// Whether messages are compressed; None until the caller decides after the first message.
    is_compressed: Option<bool>,
    max_message: usize,
    /// Maximum payload size by message id, for ids with a lower limit than `max_message`.
    max_sizes: HashMap<u8, usize>,
    /// Bytes received after the first message, kept until the caller decides about compression.
    waiting: Vec<u8>,
    /// Function that allocates the buffers for the payloads of large messages.
    pub allocate: Allocate,
    /// Buffer for one decrypted piece of a large message.
    piece: Vec<u8>,
    failure: Option<Error>,
}

impl Ingress {
    fn new(cipher: Cipher, mac: RunningMac) -> Self {
        Ingress {
            cipher,
            mac,
            part: BETWEEN,
            is_compressed: None,
            max_message: FIRST_MESSAGE,
            max_sizes: HashMap::new(),
            waiting: Vec::new(),
            allocate: allocate_vec,
            piece: Vec::new(),
            failure: None,
        }
    }

    pub fn is_compressed(&self) -> bool {
        self.is_compressed == Some(true)
    }

    pub fn set_compressed(&mut self, is_compressed: bool) {
        self.is_compressed = Some(is_compressed);
    }

    pub fn max_message(&self) -> usize {
        self.max_message
    }

    /// Sets the message size limit, at most `MAX_MESSAGE`.
    pub fn set_max_message(&mut self, size: usize) {
        self.max_message = size.min(MAX_MESSAGE);
    }

    /// Limits the payload size of one message id after decompression. A larger payload arrives as `Content::Oversized`.
    pub fn set_max_size(&mut self, id: u8, size: usize) {
        self.max_sizes.insert(id, size);
    }

    fn is_oversized(&self, id: u8, size: usize) -> bool {
        self.max_sizes.get(&id).is_some_and(|limit| size > *limit)
    }

    /// Return the number of buffered bytes of incomplete messages.
    pub fn buffered(&self) -> usize {
        self.waiting.len()
            + match &self.part {
                Part::Header { filled, .. } => *filled,
                Part::Body { body, .. } => 32 + body.len(),
                Part::Tag { body, filled, .. } => 32 + body.len() + filled,
                Part::Large { large, .. } => 32 + large.decoder.as_ref().map_or(0, Decoder::len),
            }
    }

    /// Reads received bytes and returns the complete messages, in order. The first message is returned alone, because
    /// it decides about compression. Later bytes wait until `set_compressed`. After an error, every further call fails.
    pub fn feed(&mut self, data: &[u8]) -> Result<Vec<Message>> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.read_all(data).inspect_err(|failure| {
            self.failure = Some(failure.clone());
            self.part = BETWEEN;
            self.waiting = Vec::new();
        })
    }

    fn read_all(&mut self, data: &[u8]) -> Result<Vec<Message>> {
        let waited = std::mem::take(&mut self.waiting);
        let mut messages = Vec::new();
        for chunk in [&waited[..], data] {
            let mut rest = chunk;
            while !rest.is_empty() {
                if self.is_compressed.is_none() && !messages.is_empty() {
                    self.wait(rest)?;
                    break;
                }
                messages.extend(self.read(&mut rest)?);
            }
        }
        Ok(messages)
    }

    fn wait(&mut self, rest: &[u8]) -> Result<()> {
        if self.waiting.len() + rest.len() > MAX_WAITING {
            return Err(Error::at("session", "too many bytes before the first message was answered"));
        }
        self.waiting.extend_from_slice(rest);
        Ok(())
    }

    /// Reads to the end of the current part of the frame, or to the end of the data. Returns the message if it is
    /// complete.
    fn read(&mut self, rest: &mut &[u8]) -> Result<Option<Message>> {
        match &mut self.part {
            Part::Header { bytes, filled } => {
                *filled += fill(&mut bytes[*filled..], rest);
                if *filled == bytes.len() {
                    let bytes = *bytes;
                    self.begin_body(&bytes)?;
                }
                Ok(None)
            }
            Part::Body { body, size } => {
                let is_large = *size > LARGE && self.is_compressed == Some(true);
                let target = if is_large { PREFIX } else { padded(*size) } - body.len();
                let (piece, after) = rest.split_at(target.min(rest.len()));
                *rest = after;
                let start = body.len();
                reserve_body(body, start + piece.len(), padded(*size));
                body.extend_from_slice(piece);
                self.mac.update(piece);
                self.cipher.apply_keystream(&mut body[start..]);
                if is_large && body.len() == PREFIX {
                    let (body, size) = (std::mem::take(body), *size);
                    self.begin_large(&body, size)?;
                } else if body.len() == padded(*size) {
                    body.truncate(*size);
                    self.part = Part::Tag { body: std::mem::take(body), bytes: [0; 16], filled: 0 };
                }
                Ok(None)
            }
            Part::Tag { bytes, filled, body } => {
                *filled += fill(&mut bytes[*filled..], rest);
                if *filled < bytes.len() {
                    return Ok(None);
                }
                check(&self.mac.body(), bytes, "frame body")?;
                let body = std::mem::take(body);
                self.part = BETWEEN;
                self.message(body).map(Some)
            }
            Part::Large { large, .. } if large.left + large.padding > 0 => {
                let (piece, after) = rest.split_at((large.left + large.padding).min(rest.len()));
                *rest = after;
                self.mac.update(piece);
                self.piece.clear();
                self.piece.extend_from_slice(piece);
                self.cipher.apply_keystream(&mut self.piece);
                large.feed(&self.piece)?;
                if large.left + large.padding == 0 {
                    self.piece = Vec::new();
                }
                Ok(None)
            }
            Part::Large { bytes, filled, .. } => {
                *filled += fill(&mut bytes[*filled..], rest);
                if *filled < bytes.len() {
                    return Ok(None);
                }
                check(&self.mac.body(), bytes, "frame body")?;
                let Part::Large { large, .. } = std::mem::replace(&mut self.part, BETWEEN) else { return Ok(None) };
                large.finish().map(Some)
            }
        }
    }

    fn begin_body(&mut self, bytes: &[u8; 32]) -> Result<()> {
        let (mut header, mut tag) = ([0; 16], [0; 16]);
        header.copy_from_slice(&bytes[..16]);
        tag.copy_from_slice(&bytes[16..]);
        check(&self.mac.header(&header), &tag, "frame header")?;
        self.cipher.apply_keystream(&mut header);
        let size = usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
        // the size limit applies to the message without its id, and the id takes up to two bytes
        if size == 0 || size > self.max_message.saturating_add(2) {
            return Err(Error::at("frame", format!("a size of {size} bytes, at most {} are taken", self.max_message)));
        }
        self.part = Part::Body { body: Vec::new(), size };
        Ok(())
    }

    /// Starts to decompress a large message: checks its announced size and allocates its output.
    fn begin_large(&mut self, body: &[u8], size: usize) -> Result<()> {
        let (id, _) = split_id(body)?;
        let start = if id < 0x80 { 1 } else { 2 };
        let (announced, prefix) = announced_size(&body[start..]).map_err(|cause| Error::at(place(id), cause))?;
        self.check_announced(id, announced, size - start)?;
        let is_oversized = self.is_oversized(id, announced);
        let decoder = (!is_oversized).then(|| Decoder::new((self.allocate)(announced), announced));
        let (start, padding) = (start + prefix, padded(size) - size);
        let mut large = Large { id, size: announced, decoder, left: size - start, padding };
        large.feed(&body[start..])?;
        self.part = Part::Large { large, bytes: [0; 16], filled: 0 };
        Ok(())
    }

    /// Checks the announced size of a compressed payload of `compressed` bytes.
    fn check_announced(&self, id: u8, size: usize, compressed: usize) -> Result<()> {
        if size > self.max_message {
            return Err(self.too_large(id, size));
        }
        if size > compressed * SNAPPY_RATIO {
            return Err(Error::at(place(id), format!("{compressed} bytes cannot hold the {size} they announce")));
        }
        Ok(())
    }

    fn message(&self, mut body: Vec<u8>) -> Result<Message> {
        let (id, payload) = split_id(&body)?;
        if self.is_compressed() {
            match self.decompress(id, payload) {
                Ok(content) => return Ok((id, content)),
                // accept an uncompressed Disconnect, because a peer that has not read our Hello yet does not compress
                // messages
                Err(_) if id == DISCONNECT => {}
                Err(error) => return Err(error),
            }
        }
        if payload.len() > self.max_message {
            return Err(self.too_large(id, payload.len()));
        }
        if self.is_oversized(id, payload.len()) {
            return Ok((id, Content::Oversized(payload.len())));
        }
        let start = body.len() - payload.len();
        body.drain(..start);
        Ok((id, Content::Payload(body)))
    }

    fn decompress(&self, id: u8, payload: &[u8]) -> Result<Content> {
        let corrupt = |cause| Error::at(place(id), cause);
        let size = snap::raw::decompress_len(payload).map_err(corrupt)?;
        self.check_announced(id, size, payload.len())?;
        if self.is_oversized(id, size) {
            return Ok(Content::Oversized(size));
        }
        let mut out = vec![0; size];
        let written = snap::raw::Decoder::new().decompress(payload, &mut out).map_err(corrupt)?;
        out.truncate(written);
        Ok(Content::Payload(out))
    }

    fn too_large(&self, id: u8, size: usize) -> Error {
        Error::at(format!("message {id:#04x}"), format!("{size} bytes, at most {} are taken", self.max_message))
    }
}

fn check(expected: &Tag, got: &Tag, place: &str) -> Result<()> {
    if bool::from(expected.ct_eq(got)) { Ok(()) } else { Err(Error::at(place, "its authentication code is wrong")) }
}

/// Moves as many bytes as fit from `rest` to `space`. Returns their number.
fn fill(space: &mut [u8], rest: &mut &[u8]) -> usize {
    let size = space.len().min(rest.len());
    let (piece, after) = rest.split_at(size);
    space[..size].copy_from_slice(piece);
    *rest = after;
    size
}

/// Grows the buffer of a frame body by doubling, but never beyond the size of the whole body.
fn reserve_body(body: &mut Vec<u8>, needed: usize, whole: usize) {
    if body.capacity() < needed {
        let target = needed.max(body.capacity() * 2).min(whole);
        body.reserve_exact(target - body.len());
    }
}

#[cfg(test)]
mod tests;
