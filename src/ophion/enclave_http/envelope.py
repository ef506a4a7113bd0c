"""What two enclaves say to each other over HTTP: each request and each answer is boxed between two of their keys.

The box proves both ends: whoever opens it knows that it comes from the holder of the other key, and nobody on the way
reads or changes it. So no certificates are needed, and nothing has to be agreed on beforehand. The same two keys make
the same secret in both directions; the text in a box therefore says from whom to whom it goes, what is asked, and an
answer which request it answers. A request that somebody sends again does nothing new: what it brings is here already,
and what it asks for is answered in a box.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from ophion.enclave.encoding import base64_text, read_base64, read_key
from ophion.enclave.interface import KEY_SIZE
from ophion.enclave_http.request_bodies import has_few_values
from ophion.errors import DecodeError
from ophion.native.enclave import EnclaveKeyring
from ophion.runtime.clock import Entropy

NONCE_SIZE: Final = 24
_MAX_VALUES: Final = 32
_REQUEST: Final = b"ophion enclave request"
_ANSWER: Final = b"ophion enclave answer."


class Envelope(NamedTuple):
    """A box on its way."""

    sender: bytes
    recipient: bytes
    nonce: bytes
    boxed: bytes

    def encode(self) -> bytes:
        """Its JSON."""
        sender, recipient = base64_text(self.sender), base64_text(self.recipient)
        return orjson.dumps(
            {"from": sender, "to": recipient, "nonce": base64_text(self.nonce), "box": base64_text(self.boxed)}
        )

    @classmethod
    def decode(cls, body: bytes) -> Envelope:
        """`DecodeError` for what is no envelope."""
        try:
            members: Any = orjson.loads(body) if has_few_values(body, _MAX_VALUES) else None
            sender, recipient = read_key(members["from"]), read_key(members["to"])
            nonce, boxed = read_base64(members["nonce"]), read_base64(members["box"])
        except (ValueError, KeyError, TypeError):
            raise DecodeError("not an envelope of an enclave", "envelope") from None
        if len(nonce) != NONCE_SIZE:
            raise DecodeError(f"a nonce of {NONCE_SIZE} bytes is expected", "envelope")
        return cls(sender, recipient, nonce, boxed)


def seal_request(
    keyring: EnclaveKeyring, entropy: Entropy, sender: bytes, recipient: bytes, path: bytes, message: bytes
) -> Envelope:
    """A request from one of our keys; `DecodeError` where the other key is not sound."""
    return _sealed(keyring, entropy, sender, recipient, _REQUEST, bytes((len(path),)) + path + message)


def open_request(keyring: EnclaveKeyring, path: bytes, envelope: Envelope) -> bytes | None:
    """What is asked of one of our keys; None when it does not open, or was made for something else."""
    text = _opened(keyring, envelope, _REQUEST)
    asked = bytes((len(path),)) + path
    return text[len(asked) :] if text is not None and text.startswith(asked) else None


def seal_answer(keyring: EnclaveKeyring, entropy: Entropy, request: Envelope, message: bytes) -> Envelope:
    """An answer to a request that was opened."""
    return _sealed(keyring, entropy, request.recipient, request.sender, _ANSWER, request.nonce + message)


def open_answer(keyring: EnclaveKeyring, request: Envelope, answer: Envelope) -> bytes | None:
    """What is answered to a request of ours; None when it is no such answer."""
    if (answer.sender, answer.recipient) != (request.recipient, request.sender):
        return None
    text = _opened(keyring, answer, _ANSWER)
    return text[NONCE_SIZE:] if text is not None and text[:NONCE_SIZE] == request.nonce else None


def _sealed(
    keyring: EnclaveKeyring, entropy: Entropy, sender: bytes, recipient: bytes, tag: bytes, text: bytes
) -> Envelope:
    nonce = entropy.token(NONCE_SIZE)
    boxed = keyring.box_for(sender, recipient, nonce, tag + sender + recipient + text)
    if boxed is None:
        raise DecodeError("a key is not sound", "envelope")
    return Envelope(sender, recipient, nonce, boxed)


def _opened(keyring: EnclaveKeyring, envelope: Envelope, tag: bytes) -> bytes | None:
    sender, recipient, nonce, boxed = envelope
    if recipient not in keyring.public_keys or sender in keyring.public_keys:
        return None  # not for us, or from ourselves
    text = keyring.unbox(recipient, sender, nonce, boxed)
    expected = tag + sender + recipient
    return text[len(tag) + 2 * KEY_SIZE :] if text is not None and text.startswith(expected) else None
