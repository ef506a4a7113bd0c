"""`ValidatorLinks`: stores which validators each peer reports to be connected to.

A validator sends its messages to every validator that it is connected to. So a node relays a message only to peers that
have not reported a connection to the author of the message. When all validators are connected, nothing is relayed, and
the number of messages per block grows with the square of the number of validators. Without reports it grows with the
cube.

A false report harms only the peer that sends the report: that peer gets fewer messages. Peers that send no reports get
every message. Only connections to validators are reported, and only to validators. So connections of unknown peers
cause no reports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from ophion.errors import DecodeError
from ophion.peers.peer import Peer
from ophion.peers.token_bucket import TokenBucket
from ophion.primitives import rlp
from ophion.primitives.types import ADDRESS_LENGTH, Address
from ophion.runtime.clock import Clock

MAX_LINKS: Final = 1000
"""Maximum number of connections in one report. Further connections are not reported."""
MAX_REPORT_BYTES: Final = MAX_LINKS * (ADDRESS_LENGTH + 1) + 8
LOSS_DELAY_S: Final = 0.1
"""Seconds before a lost connection is reported. Until the report, peers relay no messages of the lost node to this
node.
"""
NEW_DELAY_S: Final = 2.0
"""Seconds before a new connection is reported. One report then covers the many connections of a starting network."""
_MAX_REPORTS: Final = 20
_REPORTS_A_SECOND: Final = 2
"""Reports per second that a peer may send. A peer above the limit is treated as a peer that sends no reports."""
_MAX_SENT: Final = 10
_SENT_A_SECOND: Final = 0.5
"""Maximum reports per second that this node sends to a peer. Lower than `_REPORTS_A_SECOND`, so that a validator with
unstable connections stays below the limit of its peers.
"""
_RETRY_S: Final = 1.0
"""Seconds before a report above the rate limit is tried again."""


class _Reporter(Struct):
    """A peer that sends and accepts reports of connections."""

    send: Callable[[bytes], object]
    limit: TokenBucket
    sending: TokenBucket
    links: frozenset[Address] = frozenset()
    sent: bytes = b""
    """The last report of connections that this node sent to the peer."""


class ValidatorLinks:
    """Reports the connections of this node to its peers, and stores the reports of the peers."""

    def __init__(
        self,
        clock: Clock,
        own: Callable[[], Iterable[Address]],
        is_validator: Callable[[Peer], bool],
        on_change: Callable[[], None],
        on_loss: Callable[[Peer, frozenset[Address]], None],
    ) -> None:
        """Create the links. `own` returns the nodes of validators that this node is connected to. `is_validator`
        returns whether a peer gets reports. `on_change` is called after each report of a peer that differs from the
        peer's last report. `on_loss` is called with a peer and the nodes that the peer has lost.
        """
        self._clock = clock
        self._own = own
        self._is_validator = is_validator
        self._on_change = on_change
        self._on_loss = on_loss
        self._reporters: dict[Peer, _Reporter] = {}
        self._timer: asyncio.TimerHandle | None = None

    def attach(self, peer: Peer, send: Callable[[bytes], object]) -> None:
        """Add a peer that accepts reports of connections. `send` sends a report to the peer."""
        limit, sending = TokenBucket(_MAX_REPORTS, _REPORTS_A_SECOND), TokenBucket(_MAX_SENT, _SENT_A_SECOND)
        self._reporters[peer] = _Reporter(send, limit, sending)
        self._report_after(NEW_DELAY_S)

    def detach(self, peer: Peer) -> None:
        """Remove a disconnected peer and its reports."""
        if self._reporters.pop(peer, None) is not None:
            self._on_change()

    def reaches(self, peer: Peer, node: Address) -> bool:
        """Whether a peer has reported a connection to a node."""
        reporter = self._reporters.get(peer)
        return reporter is not None and node in reporter.links

    def gained(self) -> None:
        """Report a new connection of this node, or a new validator, after `NEW_DELAY_S` seconds."""
        self._report_after(NEW_DELAY_S)

    def lost(self) -> None:
        """Report a lost connection of this node after `LOSS_DELAY_S` seconds."""
        self._report_after(LOSS_DELAY_S)

    def received(self, peer: Peer, payload: bytes) -> None:
        """Handle the report of a peer, which lists the nodes that the peer is connected to. A report above the rate
        limit counts as empty. Raises `DecodeError` if the report is malformed.
        """
        reporter = self._reporters.get(peer)
        if reporter is None:
            return
        if not reporter.limit.take(1, self._clock.monotonic()):
            self._note(reporter, frozenset())
            return
        before = reporter.links
        self._note(reporter, frozenset(_decode_report(payload)))
        if missing := before - reporter.links:
            self._on_loss(peer, missing)

    def _note(self, reporter: _Reporter, links: frozenset[Address]) -> None:
        if links != reporter.links:
            reporter.links = links
            self._on_change()

    def _report_after(self, delay_s: float) -> None:
        """Send a report after a delay, unless an earlier report is already scheduled."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + delay_s:
                return
            self._timer.cancel()
        self._timer = loop.call_later(delay_s, self._report)

    def _report(self) -> None:
        self._timer = None
        report = rlp.encode(sorted(islice(self._own(), MAX_LINKS)))
        now, is_complete = self._clock.monotonic(), True
        for peer, reporter in self._reporters.items():
            if reporter.sent == report or not peer.is_open or not self._is_validator(peer):
                continue
            if reporter.sending.take(1, now):
                reporter.sent = report
                reporter.send(report)
            else:
                is_complete = False
        if not is_complete:
            self._report_after(_RETRY_S)


def _decode_report(payload: bytes) -> list[Address]:
    return [_address(item) for item in rlp.decode_list(payload, MAX_LINKS)]


def _address(item: rlp.Item) -> Address:
    if not isinstance(item, bytes) or len(item) != ADDRESS_LENGTH:
        raise DecodeError("a reported connection is not an address", "vid/2")
    return item
