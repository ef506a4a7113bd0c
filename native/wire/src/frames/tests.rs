use super::*;
use crate::vectors::{Numbers, array, vector};

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Content::Payload(one), Content::Payload(two)) => one == two,
            (Content::Oversized(one), Content::Oversized(two)) => one == two,
            _ => false,
        }
    }
}

/// Return both sides of a connection after Hello.
fn pair() -> (Session, Session) {
    let mac = |message: &[u8]| RunningMac::new(&[7; 32], &[9; 32], message);
    let mut a = Session::new(&[3; 32], mac(b"a"), mac(b"b"));
    let mut b = Session::new(&[3; 32], mac(b"b"), mac(b"a"));
    for side in [&mut a, &mut b] {
        side.egress.is_compressed = true;
        side.ingress.set_compressed(true);
        side.ingress.set_max_message(MAX_MESSAGE);
    }
    (a, b)
}

fn seal(side: &mut Session, messages: &[(u8, &[u8])]) -> Vec<u8> {
    side.egress.seal(messages.iter().copied()).unwrap()
}

/// Seal a frame with a body that an honest session never sends.
fn seal_body(side: &mut Session, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 32];
    frame.extend_from_slice(body);
    frame.resize(32 + padded(body.len()) + 16, 0);
    side.egress.encrypt(&mut frame, body.len());
    frame
}

#[test]
fn the_cipher_of_the_specification() {
    let mut session = Session::new(&array("frame_key"), RunningMac::new(&[0; 32], &[0; 32], b""), pair().0.ingress.mac);
    let sent = seal(&mut session, &[(8, &[0xc4, 1, 2, 3, 4])]);
    assert_eq!(sent[..16], vector("frame_header"));
    assert_eq!(sent[32..48], vector("frame_body"));
}

#[test]
fn payloads_of_the_specification() {
    let (mut a, mut b) = pair();
    for name in ["nothing", "ping", "disconnect", "bare_disconnect", "unknown_disconnect", "requested_disconnect"] {
        let (plain, snappy) = (vector(&format!("plain_{name}")), vector(&format!("snappy_{name}")));
        let mut out = Vec::new();
        a.egress.put_payload(&plain, &mut out);
        assert_eq!(out, snappy, "{name}");
        let frame = seal_body(&mut a, &[&[2][..], &snappy].concat());
        assert_eq!(b.ingress.feed(&frame).unwrap(), [(2, Content::Payload(plain))], "{name}");
    }
}

#[test]
fn any_cut_of_the_stream_gives_the_same_messages() {
    let mut numbers = Numbers::new(5);
    let noise = numbers.bytes(3_000);
    let zeros = vec![0; 70_000];
    let messages: Vec<(u8, &[u8])> =
        vec![(0, b""), (2, &[0xc0]), (0x7f, &noise), (0x80, &zeros), (0xff, &noise[..15]), (0x10, &noise[..16])];
    let expected: Vec<Message> =
        messages.iter().map(|(id, payload)| (*id, Content::Payload(payload.to_vec()))).collect();
    for most in [1, 2, 15, 16, 17, 33, 1000, 100_000] {
        let (mut a, mut b) = pair();
        let sent = seal(&mut a, &messages);
        let mut got = Vec::new();
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let size = if most == 1 { 1 } else { 1 + numbers.below(most) }.min(rest.len());
            got.extend(b.ingress.feed(&rest[..size]).unwrap());
            rest = &rest[size..];
        }
        assert_eq!(got, expected, "pieces of up to {most}");
        assert_eq!(b.ingress.buffered(), 0);
    }
}

#[test]
fn every_bit_is_authenticated() {
    let sent = seal(&mut pair().0, &[(0x10, b"some payload that is longer than a block")]);
    for at in 0..sent.len() {
        let (_, mut b) = pair();
        let mut spoiled = sent.clone();
        spoiled[at] ^= 1 << (at % 8);
        let error = b.ingress.feed(&spoiled).unwrap_err();
        let place = if at < 32 { "frame header" } else { "frame body" };
        assert_eq!(error.to_string(), format!("{place}: its authentication code is wrong"), "byte {at}");
        assert_eq!(b.ingress.feed(b"").unwrap_err(), error, "it stays broken");
        assert_eq!(b.ingress.buffered(), 0, "and holds nothing");
    }
}

#[test]
fn a_size_is_refused_before_its_body_arrives() {
    let (mut a, mut b) = pair();
    let noise = Numbers::new(2).bytes(5_000);
    let sent = seal(&mut a, &[(0x10, &noise)]);
    b.ingress.set_max_message(4_000);
    assert!(b.ingress.feed(&sent[..31]).is_ok());
    let error = b.ingress.feed(&sent[31..32]).unwrap_err();
    assert!(error.to_string().ends_with("at most 4000 are taken"), "{error}");
}

#[test]
fn empty_frames_and_odd_ids_are_refused() {
    for body in [&b""[..], &[0x00], &[0x81], &[0x81, 0x05], &[0x82, 1, 2], &[0xc0], &[0xff]] {
        let (mut a, mut b) = pair();
        let frame = seal_body(&mut a, body);
        assert!(b.ingress.feed(&frame).is_err(), "{body:?}");
    }
}

