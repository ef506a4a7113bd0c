//! WebSocket frame parser (RFC 6455, without extensions).
//!
//! The reader stores only the incomplete message. Each call of `read` processes a limited number of frames, so that a
//! client with many small frames cannot block others. The connection ends when a frame header announces a message that
//! is too long, or when a message has too many fragments.

/// Maximum number of fragments of a short message. A longer message may have one more fragment per `BYTES_OF_A_PIECE`
/// bytes.
const MAX_PIECES: usize = 1024;
const BYTES_OF_A_PIECE: usize = 32;
const MAX_HEADER_BYTES: usize = 14;
const MAX_CONTROL_BYTES: u64 = 125;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// A WebSocket message or control frame that the reader has parsed.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// The last ping of a read. Earlier pings of the same read need no pong (section 5.5.3).
    Ping(Vec<u8>),
    /// Close code, if the frame has one.
    Close(Option<u16>),
}

/// A protocol error, with its close code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Fault {
    Protocol = 1002,
    Text = 1007,
    Crumbs = 1008,
    TooLarge = 1009,
}

/// Result of parsing the bytes of one socket read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub events: Vec<Event>,
    /// Number of bytes processed. The caller passes the remaining bytes again in the next call.
    pub consumed: usize,
    /// Number of pings and pongs in this read.
    pub controls: usize,
    pub fault: Option<Fault>,
}

struct Head {
    is_final: bool,
    opcode: u8,
    mask: [u8; 4],
    left: u64,
    /// Index of the masking key's byte for the next payload byte.
    turn: usize,
}

pub struct Reader {
    max_frame: u64,
    max_message: u64,
    head: Vec<u8>,
    frame: Option<Head>,
    /// Opcode of the fragmented message; `CONTINUATION` between messages.
    kind: u8,
    message: Vec<u8>,
    pieces: usize,
    control: Vec<u8>,
    is_over: bool,
}

impl Reader {
    pub fn new(max_frame: u64, max_message: u64) -> Self {
        Reader {
            max_frame,
            max_message,
            head: Vec::new(),
            frame: None,
            kind: CONTINUATION,
            message: Vec::new(),
            pieces: 0,
            control: Vec::new(),
            is_over: false,
        }
    }

    /// Return the number of bytes that are reserved for the incomplete message.
    pub fn held(&self) -> usize {
        self.message.capacity()
    }

    /// Process at most `max_frames` frames. After a fault or a close frame, the reader processes no more data.
    pub fn read(&mut self, data: &[u8], max_frames: usize) -> Outcome {
        let mut outcome = Outcome::default();
        let mut frames = 0;
        while !self.is_over && outcome.consumed < data.len() && frames < max_frames {
            match self.step(data, &mut outcome) {
                Ok(is_whole) => frames += usize::from(is_whole),
                Err(fault) => {
                    outcome.fault = Some(fault);
                    self.end();
                }
            }
        }
        if self.is_over {
            outcome.consumed = data.len();
        }
        outcome
    }

    fn end(&mut self) {
        self.is_over = true;
        self.message = Vec::new();
    }

    /// Continue with the header or payload of a frame. Returns whether the frame is complete.
    fn step(&mut self, data: &[u8], outcome: &mut Outcome) -> Result<bool, Fault> {
        if self.frame.is_none() {
            let head_bytes = head_size(&self.head);
            let part = &data[outcome.consumed..];
            let size = part.len().min(head_bytes - self.head.len());
            self.head.extend_from_slice(&part[..size]);
            outcome.consumed += size;
            if self.head.len() < head_bytes || head_size(&self.head) > head_bytes {
                return Ok(false); // the header is incomplete: its second byte may announce more bytes
            }
            let head = parsed(&self.head)?;
            self.head.clear();
            self.begin(&head)?;
            self.frame = Some(head);
        }
        let frame = self.frame.as_mut().expect("a frame has begun");
        let rest = &data[outcome.consumed..];
        let size = usize::try_from(frame.left).unwrap_or(usize::MAX).min(rest.len());
        let target = if frame.opcode >= CLOSE { &mut self.control } else { &mut self.message };
        reserve(target, size, frame.left);
        let begin = target.len();
        target.extend_from_slice(&rest[..size]);
        unmask(&mut target[begin..], frame.mask, frame.turn);
        frame.turn = (frame.turn + size) % 4;
        frame.left -= size as u64;
        outcome.consumed += size;
        if frame.left > 0 {
            return Ok(false);
        }
        let (opcode, is_final) = (frame.opcode, frame.is_final);
        self.frame = None;
        self.finish(opcode, is_final, outcome)?;
        Ok(true)
    }

