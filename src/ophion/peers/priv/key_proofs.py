"""Proof of enclave keys: the peer decrypts a random text that is encrypted for the claimed key (privacy.md 15.2).

An attacker could relay a challenge to the real holder of the key. The text therefore names both nodes of the
connection, and an honest node answers only challenges of its own peer.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Final

from ophion.native.enclave import EnclaveKeyring
from ophion.peers.priv.messages import NONCE_SIZE, SECRET_SIZE, Challenge
from ophion.runtime.clock import Entropy

_TAG: Final = b"ophion priv/1 challenge"


class KeyProver:
    """Challenges and proofs of one connection, in both directions."""

    def __init__(self, keyring: EnclaveKeyring, own_id: bytes, peer_id: bytes, entropy: Entropy) -> None:
        self._keyring = keyring
        self._own_id = own_id
        self._peer_id = peer_id
        self._entropy = entropy
        self._open: dict[bytes, bytes] = {}
        """Secret text of each open challenge, by the enclave key to prove."""

    def challenge(self, keys: list[bytes]) -> list[Challenge]:
        """Create a challenge for each valid key, with a new ephemeral key."""
        sender = EnclaveKeyring([self._entropy.token(SECRET_SIZE)])
        (ephemeral,) = sender.public_keys
        challenges = []
        for key in keys:
            secret, nonce = self._entropy.token(SECRET_SIZE), self._entropy.token(NONCE_SIZE)
            boxed = sender.box_for(ephemeral, key, nonce, _TAG + self._own_id + self._peer_id + secret)
            if boxed is not None:
                self._open[key] = secret
                challenges.append(Challenge(key, ephemeral, nonce, boxed))
        return challenges

    def prove(self, challenges: list[Challenge]) -> list[tuple[bytes, bytes]]:
        """Decrypt the challenges for local keys. Returns (key, text) of each."""
        own = self._keyring.public_keys
        expected = _TAG + self._peer_id + self._own_id
        proofs = []
        for key, ephemeral, nonce, boxed in challenges:
            text = self._keyring.unbox(key, ephemeral, nonce, boxed) if key in own else None
            if text is not None and text[: len(expected)] == expected and len(text) == len(expected) + SECRET_SIZE:
                proofs.append((key, text[len(expected) :]))
        return proofs

    def check(self, proofs: list[tuple[bytes, bytes]]) -> list[bytes]:
        """Return the keys that the proofs prove. Each challenge can be used once."""
        proven = []
        for key, secret in proofs:
            expected = self._open.pop(key, None)
            if expected is not None and compare_digest(secret, expected):
                proven.append(key)
        return proven
