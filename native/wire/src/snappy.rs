//! Snappy decompression in pieces, as the bytes of a large message arrive.
//!
//! The decompressed bytes go straight to their final buffer, so no second copy of a message exists. Small messages use
//! the crate `snap`, which needs the whole input.

use std::any::Any;

/// Maximum length in bytes of the header of a Snappy element: a tag and four bytes.
const MAX_HEAD: usize = 5;

const CORRUPT: &str = "corrupt compressed data";

/// The buffer for one decompressed message. It never grows beyond its allocated size.
#[allow(clippy::len_without_is_empty)]
pub trait Output: Send {
    fn len(&self) -> usize;

    fn append(&mut self, bytes: &[u8]);

    /// Appends `size` bytes that start `distance` bytes before the end. The source may overlap the appended bytes.
    fn repeat(&mut self, distance: usize, size: usize);

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

/// A function that allocates an output for this number of bytes.
pub type Allocate = fn(usize) -> Box<dyn Output>;

pub fn allocate_vec(size: usize) -> Box<dyn Output> {
    // Do not trust the announced size: the buffer starts small and grows with the received data.
    Box::new(Vec::<u8>::with_capacity(size.min(64 << 10)))
}

impl Output for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn repeat(&mut self, distance: usize, size: usize) {
        let start = self.len() - distance;
        let end = self.len() + size;
        while self.len() < end {
            // Copy at most the bytes from `start` to the end, so that source and target never overlap. Each round
            // doubles the repeated part.
            let count = (end - self.len()).min(self.len() - start);
            self.extend_from_within(start..start + count);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// The state between two pieces of one compressed message, after its size prefix.
pub struct Decoder {
    output: Box<dyn Output>,
    size: usize,
    head: [u8; MAX_HEAD],
    filled: usize,
    /// Number of bytes of the current Snappy literal that have not arrived.
    literal: usize,
}

impl Decoder {
    /// Creates a decoder. `size` is the decompressed size that the start of the message announces.
    pub fn new(output: Box<dyn Output>, size: usize) -> Self {
        Decoder { output, size, head: [0; MAX_HEAD], filled: 0, literal: 0 }
    }

    /// Return the number of decompressed bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.output.len()
    }

    pub fn feed(&mut self, mut data: &[u8]) -> Result<(), &'static str> {
        loop {
            if self.literal > 0 {
                let (piece, rest) = data.split_at(self.literal.min(data.len()));
                self.output.append(piece);
                self.literal -= piece.len();
                data = rest;
            }
            let Some(tag) = self.head[..self.filled].first().or(data.first()).copied() else { return Ok(()) };
            let missing = head_size(tag) - self.filled;
            let (piece, rest) = data.split_at(missing.min(data.len()));
            self.head[self.filled..self.filled + piece.len()].copy_from_slice(piece);
            self.filled += piece.len();
            data = rest;
            if piece.len() < missing {
                return Ok(());
            }
            self.filled = 0;
            self.element()?;
        }
    }

    /// Return the decompressed message. Fails if the input has ended too early.
    pub fn finish(self) -> Result<Box<dyn Output>, &'static str> {
        let is_complete = self.filled == 0 && self.literal == 0 && self.output.len() == self.size;
        if is_complete { Ok(self.output) } else { Err(CORRUPT) }
    }

    fn element(&mut self) -> Result<(), &'static str> {
        let [tag, a, b, c, d] = self.head;
        let upper = usize::from(tag >> 2);
        let (distance, size) = match tag & 3 {
            0 => (0, literal_size(upper, [a, b, c, d])),
            1 => (usize::from(tag >> 5) << 8 | usize::from(a), 4 + (upper & 7)),
            2 => (usize::from(u16::from_le_bytes([a, b])), 1 + upper),
            _ => (u32::from_le_bytes([a, b, c, d]) as usize, 1 + upper),
        };
        let length = self.output.len();
        if size > self.size - length {
            return Err(CORRUPT);
        }
        if tag & 3 == 0 {
            self.literal = size;
        } else if distance == 0 || distance > length {
            return Err(CORRUPT);
        } else {
            self.output.repeat(distance, size);
        }
        Ok(())
    }
}

fn head_size(tag: u8) -> usize {
    match (tag & 3, tag >> 2) {
        (0, size @ 60..) => 2 + usize::from(size - 60),
        (0, _) => 1,
        (1, _) => 2,
        (2, _) => 3,
        _ => 5,
    }
}

/// Return the length of a literal, which is in the tag or in one to four bytes after the tag.
fn literal_size(upper: usize, after: [u8; 4]) -> usize {
    let mut bytes = [0; 4];
    match upper {
        60.. => {
            bytes[..upper - 59].copy_from_slice(&after[..upper - 59]);
            u32::from_le_bytes(bytes) as usize + 1
        }
        _ => upper + 1,
    }
}

/// Read the decompressed size at the start of a message. Returns (size, length of its encoding).
pub fn announced_size(data: &[u8]) -> Result<(usize, usize), &'static str> {
    let mut size = 0_u64;
    for (index, byte) in data.iter().take(5).enumerate() {
        size |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return if size <= u64::from(u32::MAX) { Ok((size as usize, index + 1)) } else { Err(CORRUPT) };
        }
    }
    Err(CORRUPT)
}

#[cfg(test)]
mod tests;