#[test]
fn an_announced_size_is_checked() {
    // the cases are an announced size of 2^24, a size of 2^24 - 1 with few bytes, and an invalid length
    for (payload, problem) in [
        (&[0x80, 0x80, 0x80, 0x08][..], "at most 16777215 are taken"),
        (&[0xff, 0xff, 0xff, 0x07, 0, 0], "cannot hold"),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "corrupt"),
        (&[], "empty"),
        (&[4, 0], ""),
    ] {
        let (mut a, mut b) = pair();
        let frame = seal_body(&mut a, &[&[0x10][..], payload].concat());
        let error = b.ingress.feed(&frame).unwrap_err().to_string();
        assert!(error.starts_with("message 0x10: ") && error.contains(problem), "{error}");
    }
}

#[test]
fn the_size_limit_holds_after_decompression() {
    let (mut a, mut b) = pair();
    let zeros = vec![0; MAX_MESSAGE];
    let sent = seal(&mut a, &[(0x10, &zeros)]);
    assert!(sent.len() > zeros.len() / SNAPPY_RATIO, "{} bytes: the ratio holds at its best", sent.len());
    assert_eq!(b.ingress.feed(&sent).unwrap(), [(0x10, Content::Payload(zeros.clone()))]);
    b.ingress.set_max_message(10 << 20);
    let sent = seal(&mut a, &[(0x10, &zeros)]);
    let error = b.ingress.feed(&sent).unwrap_err();
    assert_eq!(error.to_string(), "message 0x10: 16777215 bytes, at most 10485760 are taken");
}

#[test]
fn a_body_reserves_no_more_than_its_size() {
    let (mut a, mut b) = pair();
    a.egress.is_compressed = false;
    b.ingress.set_compressed(false);
    let noise = Numbers::new(3).bytes(300_000);
    let sent = seal(&mut a, &[(0x10, &noise)]);
    for piece in sent[..290_000].chunks(1_000) {
        assert!(b.ingress.feed(piece).unwrap().is_empty());
        let Part::Body { body, size } = &b.ingress.part else { panic!("inside the body") };
        assert!(body.capacity() <= padded(*size) && body.capacity() <= 2 * body.len().max(1_000));
    }
    assert_eq!(b.ingress.buffered(), 290_000);
}

#[test]
fn a_message_too_large_to_send_leaves_the_session_as_it_was() {
    let (mut a, mut b) = pair();
    a.egress.is_compressed = false;
    b.ingress.set_compressed(false);
    let large = vec![0; MAX_MESSAGE + 1];
    for size in [MAX_MESSAGE, MAX_MESSAGE + 1] {
        assert!(a.egress.seal([(1, &b"first"[..]), (2, &large[..size])].into_iter()).is_err(), "{size}");
    }
    let sent = seal(&mut a, &[(1, b"first")]);
    assert_eq!(b.ingress.feed(&sent).unwrap(), [(1, Content::Payload(b"first".to_vec()))]);
}

#[test]
fn the_first_message_comes_alone() {
    let mac = |message: &[u8]| RunningMac::new(&[7; 32], &[9; 32], message);
    let mut a = Session::new(&[3; 32], mac(b"a"), mac(b"b"));
    let mut b = Session::new(&[3; 32], mac(b"b"), mac(b"a"));
    let noise = Numbers::new(4).bytes(9_000);
    let mut sent = seal(&mut a, &[(0, b"hello")]);
    a.egress.is_compressed = true;
    sent.extend(seal(&mut a, &[(0x10, b"status"), (0x12, &noise)]));
    let (first, second) = sent.split_at(sent.len() - 50);
    assert_eq!(b.ingress.feed(first).unwrap(), [(0, Content::Payload(b"hello".to_vec()))]);
    assert!(b.ingress.buffered() > 9_000);
    b.ingress.set_compressed(true);
    b.ingress.set_max_message(10_000);
    assert_eq!(b.ingress.feed(b"").unwrap(), [(0x10, Content::Payload(b"status".to_vec()))]);
    assert_eq!(b.ingress.feed(second).unwrap(), [(0x12, Content::Payload(noise))]);
}

#[test]
fn bytes_after_the_first_message_are_bounded() {
    let (mut a, mut b) = pair();
    let hello = seal_body(&mut a, b"\x80hello");
    b.ingress.is_compressed = None;
    let error = b.ingress.feed(&[hello, vec![0; MAX_WAITING + 1]].concat()).unwrap_err();
    assert_eq!(error.to_string(), "session: too many bytes before the first message was answered");
}

#[test]
fn a_disconnect_may_come_uncompressed() {
    for payload in [&[][..], &[0x04], &[0xc1, 0x04], &[0xc0], &[0xc1, 0x80]] {
        let (mut a, mut b) = pair();
        let frame = seal_body(&mut a, &[&[1][..], payload].concat());
        assert_eq!(b.ingress.feed(&frame).unwrap(), [(1, Content::Payload(payload.to_vec()))]);
    }
}

