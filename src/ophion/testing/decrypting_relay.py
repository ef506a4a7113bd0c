"""A relay that decrypts RLPx between two nodes. It has both private keys, so each node accepts the relay as the other
node.

Tests can search every decrypted and decompressed message that a node has received.
"""

from __future__ import annotations

import socket
from typing import Final

from ophion.native.crypto import PrivateKey
from ophion.native.wire import HANDSHAKE_ENTROPY, Handshake, Session, WireError
from ophion.runtime.clock import SystemEntropy
from ophion.testing.relay import Passed, Relay

_SIZE_BYTES: Final = 2
_LARGEST: Final = 2**24 - 1
_ENTROPY: Final = SystemEntropy()


class _Side:
    """The session of the relay with one of the two nodes."""

    def __init__(self, end: socket.socket, recorded: list[bytes]) -> None:
        self.end = end
        self.recorded = recorded
        self.partial = b""
        self.session: Session | None = None
        self.pending: list[tuple[int, bytes]] = []
        """Messages from this node that wait until the handshake with the other node is complete."""
        self.has_greeted = False


class _Conversation:
    """Both directions of a connection between dialler and listener."""

    def __init__(self, dialler: _Side, target: _Side, dialler_key: PrivateKey, target_key: PrivateKey) -> None:
        self._dialer, self._target = dialler, target
        self._dialler_key, self._target_key = dialler_key, target_key
        self._handshake: Handshake | None = None

    def through(self, source: socket.socket, data: bytes) -> Passed:
        """Process bytes from one end. Returns the bytes to send and the socket to send them to."""
        is_dialler = source is self._dialer.end
        here, there = (self._dialer, self._target) if is_dialler else (self._target, self._dialer)
        if here.session is None:
            here.partial += data
            size = _SIZE_BYTES + int.from_bytes(here.partial[:_SIZE_BYTES], "big")
            if len(here.partial) < max(size, _SIZE_BYTES):
                return
            message, data, here.partial = here.partial[:size], here.partial[size:], b""
            if is_dialler:
                ack, _, here.session = Handshake.answer(
                    self._target_key.secret(), message, _ENTROPY.token(HANDSHAKE_ENTROPY)
                )
                yield here.end, ack
                self._handshake = Handshake.initiate(
                    self._dialler_key.secret(), self._target_key.public_key, _ENTROPY.token(HANDSHAKE_ENTROPY)
                )
                yield there.end, self._handshake.auth
            else:
                assert self._handshake is not None, "the target answers"
                here.session = self._handshake.finish(message)
            here.session.max_message = _LARGEST
        here.pending += _payloads(here.session.feed(data))
        for one, other in ((here, there), (there, here)):
            yield from self._said(one, other)

    def _said(self, here: _Side, there: _Side) -> Passed:
        while here.session is not None and there.session is not None and here.pending:
            said, here.pending = here.pending, []
            there.recorded.extend(payload for _, payload in said)
            yield there.end, there.session.seal(said)
            here.has_greeted = True
            if there.has_greeted:
                # after both nodes have sent Hello, all messages are compressed
                here.session.is_compressed = there.session.is_compressed = True
                here.pending += _payloads(here.session.feed(b""))
                there.pending += _payloads(there.session.feed(b""))


class DecryptingRelay(Relay):
    """A relay that records every message that either node receives."""

    def __init__(self, target: int, target_key: PrivateKey, dialler_key: PrivateKey) -> None:
        super().__init__(target)
        self.to_target: list[bytes] = []
        """Decrypted payloads of the messages to the target, the node to which the relay connects."""
        self.to_dialler: list[bytes] = []
        self._keys = (dialler_key, target_key)
        self._conversations: dict[socket.socket, _Conversation] = {}

    def _connected(self, near: socket.socket, far: socket.socket) -> None:
        dialler, target = _Side(near, self.to_dialler), _Side(far, self.to_target)
        self._conversations[near] = self._conversations[far] = _Conversation(dialler, target, *self._keys)

    def _through(self, source: socket.socket, partner: socket.socket, data: bytes) -> Passed:
        try:
            yield from self._conversations[source].through(source, data)
        except WireError as error:
            raise OSError(str(error)) from error


def _payloads(messages: list[tuple[int, bytes | int]]) -> list[tuple[int, bytes]]:
    return [(code, payload) for code, payload in messages if isinstance(payload, bytes)]
