"""Peers prove claimed keys, and do not answer relayed challenges."""

from __future__ import annotations

from ophion.native.enclave import EnclaveKeyring
from ophion.peers.priv.key_proofs import KeyProver
from ophion.peers.priv.messages import Challenge
from ophion.runtime.clock import SystemEntropy

ENTROPY = SystemEntropy()
A, B, M = b"\xaa" * 64, b"\xbb" * 64, b"\xee" * 64
RING_B = EnclaveKeyring([b"\2" * 32])
[KEY_B] = RING_B.public_keys
EMPTY = EnclaveKeyring([b"\3" * 32])


def examiner(ring: EnclaveKeyring, here: bytes, there: bytes) -> KeyProver:
    return KeyProver(ring, here, there, ENTROPY)


def test_the_holder_of_a_key_proves_it_once() -> None:
    asking, answering = examiner(EMPTY, A, B), examiner(RING_B, B, A)
    proofs = answering.prove(asking.challenge([KEY_B]))
    assert asking.check(proofs) == [KEY_B]
    assert asking.check(proofs) == []


def test_another_key_cannot_answer() -> None:
    asking, liar = examiner(EMPTY, A, M), examiner(EMPTY, M, A)
    challenges = asking.challenge([KEY_B])
    assert liar.prove(challenges) == []
    assert asking.check([(KEY_B, bytes(32))]) == []


def test_a_challenge_that_is_passed_on_is_not_answered() -> None:
    """M claims to hold B's key, and forwards A's challenge to B as its own challenge. B does not answer it."""
    asking = examiner(EMPTY, A, M)
    challenges = asking.challenge([KEY_B])
    assert examiner(RING_B, B, M).prove(challenges) == []
    assert examiner(RING_B, B, A).prove(challenges) == []


def test_claims_that_are_no_keys_are_not_even_asked() -> None:
    assert examiner(EMPTY, A, B).challenge([bytes(32), b"\1" + bytes(31)]) == []


def test_a_challenge_does_not_open_other_boxes() -> None:
    """The node answers a challenge only if its text has the right form, so a peer cannot get payload keys decrypted."""
    nonce = bytes(24)
    [ephemeral] = EMPTY.public_keys
    boxed = EMPTY.box_for(ephemeral, KEY_B, nonce, b"a payload's key of 32 bytes.....")
    assert boxed is not None
    assert examiner(RING_B, B, A).prove([Challenge(KEY_B, ephemeral, nonce, boxed)]) == []
