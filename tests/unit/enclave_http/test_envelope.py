"""Boxes between two enclaves are bound to sender, recipient, purpose and request."""

from __future__ import annotations

import json
from random import Random

import pytest

from ophion.enclave_http.envelope import Envelope, open_answer, open_request, seal_answer, seal_request
from ophion.errors import DecodeError
from ophion.native.enclave import EnclaveKeyring
from ophion.runtime.clock import SystemEntropy

ENTROPY = SystemEntropy()
A, B, EVIL = (EnclaveKeyring([bytes([number]) * 32]) for number in (1, 2, 3))
KA, KB, KE = (ring.public_keys[0] for ring in (A, B, EVIL))


def request(message: bytes = b"hello", path: bytes = b"/push") -> Envelope:
    return seal_request(A, ENTROPY, KA, KB, path, message)


def test_a_request_and_its_answer() -> None:
    asked = Envelope.decode(request().encode())
    assert open_request(B, b"/push", asked) == b"hello"
    answer = Envelope.decode(seal_answer(B, ENTROPY, asked, b"well").encode())
    assert open_answer(A, asked, answer) == b"well"


def test_a_request_is_for_one_key_and_one_thing() -> None:
    asked = request()
    assert open_request(B, b"/list", asked) is None
    assert open_request(B, b"/pus", asked) is None
    assert open_request(EVIL, b"/push", asked) is None
    assert open_request(B, b"/push", asked._replace(sender=KE)) is None
    changed = bytes([asked.boxed[0] ^ 1]) + asked.boxed[1:]
    assert open_request(B, b"/push", asked._replace(boxed=changed)) is None


def test_a_box_is_not_sent_back_to_its_sender() -> None:
    """Both directions share one secret, so the sealed text names the direction.

    A box that is returned to its sender is refused.
    """
    asked = request()
    assert open_request(A, b"/push", asked._replace(sender=KB, recipient=KA)) is None
    assert open_request(A, b"/push", asked) is None
    assert open_answer(A, asked, asked._replace(sender=KB, recipient=KA)) is None


def test_an_answer_belongs_to_its_request() -> None:
    first, second = request(), request()
    answer = seal_answer(B, ENTROPY, first, b"well")
    assert open_answer(A, second, answer) is None
    foreign_request = seal_request(EVIL, ENTROPY, KE, KA, b"/push", b"")
    assert open_answer(A, first, foreign_request) is None


def test_nothing_is_sealed_for_a_point_of_low_order() -> None:
    with pytest.raises(DecodeError):
        seal_request(A, ENTROPY, KA, bytes(32), b"/push", b"")


def test_whatever_is_no_envelope_is_one_error() -> None:
    good = json.loads(request().encode())
    bodies = [b"", b"[]", b"{}", b"5", b"null", b"\xff" * 40]
    bodies += [json.dumps({**good, name: value}).encode() for name in good for value in (None, 7, "!", "QUJD", [])]
    chance = Random(17)
    whole = request().encode()
    bodies += [whole[: chance.randrange(len(whole))] for _ in range(200)]
    for body in bodies:
        try:
            envelope = Envelope.decode(body)
        except DecodeError:
            continue
        assert open_request(B, b"/push", envelope) is None


def test_objects_are_made_of_nothing_that_has_more_than_an_envelope_in_it() -> None:
    whole = request().encode()
    with pytest.raises(DecodeError):
        Envelope.decode(whole[:-1] + b',"x":[' + b"[]," * 1_000_000 + b"0]}")
