"""Proving keys: a random text, boxed for the claimed key, comes back in the clear (privacy.md 15.2).

Whoever claims a key that it does not hold could have the challenge answered by the one who does. The text therefore
says between which two nodes it was asked, and an honest node answers only what its own peer asks of it.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Final

from ophion.native.enclave import EnclaveKeyring
from ophion.peers.priv.messages import NONCE_SIZE, SECRET_SIZE, Challenge
from ophion.runtime.clock import Entropy

_TAG: Final = b"ophion priv/1 challenge"


class KeyProver:
    """The challenges of one connection, from both sides."""

    def __init__(self, keyring: EnclaveKeyring, own_id: bytes, peer_id: bytes, entropy: Entropy) -> None:
        self._keyring = keyring
        self._own_id = own_id
        self._peer_id = peer_id
        self._entropy = entropy
        self._open: dict[bytes, bytes] = {}
        """Secret texts by key, until they come back."""

    def challenge(self, keys: list[bytes]) -> list[Challenge]:
        """One for each claimed key that is sound; from a key that lives for this alone."""
        fleeting = EnclaveKeyring([self._entropy.token(SECRET_SIZE)])
        (ephemeral,) = fleeting.public_keys
        challenges = []
        for key in keys:
            secret, nonce = self._entropy.token(SECRET_SIZE), self._entropy.token(NONCE_SIZE)
            boxed = fleeting.box_for(ephemeral, key, nonce, _TAG + self._own_id + self._peer_id + secret)
            if boxed is not None:
                self._open[key] = secret
                challenges.append(Challenge(key, ephemeral, nonce, boxed))
        return challenges

    def prove(self, challenges: list[Challenge]) -> list[tuple[bytes, bytes]]:
        """Answers to what the peer asks of keys that are ours."""
        own = self._keyring.public_keys
        expected = _TAG + self._peer_id + self._own_id
        proofs = []
        for key, ephemeral, nonce, boxed in challenges:
            text = self._keyring.unbox(key, ephemeral, nonce, boxed) if key in own else None
            if text is not None and text[: len(expected)] == expected and len(text) == len(expected) + SECRET_SIZE:
                proofs.append((key, text[len(expected) :]))
        return proofs

    def check(self, proofs: list[tuple[bytes, bytes]]) -> list[bytes]:
        """The keys that are proven; each challenge counts once."""
        proven = []
        for key, secret in proofs:
            expected = self._open.pop(key, None)
            if expected is not None and compare_digest(secret, expected):
                proven.append(key)
        return proven