    /// Check the header of a frame, and start to read the frame's payload.
    fn begin(&mut self, head: &Head) -> Result<(), Fault> {
        match head.opcode {
            CLOSE | PING | PONG if head.is_final && head.left <= MAX_CONTROL_BYTES => {
                self.control.clear();
                return Ok(());
            }
            CONTINUATION if self.kind != CONTINUATION => {}
            TEXT | BINARY if self.kind == CONTINUATION => self.kind = head.opcode,
            _ => return Err(Fault::Protocol),
        }
        let whole = (self.message.len() as u64).saturating_add(head.left);
        if head.left > self.max_frame || whole > self.max_message {
            return Err(Fault::TooLarge);
        }
        self.pieces += 1;
        if self.pieces > MAX_PIECES + self.message.len() / BYTES_OF_A_PIECE {
            return Err(Fault::Crumbs);
        }
        Ok(())
    }

    fn finish(&mut self, opcode: u8, is_final: bool, outcome: &mut Outcome) -> Result<(), Fault> {
        match opcode {
            PING => {
                outcome.controls += 1;
                let payload = std::mem::take(&mut self.control);
                if let Some(Event::Ping(last)) = outcome.events.last_mut() {
                    *last = payload;
                } else {
                    outcome.events.push(Event::Ping(payload));
                }
            }
            PONG => outcome.controls += 1,
            CLOSE => {
                outcome.events.push(Event::Close(closing(&self.control)?));
                self.end();
            }
            _ if is_final => {
                let message = std::mem::take(&mut self.message);
                self.pieces = 0;
                let kind = std::mem::replace(&mut self.kind, CONTINUATION);
                if kind == BINARY {
                    outcome.events.push(Event::Binary(message));
                } else if std::str::from_utf8(&message).is_ok() {
                    outcome.events.push(Event::Text(message));
                } else {
                    return Err(Fault::Text);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Reserve memory for one and a half times the received bytes of a payload. The announced length is not trusted.
fn reserve(target: &mut Vec<u8>, size: usize, left: u64) {
    if target.capacity() - target.len() < size {
        let ahead = (target.len() / 2).min(usize::try_from(left).unwrap_or(usize::MAX) - size);
        target.reserve_exact(size + ahead);
    }
}

/// Return the length of the frame header, or the minimum length if the header is incomplete.
fn head_size(head: &[u8]) -> usize {
    match head.get(1) {
        None => 2,
        Some(second) => {
            let length = match second & 0x7F {
                127 => 8,
                126 => 2,
                _ => 0,
            };
            (2 + length + if second & 0x80 != 0 { 4 } else { 0 }).min(MAX_HEADER_BYTES)
        }
    }
}

fn parsed(head: &[u8]) -> Result<Head, Fault> {
    let (first, second) = (head[0], head[1]);
    // refuse frames with reserved bits, which only extensions use, and unmasked frames, because clients must mask
    // frames
    if first & 0x70 != 0 || second & 0x80 == 0 {
        return Err(Fault::Protocol);
    }
    let (length, mask) = head[2..].split_at(head.len() - 6);
    let left = match second & 0x7F {
        short @ 0..=125 => u64::from(short),
        _ => length.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    let is_shortest = match length.len() {
        0 => true,
        2 => left > 125,
        _ => left > 0xFFFF && left >> 63 == 0,
    };
    if !is_shortest {
        return Err(Fault::Protocol);
    }
    let mask = mask.try_into().expect("a head ends with its mask");
    Ok(Head { is_final: first & 0x80 != 0, opcode: first & 0x0F, mask, left, turn: 0 })
}

fn unmask(data: &mut [u8], mask: [u8; 4], turn: usize) {
    if mask == [0; 4] {
        return;
    }
    let mut turned = mask;
    turned.rotate_left(turn);
    let wide = u64::from_ne_bytes([turned, turned].concat().try_into().expect("eight bytes"));
    let mut chunks = data.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let word = u64::from_ne_bytes((&*chunk).try_into().expect("eight bytes")) ^ wide;
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    for (place, byte) in chunks.into_remainder().iter_mut().enumerate() {
        *byte ^= turned[place % 4];
    }
}

/// Return the optional code of a close frame. A code that must not be sent is a fault.
fn closing(payload: &[u8]) -> Result<Option<u16>, Fault> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return if payload.is_empty() { Ok(None) } else { Err(Fault::Protocol) };
    };
    let code = u16::from_be_bytes(*code);
    match code {
        1000..=1003 | 1007..=1014 | 3000..=4999 => {}
        _ => return Err(Fault::Protocol),
    }
    std::str::from_utf8(reason).map_err(|_| Fault::Text)?;
    Ok(Some(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            size @ 0..=125 => bytes.push(0x80 | size as u8),
            size @ 126..=0xFFFF => {
                bytes.push(0xFE);
                bytes.extend((size as u16).to_be_bytes());
            }
            size => {
                bytes.push(0xFF);
                bytes.extend((size as u64).to_be_bytes());
            }
        }
        bytes.extend(MASK);
        bytes.extend(payload.iter().enumerate().map(|(place, byte)| byte ^ MASK[place % 4]));
        bytes
    }

    fn read(bytes: &[u8]) -> Outcome {
        Reader::new(1 << 20, 1 << 20).read(bytes, usize::MAX)
    }

    fn text(what: &str) -> Event {
        Event::Text(what.as_bytes().to_vec())
    }

    #[test]
    fn messages_arrive_whole_in_whatever_pieces() {
        let long = "é".repeat(40_000);
        let bytes = [
            frame(0x81, b"one"),
            frame(0x01, b"tw"),
            frame(0x89, b"?"),
            frame(0x80, b"o"),
            frame(0x82, b"\xff"),
            frame(0x81, long.as_bytes()),
        ]
        .concat();
        let expected =
            vec![text("one"), Event::Ping(b"?".to_vec()), text("two"), Event::Binary(vec![0xff]), text(&long)];
        assert_eq!(read(&bytes).events, expected);
        for size in [1, 2, 3, 5, 7, 1000] {
            let mut reader = Reader::new(1 << 20, 1 << 20);
            let events: Vec<Event> = bytes.chunks(size).flat_map(|part| reader.read(part, usize::MAX).events).collect();
            assert_eq!(events, expected, "in pieces of {size}");
            assert_eq!(reader.held(), 0);
        }
    }

    #[test]
    fn a_call_looks_at_so_many_frames() {
        let bytes = frame(0x81, b"x").repeat(10);
        let mut reader = Reader::new(100, 100);
        let first = reader.read(&bytes, 4);
        assert_eq!((first.events.len(), first.consumed), (4, 4 * 7));
        assert_eq!(reader.read(&bytes[first.consumed..], 100).events.len(), 6);
    }

    #[test]
    fn pings_that_come_together_are_one() {
        let outcome = read(&[frame(0x89, b"a"), frame(0x89, b"b"), frame(0x8A, b""), frame(0x89, b"c")].concat());
        assert_eq!((outcome.events, outcome.controls), (vec![Event::Ping(b"c".to_vec())], 4));
    }

    #[test]
    fn faults_have_codes() {
        let unmasked = vec![0x81, 0x01, b'x'];
        let masked = |first: u8, length: &[u8]| [&[first], length, &[0; 4]].concat();
        for (bytes, fault) in [
            (unmasked, Fault::Protocol),
            (frame(0xC1, b"x"), Fault::Protocol),
            (frame(0x83, b"x"), Fault::Protocol),
            (frame(0x8B, b"x"), Fault::Protocol),
            (frame(0x80, b"x"), Fault::Protocol),
            (frame(0x09, b"x"), Fault::Protocol),
            (frame(0x89, &[0; 126]), Fault::Protocol),
            ([frame(0x01, b"x"), frame(0x81, b"x")].concat(), Fault::Protocol),
            (masked(0x81, &[0xFE, 0, 125]), Fault::Protocol),
            (masked(0x81, &[0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]), Fault::Protocol),
            (masked(0x81, &[0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0]), Fault::Protocol),
            (frame(0x88, b"x"), Fault::Protocol),
            (frame(0x88, &1005u16.to_be_bytes()), Fault::Protocol),
            (frame(0x88, &999u16.to_be_bytes()), Fault::Protocol),
            (frame(0x88, b"\x03\xe8\xff"), Fault::Text),
            (frame(0x81, b"\xff"), Fault::Text),
            (masked(0x81, &[0xFF, 0, 0, 0, 0, 0, 0x10, 0, 1]), Fault::TooLarge),
            ([frame(0x01, &[b'x'; 700_000]), masked(0x80, &[0xFF, 0, 0, 0, 0, 0, 8, 0, 0])].concat(), Fault::TooLarge),
        ] {
            let outcome = read(&bytes);
            assert_eq!(outcome.fault, Some(fault), "{:x?}", &bytes[..bytes.len().min(20)]);
            assert_eq!(outcome.consumed, bytes.len());
        }
    }

    #[test]
    fn crumbs_are_a_fault_and_pieces_are_not() {
        let crumbs = [frame(0x01, b""), frame(0x00, b"").repeat(5000)].concat();
        assert_eq!(read(&crumbs).fault, Some(Fault::Crumbs));
        let letters = [frame(0x01, b"["), frame(0x00, b" ").repeat(5000)].concat();
        assert_eq!(read(&letters).fault, Some(Fault::Crumbs));
        let pieces = [frame(0x01, b"["), frame(0x00, &[b' '; 100]).repeat(5000)].concat();
        assert_eq!(read(&pieces).fault, None);
    }

    #[test]
    fn nothing_is_looked_at_after_the_end() {
        for last in [frame(0x88, &1000u16.to_be_bytes()), frame(0x88, b""), frame(0x83, b"")] {
            let mut reader = Reader::new(100, 100);
            reader.read(&[frame(0x01, b"x"), last].concat(), usize::MAX);
            assert_eq!(reader.held(), 0);
            let after = reader.read(&frame(0x81, b"x"), usize::MAX);
            assert_eq!((after.events, after.fault, after.consumed), (vec![], None, 7));
        }
    }

    #[test]
    fn announced_is_not_held() {
        let mut reader = Reader::new(1 << 24, 1 << 24);
        reader.read(&[0x81, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, b'x'], usize::MAX);
        assert!(reader.held() < 100);
    }
}