#[test]
fn spoiled_streams_are_errors_or_messages() {
    let mut numbers = Numbers::new(11);
    for _ in 0..2_000 {
        let (mut a, mut b) = pair();
        let size = numbers.below(400);
        let body = numbers.bytes(size);
        let mut stream = seal_body(&mut a, &body);
        if numbers.below(2) == 0 {
            stream = numbers.spoiled(&stream);
        }
        for piece in stream.chunks(1 + numbers.below(80)) {
            if b.ingress.feed(piece).is_err() {
                break;
            }
        }
    }
}

/// Tests Snappy input with arbitrary bytes.
#[test]
fn spoiled_snappy_is_an_error_or_a_payload() {
    let mut numbers = Numbers::new(13);
    let mut sound = Vec::new();
    pair().0.egress.put_payload(&b"around and around and around it goes".repeat(20), &mut sound);
    for _ in 0..5_000 {
        let (mut a, mut b) = pair();
        let spoiled = numbers.spoiled(&sound);
        let frame = seal_body(&mut a, &[&[0x20][..], &spoiled].concat());
        let _ = b.ingress.feed(&frame);
    }
}

#[test]
fn a_payload_over_the_limit_of_its_id_is_not_decompressed() {
    for is_compressed in [true, false] {
        let (mut a, mut b) = pair();
        for side in [&mut a, &mut b] {
            side.egress.is_compressed = is_compressed;
            side.ingress.set_compressed(is_compressed);
        }
        b.ingress.set_max_size(0x17, 1000);
        let zeros = vec![0; 1001];
        let messages = [(0x17, &zeros[..]), (0x17, &zeros[1..]), (0x18, &zeros[..])];
        let sent = a.egress.seal(messages.into_iter()).unwrap();
        let expected = [
            (0x17, Content::Oversized(1001)),
            (0x17, Content::Payload(zeros[1..].to_vec())),
            (0x18, Content::Payload(zeros.clone())),
        ];
        assert_eq!(b.ingress.feed(&sent).unwrap(), expected);
    }
}

#[test]
fn a_large_message_is_decompressed_while_it_arrives() {
    let (mut a, mut b) = pair();
    let mut numbers = Numbers::new(6);
    let mixed = [numbers.bytes(40_000), vec![3; 400_000], numbers.bytes(60_001)].concat();
    let sent = seal(&mut a, &[(0x85, &mixed), (0x10, &mixed[..10])]);
    let mut got = Vec::new();
    for piece in sent.chunks(1_000) {
        got.extend(b.ingress.feed(piece).unwrap());
        assert!(b.ingress.piece.capacity() <= 2_000, "holds one piece of the compressed bytes at most");
    }
    assert_eq!(got, [(0x85, Content::Payload(mixed.clone())), (0x10, Content::Payload(mixed[..10].to_vec()))]);
    assert_eq!(b.ingress.buffered(), 0);
}

#[test]
fn a_large_message_is_authenticated() {
    let noise = Numbers::new(7).bytes(20_000);
    let sent = seal(&mut pair().0, &[(0x10, &noise)]);
    for at in (0..sent.len()).step_by(61).chain(sent.len() - 17..sent.len()) {
        let (_, mut b) = pair();
        let mut spoiled = sent.clone();
        spoiled[at] ^= 1 << (at % 8);
        b.ingress.feed(&spoiled).unwrap_err();
        assert_eq!(b.ingress.buffered(), 0, "and holds nothing");
    }
}

#[test]
fn a_large_message_over_its_limit_is_dropped_as_it_arrives() {
    let (mut a, mut b) = pair();
    let noise = Numbers::new(8).bytes(100_000);
    b.ingress.set_max_size(0x17, 99_999);
    let sent = seal(&mut a, &[(0x17, &noise), (0x18, &noise)]);
    assert!(b.ingress.feed(&sent[..50_000]).unwrap().is_empty());
    assert!(b.ingress.buffered() < 100);
    let expected = [(0x17, Content::Oversized(100_000)), (0x18, Content::Payload(noise))];
    assert_eq!(b.ingress.feed(&sent[50_000..]).unwrap(), expected);
}

#[test]
fn the_announced_size_of_a_large_message_is_checked() {
    let body = |start: &[u8]| [start, &vec![0; 20_000][..]].concat();
    for (start, problem) in [
        (&[0x10, 0x80, 0x80, 0x80, 0x08][..], "at most 16777215 are taken"),
        (&[0x10, 0xff, 0xff, 0xff, 0x07], "cannot hold"),
        (&[0x10, 0xff, 0xff, 0xff, 0xff, 0xff], "corrupt"),
        (&[0x81, 0x90, 0x90, 0xa0, 0x01], "corrupt"),
        (&[0x81, 0x10], "no number"),
    ] {
        let (mut a, mut b) = pair();
        let frame = seal_body(&mut a, &body(start));
        let error = b.ingress.feed(&frame).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
