use super::*;
use crate::frames::Content;
use crate::vectors::{Numbers, array, vector};

fn entropy(seed: u64) -> Vec<u8> {
    Numbers::new(seed).bytes(ENTROPY)
}

/// Return the initiator of the EIP-8 test vectors.
fn initiator() -> Initiator {
    Initiator {
        secret: keys::secret(&vector("initiator_key")).unwrap(),
        ephemeral: keys::secret(&vector("initiator_ephemeral_key")).unwrap(),
        nonce: array("initiator_nonce"),
        auth: vector("auth"),
    }
}

/// Return the transcript of the session on the recipient's side.
fn recipient_transcript<'a>(auth: &'a [u8], ack: &'a [u8]) -> Transcript<'a> {
    Transcript { auth, ack, initiator_nonce: array("initiator_nonce"), recipient_nonce: array("recipient_nonce") }
}

#[test]
fn messages_of_the_specification_open() {
    let recipient = keys::secret(&vector("recipient_key")).unwrap();
    for name in ["auth", "auth_of_later_version"] {
        let (auth, _, ephemeral) = read_auth(&recipient, &vector(name)).unwrap();
        assert_eq!(auth.signature.to_vec(), vector("auth_signature"));
        assert_eq!(auth.id.to_vec(), vector("initiator_id"));
        assert_eq!(auth.nonce.to_vec(), vector("initiator_nonce"));
        assert_eq!(keys::id_of(&ephemeral).to_vec(), vector("initiator_ephemeral_id"));
    }
    let initiator = keys::secret(&vector("initiator_key")).unwrap();
    for name in ["ack", "ack_of_later_version"] {
        let ack = Ack::decode(&open("ack", &initiator, &vector(name)).unwrap()).unwrap();
        assert_eq!(ack.ephemeral.to_vec(), vector("recipient_ephemeral_id"));
        assert_eq!(ack.nonce.to_vec(), vector("recipient_nonce"));
    }
}

#[test]
fn a_caller_is_named_before_it_is_answered() {
    let recipient = vector("recipient_key");
    for name in ["auth", "auth_of_later_version"] {
        assert_eq!(caller(&recipient, &vector(name)).unwrap().to_vec(), vector("initiator_id"));
        assert!(caller(&vector("initiator_key"), &vector(name)).is_err());
    }
}

#[test]
fn secrets_of_the_specification() {
    let recipient_ephemeral = keys::secret(&vector("recipient_ephemeral_key")).unwrap();
    let initiator_ephemeral = keys::public("", &vector("initiator_ephemeral_id")).unwrap();
    let ephemeral = keys::agree(&recipient_ephemeral, &initiator_ephemeral);
    assert_eq!(ephemeral, array("ephemeral_shared_secret"));
    let (auth, ack) = (vector("auth"), vector("ack"));
    let transcript = recipient_transcript(&auth, &ack);
    assert_eq!(secrets(&ephemeral, &transcript), (array("cipher_secret"), array("mac_secret")));
    let mac: [u8; 32] = array("mac_secret");
    let mut ingress = RunningMac::new(&mac, &transcript.recipient_nonce, &auth);
    let egress = RunningMac::new(&mac, &transcript.initiator_nonce, &ack);
    assert_eq!(ingress.whole_digest(), array("ingress_digest"));
    assert_eq!(egress.whole_digest(), array("egress_digest"));
    ingress.update(b"foo");
    assert_eq!(ingress.whole_digest(), array("ingress_digest_after_foo"));
}

#[test]
fn the_static_secret_and_the_signature_over_it() {
    let secret = keys::secret(&vector("initiator_key")).unwrap();
    let token = keys::agree(&secret, &keys::public("", &vector("recipient_id")).unwrap());
    assert_eq!(token, array("static_shared_secret"));
    let signed = xor(token, &array("initiator_nonce"));
    let ephemeral = keys::secret(&vector("initiator_ephemeral_key")).unwrap();
    for signature in [vector("auth_signature"), keys::sign(&ephemeral, signed).to_vec()] {
        let signer = keys::recover("", signed, &signature).unwrap();
        assert_eq!(keys::id_of(&signer).to_vec(), vector("initiator_ephemeral_id"));
    }
}

