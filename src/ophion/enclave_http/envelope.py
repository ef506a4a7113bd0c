"""Encrypted messages between two enclaves over HTTP.

Each request and each response is a NaCl box between one key of each enclave. The box authenticates both ends and
protects the content, so no certificates and no prior agreement are needed. Two keys give the same secret in both
directions. Therefore the text in a box names sender, recipient and path, and a response names its request. A replayed
request has no effect, because its payloads are already stored and only the owner of the key can open the response.
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
    """A NaCl box with the keys of its sender and recipient, and its nonce."""

    sender: bytes
    recipient: bytes
    nonce: bytes
    boxed: bytes

    def encode(self) -> bytes:
        """Encode the envelope as JSON."""
        sender, recipient = base64_text(self.sender), base64_text(self.recipient)
        return orjson.dumps(
            {"from": sender, "to": recipient, "nonce": base64_text(self.nonce), "box": base64_text(self.boxed)}
        )

    @classmethod
    def decode(cls, body: bytes) -> Envelope:
        """Decode an envelope from JSON. Raises `DecodeError` for other input."""
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
    """Seal a request from a local key. Raises `DecodeError` when the recipient's key is invalid."""
    return _sealed(keyring, entropy, sender, recipient, _REQUEST, bytes((len(path),)) + path + message)


def open_request(keyring: EnclaveKeyring, path: bytes, envelope: Envelope) -> bytes | None:
    """Open a request to a local key. Returns None if the box does not open or the request names another path."""
    text = _opened(keyring, envelope, _REQUEST)
    asked = bytes((len(path),)) + path
    return text[len(asked) :] if text is not None and text.startswith(asked) else None


def seal_answer(keyring: EnclaveKeyring, entropy: Entropy, request: Envelope, message: bytes) -> Envelope:
    """Encrypt the response to a request, for the sender of the request."""
    return _sealed(keyring, entropy, request.recipient, request.sender, _ANSWER, request.nonce + message)


def open_answer(keyring: EnclaveKeyring, request: Envelope, answer: Envelope) -> bytes | None:
    """Open the response to an own request. Returns None if the box does not open or the response names another
    request.
    """
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
        raise DecodeError("a key is not valid", "envelope")
    return Envelope(sender, recipient, nonce, boxed)


def _opened(keyring: EnclaveKeyring, envelope: Envelope, tag: bytes) -> bytes | None:
    sender, recipient, nonce, boxed = envelope
    if recipient not in keyring.public_keys or sender in keyring.public_keys:
        return None  # the envelope is for another recipient, or this enclave sent it
    text = keyring.unbox(recipient, sender, nonce, boxed)
    expected = tag + sender + recipient
    return text[len(tag) + 2 * KEY_SIZE :] if text is not None and text.startswith(expected) else None
