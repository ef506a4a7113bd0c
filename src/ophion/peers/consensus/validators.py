"""`Validators`: the driver's way to the validators among the peers.

Own messages go to every validator of their height at once; a validator that does not take them is disconnected, and
hears them again when it is back. Foreign ones are passed on byte for byte, and dropped where a peer is too slow for
them. A proposal is large and most validators have it from its author, so it is passed on a moment later, and only to
those who have not voted on it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import Struct

from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, RawMessage
from ophion.peers.peer import Peer
from ophion.primitives.types import Address, Hash32
from ophion.producer.bft_driver import BftDriver
from ophion.runtime.clock import Clock

_LARGE: Final = 4096
"""Bytes of a proposal that is worth waiting for votes before it is passed on."""
_RELAY_DELAY_S: Final = 0.25
_PROPOSALS_KEPT: Final = 8


class _Line(Struct, frozen=True):
    """A peer that speaks a protocol."""

    peer: Peer
    capability: str


class Validators:
    """`Gossip` over the peers, for one driver."""

    def __init__(self, driver: BftDriver, clock: Clock, catch_up: Callable[[Address | None, int], None]) -> None:
        self.crowded_out = 0
        """Messages that were dropped unread because their sender sent too many."""
        self._driver = driver
        self._clock = clock
        self._catch_up = catch_up
        self._lines: dict[tuple[str, Address], _Line] = {}
        self._voted: OrderedDict[Hash32, set[Address]] = OrderedDict()
        """Digest of a proposal to those who have voted on it, and so have it."""

    # --- what connections say -------------------------------------------------------------------

    def now(self) -> float:
        """Monotonic seconds, for allowances."""
        return self._clock.monotonic()

    def is_validator(self, address: Address) -> bool:
        """Whether a peer takes part in deciding the current height."""
        return address in self._driver.validators

    def came(self, peer: Peer, protocol: str, capability: str) -> None:
        """A peer has connected."""
        self._lines[protocol, peer.address] = _Line(peer, capability)
        if protocol == self._driver.protocol_name:
            self._driver.connected(peer.address)

    def left(self, peer: Peer, protocol: str) -> None:
        """A connection has ended."""
        line = self._lines.get((protocol, peer.address))
        if line is not None and line.peer is peer:
            del self._lines[protocol, peer.address]
            if protocol == self._driver.protocol_name:
                self._driver.disconnected(peer.address)

    def received(self, protocol: str, raw: RawMessage, peer: Address) -> None:
        """Pass a message on; drop it if the current height uses another protocol."""
        if protocol == self._driver.protocol_name:
            self._driver.received(raw, peer)

    # --- Gossip ---------------------------------------------------------------------------------

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        for address in validators:
            self._send(message.raw, address, may_drop=False)

    def send(self, message: BftMessage, to: Address) -> None:
        self._send(message.raw, to, may_drop=False)

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        if isinstance(message, Prepare | Commit):
            self._note_vote(message.digest, message.author)
        if isinstance(message, Proposal) and len(message.raw.data) > _LARGE:
            digest = message.block.digest
            asyncio.get_running_loop().call_later(_RELAY_DELAY_S, self._relay_late, message.raw, digest, exclude)
        else:
            self._relay(message.raw, exclude)

    def catch_up(self, peer: Address | None, height: int) -> None:
        self._catch_up(peer, height)

    def connected(self) -> Collection[Address]:
        protocol = self._driver.protocol_name
        return [address for name, address in self._lines if name == protocol]

    def clients(self) -> Iterable[str]:
        validators = self._driver.validators
        return [line.peer.hello.client_id for (_, address), line in self._lines.items() if address in validators]

    def client_of(self, address: Address) -> str | None:
        line = self._lines.get((self._driver.protocol_name, address))
        return None if line is None else line.peer.hello.client_id

    # --- pieces ---------------------------------------------------------------------------------

    def _relay_late(self, raw: RawMessage, digest: Hash32, exclude: Collection[Address | None]) -> None:
        self._relay(raw, {*exclude, *self._voted.get(digest, ())})

    def _relay(self, raw: RawMessage, exclude: Collection[Address | None]) -> None:
        for address in self._driver.validators:
            if address not in exclude:
                self._send(raw, address, may_drop=True)

    def _send(self, raw: RawMessage, to: Address, may_drop: bool) -> None:
        line = self._lines.get((self._driver.protocol_name, to))
        if line is not None and line.peer.is_open:
            line.peer.send(line.capability, raw.code, raw.data, may_drop=may_drop)

    def _note_vote(self, digest: Hash32, author: Address) -> None:
        voters = self._voted.get(digest)
        if voters is None:
            voters = self._voted[digest] = set()
            if len(self._voted) > _PROPOSALS_KEPT:
                self._voted.popitem(last=False)
        voters.add(author)