#[test]
fn frames_of_the_specification_both_ways() {
    let (auth, ack) = (vector("auth"), vector("ack"));
    let mut recipient = session(&array("ephemeral_shared_secret"), &recipient_transcript(&auth, &ack), false);
    let messages: [(u8, &[u8]); 2] = [(8, &[0xc4, 1, 2, 3, 4]), (2, &[0xc0])];
    let sent = recipient.egress.seal(messages.into_iter()).unwrap();
    assert_eq!(sent, [vector("first_frame"), vector("second_frame")].concat());
    let mut initiator = initiator().finish(&ack).unwrap();
    initiator.ingress.set_compressed(false);
    let got = initiator.ingress.feed(&sent).unwrap();
    assert_eq!(got, messages.map(|(id, payload)| (id, Content::Payload(payload.to_vec()))));
}

#[test]
fn two_sides_meet() {
    let (a, b) = (vector("initiator_key"), vector("recipient_key"));
    for seed in 0..20 {
        let initiator = Initiator::new(&a, &vector("recipient_id"), &entropy(seed)).unwrap();
        let answer = answer(&b, initiator.auth(), &entropy(seed + 100)).unwrap();
        assert_eq!(answer.remote.to_vec(), vector("initiator_id"));
        for message in [initiator.auth(), &answer.ack] {
            assert!(message.len() > 307 && message.len() <= MAX_SIZE + 2, "{} bytes", message.len());
        }
        let mut theirs = answer.session;
        let mut ours = initiator.finish(&answer.ack).unwrap();
        let sent = ours.egress.seal([(0, &b"hello"[..])].into_iter()).unwrap();
        assert_eq!(theirs.ingress.feed(&sent).unwrap(), [(0, Content::Payload(b"hello".to_vec()))]);
        let back = theirs.egress.seal([(0x10, &b"status"[..])].into_iter()).unwrap();
        assert_eq!(ours.ingress.feed(&back).unwrap(), [(0x10, Content::Payload(b"status".to_vec()))]);
    }
}

#[test]
fn what_is_meant_for_another_key_does_not_open() {
    let wrong = keys::secret(&vector("recipient_ephemeral_key")).unwrap();
    let error = read_auth(&wrong, &vector("auth")).err().unwrap();
    assert_eq!(error.to_string(), "auth: it is not meant for this key");
}

#[test]
fn sizes_are_checked_first() {
    let secret = vector("recipient_key");
    for (size, length) in [(0, 0), (1, 0), (112, 112), (2049, 2049), (65535, 65535), (300, 299), (300, 301)] {
        let mut message = u16::to_be_bytes(size).to_vec();
        message.resize(2 + length, 4);
        assert!(answer(&secret, &message, &entropy(1)).is_err(), "{size} {length}");
    }
    assert!(answer(&secret, &[], &entropy(1)).is_err());
    assert!(answer(&secret, &[1], &entropy(1)).is_err());
}

#[test]
fn keys_and_entropy_must_have_their_sizes() {
    let id = vector("recipient_id");
    assert!(Initiator::new(&[0; 32], &id, &entropy(1)).is_err());
    assert!(Initiator::new(&[1; 31], &id, &entropy(1)).is_err());
    assert!(Initiator::new(&[1; 32], &[7; 64], &entropy(1)).is_err());
    assert!(Initiator::new(&[1; 32], &id[1..], &entropy(1)).is_err());
    assert!(Initiator::new(&[1; 32], &id, &entropy(1)[1..]).is_err());
    assert!(Initiator::new(&[1; 32], &id, &[0; ENTROPY]).is_ok(), "even no randomness makes a key");
    assert!(Initiator::new(&[1; 32], &id, &[0xff; ENTROPY]).is_ok());
}

#[test]
fn spoiled_messages_are_errors() {
    let mut numbers = Numbers::new(7);
    let (secret, auth, ack) = (vector("recipient_key"), vector("auth"), vector("ack"));
    let initiator = initiator();
    for _ in 0..500 {
        let spoiled = numbers.spoiled(&auth);
        assert!(spoiled == auth || answer(&secret, &spoiled, &entropy(3)).is_err());
        let spoiled = numbers.spoiled(&ack);
        assert!(spoiled == ack || initiator.finish(&spoiled).is_err());
    }
}

/// Tests a valid envelope with invalid content.
#[test]
fn nonsense_inside_the_envelope_is_an_error() {
    let mut numbers = Numbers::new(9);
    let secret = vector("recipient_key");
    let to = keys::public("", &vector("recipient_id")).unwrap();
    let (auth, _, _) = read_auth(&keys::secret(&secret).unwrap(), &vector("auth")).unwrap();
    let sound = auth.encode();
    for round in 0..500 {
        let text = if round % 2 == 0 { numbers.spoiled(&sound) } else { numbers.bytes(round) };
        let sealed = Entropy::new(&numbers.bytes(ENTROPY)).unwrap().seal(&to, text);
        let _ = answer(&secret, &sealed, &entropy(3));
    }
}
