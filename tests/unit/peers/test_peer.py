from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.peer import BEST_SCORE, FIRST_SCORE, Peer
from ophion.peers.rlpx.capability import Capability, SharedCapability, negotiate
from ophion.peers.rlpx.hello import Hello

KEY = PrivateKey(bytes(31) + b"\x07")
ETH = Capability("eth", 68, 17)
IBF = Capability("IBF", 1, 4)


class Recorder:
    """A link that records the calls of its peer."""

    is_open = True

    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes, bool]] = []
        self.ended: tuple[DisconnectReason, str] | None = None
        self.limits: dict[int, int] = {}

    def send(self, shared: SharedCapability, code: int, payload: bytes, may_drop: bool) -> bool:
        self.sent.append((shared.offset + code, payload, may_drop))
        return True

    def limit(self, shared: SharedCapability, code: int, size: int) -> None:
        self.limits[shared.offset + code] = size

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        work.close()
        return False

    def disconnect(self, reason: DisconnectReason, text: str) -> None:
        self.ended = (reason, text)


def peer_on(link: Recorder, port: int = 30303, ip: str = "127.0.0.1", is_inbound: bool = False) -> Peer:
    hello = Hello.of("x", [ETH, IBF], port, KEY.public_key)
    shared = negotiate([ETH, IBF], hello.capabilities)
    return Peer(link, hello, shared, local=(ip, 1), remote=(ip, 40000), is_inbound=is_inbound, since=0.0)


def test_a_peer_sends_by_capability_and_code() -> None:
    link = Recorder()
    peer = peer_on(link)
    assert peer.send("eth", 0, b"status")
    assert peer.send("IBF", 3, b"round", may_drop=True)
    assert link.sent == [(0x14, b"status", False), (0x13, b"round", True)]
    assert peer.version("eth") == 68
    assert peer.version("istanbul") is None
    with pytest.raises(KeyError):
        peer.send("istanbul", 0, b"")


def test_a_peer_is_known_by_its_key() -> None:
    peer = peer_on(Recorder())
    assert (peer.id, peer.address) == (KEY.public_key, KEY.address)
    assert peer.enode.url == f"enode://{KEY.public_key.hex()}@127.0.0.1:30303"


def test_a_peer_that_does_not_say_where_it_listens_listens_where_it_was_found() -> None:
    assert peer_on(Recorder(), port=0).enode.tcp_port == 40000
    assert peer_on(Recorder(), port=0, is_inbound=True).enode.tcp_port == 0


def test_the_score_has_an_upper_end() -> None:
    peer = peer_on(Recorder())
    peer.penalize()
    peer.penalize(10)
    assert peer.score == FIRST_SCORE - 11
    for _ in range(100):
        peer.reward()
    assert peer.score == BEST_SCORE


def test_a_peer_outlives_its_link() -> None:
    link = Recorder()
    peer = peer_on(link)
    peer.unlink()
    assert not peer.is_open
    assert not peer.send("eth", 0, b"late")
    peer.disconnect(DisconnectReason.REQUESTED)

    async def work() -> None: ...

    assert not peer.spawn(work())
    assert (link.sent, link.ended) == ([], None)


def test_the_rest_is_the_links() -> None:
    link = Recorder()
    peer = peer_on(link, ip="::1")
    assert peer.is_open
    peer.disconnect(DisconnectReason.REQUESTED, "told to")
    assert link.ended == (DisconnectReason.REQUESTED, "told to")
    assert repr(peer) == f"{KEY.public_key[:4].hex()}@[::1]:40000"

    async def work() -> None: ...

    assert not peer.spawn(work())
